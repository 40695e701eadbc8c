"""How much of the tests a run takes.

``LEATSTREAM_TESTS`` is one of

- ``core``: the quick folders whole, and of the others the tests marked ``core``. What `make test` runs.
- ``all``: everything but the campaigns marked ``long``. What CI runs, and the default of a bare ``pytest``.
- ``long``: everything.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

AMOUNTS = ("core", "all", "long")
QUICK = ("unit", "contract")
TESTS = Path(__file__).resolve().parents[1]


def amount() -> str:
    """The word of this run; UsageError if it is none."""
    given = os.environ.get("LEATSTREAM_TESTS") or "all"
    if given not in AMOUNTS:
        raise pytest.UsageError(f"LEATSTREAM_TESTS is one of {', '.join(AMOUNTS)}, not {given!r}")
    return given


def is_left_out(item: pytest.Item) -> bool:
    """Whether this run does not take a test."""
    if item.get_closest_marker("long"):
        return amount() != "long"
    quick = any(item.path.is_relative_to(TESTS / folder) for folder in QUICK)
    return amount() == "core" and not quick and not item.get_closest_marker("core")
