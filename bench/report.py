"""Numbers as people read them: percentiles, one table, and the conditions they were measured under."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Spread:
    """What a series of measurements says.

    Attributes:
        n: how many.
        p50, p99, largest: by nearest rank, so each is a value that was really measured.
    """

    n: int
    p50: float
    p99: float
    largest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Sum up a series; ValueError when it is empty."""
        if not values:
            raise ValueError("nothing was measured")
        ordered = sorted(values)

        def rank(share: float) -> float:
            return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

        return cls(len(ordered), rank(0.5), rank(0.99), ordered[-1])


def conditions() -> str:
    """The machine and its load at this moment, in one line."""
    model = "unknown processor"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = " ".join(f"{x:.1f}" for x in os.getloadavg())
    return (
        f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}; load average {load}"
    )


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table, so that it can be pasted; numbers to the right."""
    texts = [[cell if isinstance(cell, str) else _number(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(header), *texts]) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        shown = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "| " + " | ".join(shown) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([line(header), rule, *(line(row) for row in texts)])


def verdict(name: str, value: float, goal: float, unit: str) -> str:
    """One sentence on a goal; it never fails the run, a benchmark only tells."""
    word = "met" if value <= goal else "MISSED"
    return f"Goal {name} <= {goal:g} {unit}: {value:.3g} {unit}, {word}."


def keep(path: str | None, document: dict[str, Any]) -> None:
    """Write the raw numbers as JSON for later comparison, when a path was given."""
    if path:
        Path(path).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
