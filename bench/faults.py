"""The fault suite (tests/support/fault_run.py) for as long as wanted: ``bench/faults.py --count 1000``."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from fault_run import run_faults
from fault_watcher import Outcome


def main() -> int:
    """Run rounds of faults until there were enough; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="faults in all")
    parser.add_argument("--round", type=int, default=100, help="faults between two comparisons")
    parser.add_argument("--seed", type=int, default=None, help="of the first round; by chance if not given")
    parser.add_argument("--pause", type=float, default=4.0, help="longest pause between two faults, seconds")
    parser.add_argument(
        "--brief",
        action="store_true",
        help="as the test: without Kinesis as a source, and changelogs in tables",
    )
    parser.add_argument("--json", type=Path, help="write what was seen to this file")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1 << 30)
    outcomes: list[Outcome] = []
    whole = not options.brief
    left = options.count
    while left > 0:
        with tempfile.TemporaryDirectory(prefix="leat-faults-", ignore_cleanup_errors=True) as directory:
            count = min(left, options.round)
            one = run_faults(
                Path(directory),
                seed=seed,
                count=count,
                longest_pause=options.pause,
                copied=whole,
                keyed=whole,
            )
        outcomes.append(one)
        left, seed = left - count, seed + 1
        if one.wrong:
            print(f"again with: bench/faults.py --seed {one.seed} --count {count}")
            break
    total = Outcome(outcomes[0].seed)
    for one in outcomes:
        total.done += one.done
        total.records, total.seconds = total.records + one.records, total.seconds + one.seconds
        total.wrong += one.wrong
        for kind, values in one.recoveries.items():
            total.recoveries.setdefault(kind, []).extend(values)
    print(f"\nIn {len(outcomes)} rounds, from {total.report()}")
    if options.json:
        options.json.write_text(json.dumps([vars(one) for one in outcomes], indent=1))
    return 1 if total.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
