"""Malformed SQL by the hundred thousand: no statement gives an unexpected error, and none takes long.

    .venv/bin/python bench/fuzz.py [--count 100000] [--seed 1] [--slow 2.0]

Each text (tests/support/fuzz_texts.py) is checked by the real services over fakes of the stores and of
Spark, every fourth is run as well. Prints counts and the slowest; exits 1 on an unexpected exception, on a
fault whose place is outside the text, or on a statement slower than ``--slow`` seconds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from fuzz_texts import Fuzz, texts


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slow", type=float, default=2.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        fuzz = Fuzz(Path(directory))
        begin = time.perf_counter()
        for number, text in zip(range(given.count), texts(given.seed), strict=False):
            fuzz.check(text, run=number % 4 == 0)
        seconds = time.perf_counter() - begin
        fuzz.close()
    print(f"{given.count} statements in {seconds:.0f} s")
    for code, count in fuzz.outcomes.most_common():
        print(f"{count:9d} {code}")
    for took, text in fuzz.slowest:
        print(f"{took * 1000:7.0f} ms  {text[:100]!r}")
    for text, what in fuzz.failures[:20]:
        print(f"FAILED {what}\n  {text[:400]!r}")
    print(f"{len(fuzz.failures)} failures")
    return 1 if fuzz.failures or fuzz.slowest[0][0] > given.slow else 0


if __name__ == "__main__":
    sys.exit(main())
