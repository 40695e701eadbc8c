"""Two attempts of a query race on one checkpoint, 1,000 times; never may both write."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from fencing_race import race

from leatstream.dev.broker import Broker


def main() -> int:
    """Race; 1 if a record was lost or doubled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--beside", type=int, default=4, help="tries at a time")
    options = parser.parse_args()
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="leat-fencing-", ignore_cleanup_errors=True) as name,
        Broker(Path(name) / "kafka", 0, Path(name) / "kafka.log") as broker,
    ):
        races = race(broker.bootstrap_servers, options.tries, options.seed, options.beside, print)
    print(f"{options.tries} tries in {time.monotonic() - began:.0f} s, seed {options.seed}")
    for ends, count in races.ends.most_common():
        print(f"  {count:5}  old / new ended: {ends}")
    for said in races.wrong:
        print(f"WRONG {said}")
    return 1 if races.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
