"""What a query costs that has nothing to do: processor time of its driver's processes over a minute.

The goal is 0.02 of a core for a query in micro-batch mode whose topic is silent. Sampled is the driver with
its JVM and workers, not the server and the broker.
"""

from __future__ import annotations

import argparse
import time

from report import conditions
from stack import BenchError, Stack, running_stack
from topics import COLUMNS, Topics

from leatstream.process_tree import tree_use

GOAL_CORES = 0.02
QUERIES = {
    "filter": "CREATE STREAM idle_filter AS SELECT * FROM pageviews WHERE pageid = 'x' "
    "QUERY WITH ('mode' = 'micro_batch')",
    "count": "CREATE CHANGELOG idle_count AS SELECT userid, count(*) AS c FROM pageviews GROUP BY userid",
}


def main() -> None:
    """Measure and print; the exit code is 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--settle", type=float, default=75.0, help="seconds before the measurement")
    parser.add_argument("--query", choices=sorted(QUERIES), action="append")
    options = parser.parse_args()
    print(conditions())
    missed = False
    with running_stack({"LEATSTREAM_WARM_DRIVERS": "1"}) as stack:
        Topics(stack.kafka).create("pageviews", 1)
        stack.sql("CREATE DATABASE bench", "bench")
        stack.sql(
            f"CREATE STREAM pageviews ({COLUMNS}) WITH ('topic'='pageviews', 'value.format'='json')", "bench"
        )
        for name in options.query or sorted(QUERIES):
            cores = measured(stack, name, options.settle, options.seconds)
            missed |= cores > GOAL_CORES
            print(f"{name}: {cores:.4f} cores, goal {GOAL_CORES}")
    raise SystemExit(int(missed))


def measured(stack: Stack, name: str, settle: float, seconds: float) -> float:
    """Cores that an idle query uses."""
    stack.wait_warm()
    stack.put_query(name, QUERIES[name], "bench")
    driver = stack.driver_of(stack.wait_running(name))
    time.sleep(settle)
    before, began = tree_use(driver)[1], time.monotonic()
    time.sleep(seconds)
    used, took = tree_use(driver)[1] - before, time.monotonic() - began
    if not driver.is_running():
        raise BenchError(f"the driver of {name} has ended")
    stack.drop_query(name)
    return used / took


if __name__ == "__main__":
    main()
