"""How long ``make demo`` takes with warm caches: environment made, jars downloaded. Goal: 3 minutes."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from report import Spread, conditions, table, verdict

GOAL_SECONDS = 180.0
ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()

    print(conditions())
    taken = []
    for _ in range(options.rounds):
        began = time.perf_counter()
        done = subprocess.run(["make", "demo"], cwd=ROOT, capture_output=True, text=True, check=False)
        taken.append(time.perf_counter() - began)
        if done.returncode != 0:
            print(done.stdout[-4000:], done.stderr[-4000:], sep="\n")
            sys.exit(f"make demo ended with status {done.returncode} after {taken[-1]:.0f} s")
        print(done.stdout)
    spread = Spread.of(taken)
    print(table(["seconds", "n", "p50", "max"], [["make demo", spread.n, spread.p50, spread.largest]]))
    print(verdict("make demo", spread.largest, GOAL_SECONDS, "s"))
    print(conditions())


if __name__ == "__main__":
    main()
