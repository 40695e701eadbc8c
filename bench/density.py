"""How many queries 8 GiB hold, in shared and in dedicated drivers, and how late their records are then.

Filters from one topic to a topic each, under one steady producer: its rate is the rate of every query. Memory
is the resident size of the drivers' process trees (the broker, the API, the analyzer and idle drivers are not
counted); what 8 GiB would hold is reckoned from it where fewer queries than that are run. Latency is from the
intended send time of a record to its append time on the sink.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

from report import Spread, conditions, keep, table
from stack import Stack, running_stack
from topics import COLUMNS, SELECT, SteadyProducer, Topics

from leatstream.process_tree import tree_use

GOALS = {"shared": 100, "dedicated": 12}
ROOM = 8 << 30


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=int, default=100, help="queries in shared drivers; 0 leaves it out")
    parser.add_argument("--dedicated", type=int, default=12, help="queries in drivers of their own")
    parser.add_argument("--rate", type=float, default=5.0, help="source records per second, for each query")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the measurement")
    parser.add_argument("--json", help="write the raw numbers here")
    options = parser.parse_args()

    print(conditions())
    found = {}
    for mode, count in (("shared", options.shared), ("dedicated", options.dedicated)):
        if count:
            limit = {"LEATSTREAM_MAX_DRIVERS": str(max(16, GOALS["dedicated"] + 4))}
            with running_stack(limit) as stack:
                found[mode] = one_mode(stack, mode, count, options)
    show(found)
    print(conditions())
    keep(options.json, found)


def one_mode(stack: Stack, mode: str, count: int, options: argparse.Namespace) -> dict[str, Any]:
    """Start the queries, let them run, and look at memory, CPU and latency."""
    topics = Topics(stack.kafka)
    topics.create("pageviews", 1)
    stack.sql("CREATE DATABASE bench", "bench")
    stack.sql(
        f"CREATE STREAM pageviews ({COLUMNS}) WITH ('topic'='pageviews', 'value.format'='json')", "bench"
    )
    sinks = [topics.create(f"kept_{i}", 1, message_timestamp_type="LogAppendTime") for i in range(count)]
    began = time.monotonic()
    suffix = f"QUERY WITH ('query.driver'='{mode}', 'mode'='micro_batch')"
    for sink in sinks:
        select = SELECT.format(source="pageviews")
        stack.put_query(sink, f"CREATE STREAM {sink} WITH ('topic'='{sink}') AS {select} {suffix}", "bench")
    running = [stack.wait_running(sink, 600) for sink in sinks]
    started = time.monotonic() - began
    print(f"  {mode}: {count} queries run after {started:.0f} s; {conditions()}", flush=True)
    drivers = list({d.pid: d for d in map(stack.driver_of, running)}.values())
    with SteadyProducer(stack.kafka, "pageviews", options.rate):
        time.sleep(10)
        begin, cpu = time.time(), sum(tree_use(driver)[1] for driver in drivers)
        time.sleep(options.seconds)
        used = list(map(tree_use, drivers))
        cpu = (sum(seconds for _, seconds in used) - cpu) / (time.time() - begin)
        rss = sum(memory for memory, _ in used)
    again = [stack.call("GET", f"/v1/queries/{sink}")["status"] for sink in sinks]
    restarts = sum(int(status["job"]["attempt"]) - 1 for status in again)
    for sink, status in zip(sinks, again, strict=True):
        if int(status["job"]["attempt"]) > 1:
            told = stack.call("GET", f"/v1/queries/{sink}/events")["items"]
            print(f"  {sink}, attempt {status['job']['attempt']}: {told}", flush=True)
    late = _latencies(topics, sinks, begin, begin + options.seconds - 5)
    topics.close()
    return {
        "queries": count,
        "drivers": len(drivers),
        "rss_bytes": rss,
        "cores": cpu,
        "start_seconds": started,
        "restarts": restarts,
        "in_8_gib": int(ROOM / (rss / count)),
        "latency_ms": sorted(late),
    }


def _latencies(topics: Topics, sinks: Sequence[str], begin: float, end: float) -> list[float]:
    found = []
    for sink in sinks:
        for message in topics.records(sink, 1):
            sent = int(message.value().split(b'"viewtime":', 1)[1].split(b",", 1)[0])
            if begin * 1000 <= sent <= end * 1000:
                found.append(float(message.timestamp()[1] - sent))
    return found


def show(found: dict[str, dict[str, Any]]) -> None:
    """The table and what the goals say."""
    rows = []
    for mode, one in found.items():
        spread = Spread.of(one["latency_ms"])
        each = one["rss_bytes"] / one["queries"] / (1 << 20)
        cores = one["cores"] / one["queries"]
        numbers = [one["queries"], one["drivers"], each, cores, one["restarts"], spread.p50, spread.p99]
        rows.append([mode, *numbers, one["in_8_gib"]])
    header = ["drivers", "queries", "processes", "MiB each", "cores each", "restarts", "p50 ms", "p99 ms"]
    print(table([*header, "in 8 GiB"], rows))
    for mode, one in found.items():
        goal, reached = GOALS[mode], one["in_8_gib"]
        word = "met" if reached >= goal and not one["restarts"] else "MISSED"
        how = "run" if one["queries"] >= goal else f"reckoned from {one['queries']}"
        print(f"Goal {mode}: {goal} queries in 8 GiB; {reached} ({how}), {word}.")


if __name__ == "__main__":
    main()
