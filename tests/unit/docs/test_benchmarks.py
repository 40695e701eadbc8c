"""Each benchmark is run by ``make bench``, or the page says that it is run by hand."""

from __future__ import annotations

import re
from pathlib import Path

BENCH = Path(__file__).resolve().parents[3] / "bench"
# What other benchmarks start.
STARTED_BY_OTHERS = {"handwritten"}


def test_every_benchmark_is_run_or_named_as_left_out() -> None:
    scripts = {one.stem for one in BENCH.glob("*.py") if '__name__ == "__main__"' in one.read_text("utf-8")}
    make = (BENCH.parent / "Makefile").read_text(encoding="utf-8")
    (listed,) = re.findall(r"for script in (.*); do \\\n\t\t\$\(BIN\)/python bench/", make)
    page = (BENCH / "README.md").read_text(encoding="utf-8")
    (by_hand,) = re.findall(r"^Run (`.*) by hand", page, re.MULTILINE)
    run, left_out = listed.split(), re.findall(r"`(\w+)\.py`", by_hand)
    assert sorted(run + left_out + sorted(STARTED_BY_OTHERS)) == sorted(scripts)
