"""Two ways of doing the same in one run: each in a process of its own, in turn."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Sequence

from report import conditions, keep, table


def compare(
    script: str,
    ways: tuple[str, str],
    what: str,
    units: Sequence[str],
    rounds: int,
    arguments: Sequence[str],
    to: str | None,
) -> None:
    """Print the medians of each way, and the second's share of the first's.

    Args:
        script: path of the calling script, which prints a JSON list with a number for each unit when it is
            called with ``--way``.
        ways: what there is to choose from.
        what: they differ in.
        units: headings of the numbers.
        rounds: each way so many times.
        arguments: more of them for the script.
        to: file for the raw numbers.
    """
    print(conditions())
    found: dict[str, list[list[float]]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            # A JVM of its own: what one has been changed to, the next one does not have.
            argv = [sys.executable, script, "--way", way, *arguments]
            told = subprocess.run(argv, check=True, stdout=subprocess.PIPE).stdout
            found[way].append(json.loads(told.splitlines()[-1]))
    medians = {way: [statistics.median(column) for column in zip(*found[way], strict=True)] for way in ways}
    rows = [[way, *(round(value, 1) for value in values)] for way, values in medians.items()]
    rows.append(["ratio", *(round(b / a, 2) for a, b in zip(*(medians[way] for way in ways), strict=True))])
    print(table([what, *units], rows))
    keep(to, found)
