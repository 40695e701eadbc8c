"""Two ways of doing the same in one run: each in a process of its own, in turn."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable

from report import conditions, keep, table

Measured = Callable[[str, int], tuple[float, float]]
UNITS = ("ms per batch", "CPU ms per batch")


def compare(
    script: str, about: str | None, ways: tuple[str, str], what: str, batches: int, measured: Measured
) -> None:
    """Be the script: print the medians of each way, and the second's share of the first's.

    Args:
        script: path of the calling script.
        about: what it says of itself.
        ways: what there is to choose from.
        what: they differ in.
        batches: of a round, if nobody says so.
        measured: takes a way and the number of batches, and gives a number for each of ``UNITS``.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--rounds", type=int, default=2, help="each way so many times, in turn")
    parser.add_argument(
        "--batches", type=int, default=batches, help="of a round; the first third does not count"
    )
    parser.add_argument("--json", help="write the raw numbers here")
    parser.add_argument("--way", choices=ways, help="only this way, in this process")
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measured(options.way, options.batches)))
        return
    print(conditions())
    found: dict[str, list[list[float]]] = {way: [] for way in ways}
    for _ in range(options.rounds):
        for way in ways:
            # A JVM of its own: what one has been changed to, the next one does not have.
            argv = [sys.executable, script, "--way", way, "--batches", str(options.batches)]
            told = subprocess.run(argv, check=True, stdout=subprocess.PIPE).stdout
            found[way].append(json.loads(told.splitlines()[-1]))
    medians = {way: [statistics.median(column) for column in zip(*found[way], strict=True)] for way in ways}
    rows = [[way, *(round(value, 1) for value in values)] for way, values in medians.items()]
    rows.append(["ratio", *(round(b / a, 2) for a, b in zip(*(medians[way] for way in ways), strict=True))])
    print(table([what, *UNITS], rows))
    keep(options.json, found)
