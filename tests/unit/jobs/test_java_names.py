"""How Python names classes of the JVM."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import leatstream
import leatstream_jobs


@pytest.mark.parametrize("package", [leatstream, leatstream_jobs], ids=lambda package: package.__name__)
def test_classes_are_asked_for_by_their_whole_names(package: Any) -> None:
    """``jvm.org.apache…`` takes milliseconds: each package of it is looked for as a class, in every jar."""
    found = [
        f"{path}:{number}"
        for path in sorted(Path(package.__path__[0]).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"jvm\.(org|java|javax|scala)\b", line)
    ]
    assert not found
