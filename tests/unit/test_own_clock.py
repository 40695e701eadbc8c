"""Tests patch the clock of one module, never that of the whole process."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
_GLOBAL = re.compile(r"setattr\(\s*(?:time,|[\w.]+\.time,|[\"'](?:[\w.]+\.)?time\.)")


def test_no_test_patches_the_time_of_every_thread() -> None:
    """A thread that slept took the interrupt of ``query top``'s test, which then never ended."""
    found = [
        f"{path.relative_to(TESTS)}:{text.count(chr(10), 0, match.start()) + 1}"
        for path in TESTS.rglob("*.py")
        for text in [path.read_text()]
        for match in _GLOBAL.finditer(text)  # the call may be on several lines
    ]
    assert found == [], "use set_clock of support/own_clock.py"
