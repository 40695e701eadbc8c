"""What a trickle of records costs a query in micro-batch mode, by the interval between its batches.

A count by key reads ten records a second, each with a key of its own. Sampled are the cores of its driver,
with the JVM and workers, without server and broker; and the time from the append of a record to that of its
row. The broker stamps both topics.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from report import Spread, conditions, keep, table
from stack import Stack, running_stack
from topics import SteadyProducer, Topics

from leatstream.process_tree import tree_use

PARTITIONS = 2


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--intervals", nargs="+", type=float, default=[0, 0.5, 2], help="seconds")
    parser.add_argument("--rate", type=float, default=10.0, help="records per second")
    parser.add_argument("--settle", type=float, default=30.0, help="seconds before the measurement")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--json", help="write the raw numbers here")
    options = parser.parse_args()
    print(conditions())
    found: dict[str, dict[str, list[float]]] = {}
    with running_stack({"LEATSTREAM_WARM_DRIVERS": "1"}) as stack:
        topics = Topics(stack.kafka)
        stack.sql("CREATE DATABASE bench", "bench")
        for number, interval in enumerate(options.intervals):
            found[f"{interval:g} s"] = measured(stack, topics, number, interval, options)
        topics.close()
    shown = []
    for name, values in found.items():
        delay = Spread.of(values["milliseconds"])
        shown.append([name, values["cores"][0], delay.p50, delay.p99])
    print(table(["interval", "cores", "p50, ms", "p99, ms"], shown))
    keep(options.json, found)


def measured(
    stack: Stack, topics: Topics, number: int, interval: float, options: argparse.Namespace
) -> dict[str, list[float]]:
    """Cores of one query, and milliseconds of each record.

    Args:
        stack: runs the query.
        topics: of its broker.
        number: of the query.
        interval: seconds between its batches.
        options: rate and times.
    """
    source, sink = f"clicks_{number}", f"counts_{number}"
    for topic in (source, sink):
        topics.create(topic, PARTITIONS, message_timestamp_type="LogAppendTime")
    stack.sql(
        f"CREATE STREAM {source} (session VARCHAR) WITH ('topic' = '{source}', 'value.format' = 'json')",
        "bench",
    )
    stack.wait_warm()
    stack.put_query(
        sink,
        f"CREATE CHANGELOG {sink} AS SELECT session, count(*) AS c FROM {source} GROUP BY session "
        f"QUERY WITH ('query.batch.interval.seconds' = {interval})",
        "bench",
    )
    driver = stack.driver_of(stack.wait_running(sink))
    with SteadyProducer(stack.kafka, source, options.rate):
        time.sleep(options.settle)
        before, began = tree_use(driver)[1], time.monotonic()
        time.sleep(options.seconds)
        cores = (tree_use(driver)[1] - before) / (time.monotonic() - began)
    wanted = topics.count(source, PARTITIONS)
    stack.until(lambda: topics.count(sink, PARTITIONS) >= wanted, 60, f"{sink} has caught up")
    arrived = {_session(m): m.timestamp()[1] for m in topics.records(source, PARTITIONS)}
    done = {_session(m): m.timestamp()[1] for m in topics.records(sink, PARTITIONS)}
    first = max(arrived.values()) - 1000 * options.seconds
    stack.drop_query(sink)
    return {
        "cores": [cores],
        "milliseconds": [float(done[session] - at) for session, at in arrived.items() if at > first],
    }


def _session(message: Any) -> str:
    # The key of a changelog's record is the group's.
    return str(
        {**json.loads(message.key() if b"{" in message.key() else b"{}"), **json.loads(message.value())}[
            "session"
        ]
    )


if __name__ == "__main__":
    main()
