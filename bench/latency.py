"""End-to-end latency of a running filter: intended send time of a record to its append time on the sink.

One open-loop producer at a steady rate; both topics are stamped by the broker (LogAppendTime), so one clock
measures everything. The source's own append time splits the way: what producer and broker take before the job
could know of the record is shown apart and is the bound. All times have the broker's resolution, 1 ms.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from handwritten import running_peer
from report import Spread, conditions, keep, table, verdict
from stack import BenchError, Stack, running_stack
from start import driver_settings
from topics import COLUMNS, SELECT, SteadyProducer, Topics

GOAL_MS = 20.0
PARTITIONS = 2
CASES = ("realtime", "hand-written realtime", "micro_batch", "hand-written micro_batch")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1, help="each case so many times, in turn")
    parser.add_argument("--rate", type=float, default=200.0, help="records per second")
    parser.add_argument("--seconds", type=float, default=70.0, help="length of one measurement")
    parser.add_argument("--skip", type=float, default=10.0, help="seconds at its start that do not count")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--json", help="write the raw numbers here")
    options = parser.parse_args()

    print(conditions())
    found: dict[str, dict[str, list[float]]] = {}
    with running_stack() as stack:
        topics = Topics(stack.kafka)
        stack.sql("CREATE DATABASE bench", "bench")
        for number in range(options.rounds):
            for case in options.cases:
                measured = one_case(stack, topics, case, f"{number}_{options.cases.index(case)}", options)
                for key, values in measured.items():
                    found.setdefault(case, {}).setdefault(key, []).extend(values)
                spread = Spread.of(measured["total"])
                print(
                    f"  {case}: p50 {spread.p50:.0f} ms, p99 {spread.p99:.0f} ms; {conditions()}", flush=True
                )
        topics.close()
    show(found, options)
    keep(options.json, {case: {k: sorted(v) for k, v in parts.items()} for case, parts in found.items()})


def one_case(
    stack: Stack, topics: Topics, case: str, suffix: str, options: argparse.Namespace
) -> dict[str, list[float]]:
    """Run one job under the steady load; milliseconds per record, in total and by part."""
    source, sink = f"views_{suffix}", f"kept_{suffix}"
    for topic in (source, sink):
        topics.create(topic, PARTITIONS, message_timestamp_type="LogAppendTime")
    mode = "micro_batch" if "micro_batch" in case else "realtime"
    if case.startswith("hand-written"):
        with running_peer(
            stack.kafka,
            source,
            sink,
            form="same",
            mode=mode,
            position="latest",
            environment=driver_settings(),
            warm_up=True,
        ) as peer:
            peer.go()
            feed(stack, topics, source, sink, options)
    else:
        stack.sql(
            f"CREATE STREAM {source} ({COLUMNS}, session VARCHAR) "
            f"WITH ('topic'='{source}', 'value.format'='json')",
            "bench",
        )
        stack.put_query(
            sink,
            f"CREATE STREAM {sink} AS {SELECT.format(source=source)} QUERY WITH ('mode'='{mode}')",
            "bench",
        )
        found = stack.wait_running(sink)
        if found["status"]["job"]["mode"] != mode:
            raise BenchError(f"the query runs in {found['status']['job']['mode']} mode, not in {mode}")
        # The pool warms a new driver now, which takes a core for some seconds: not this benchmark's matter.
        stack.wait_warm()
        feed(stack, topics, source, sink, options)
        stack.drop_query(sink, delete_entity=False)
    return read_back(topics, source, sink, options)


def feed(stack: Stack, topics: Topics, source: str, sink: str, options: argparse.Namespace) -> None:
    """Send for the whole time, then wait until the sink has everything."""
    # One record first, so that the query has certainly begun.
    deadline = time.monotonic() + 90
    with SteadyProducer(stack.kafka, source, options.rate):
        while topics.count(sink, PARTITIONS) == 0:
            if time.monotonic() > deadline:
                raise BenchError(f"nothing arrived on {sink}")
            time.sleep(0.2)
        time.sleep(options.skip + options.seconds)
    wanted = topics.count(source, PARTITIONS)
    # A hand-written job that starts at "latest" may have missed what came before it fixed its offsets.
    stack.until(
        lambda: topics.count(sink, PARTITIONS) >= wanted - options.rate * 60, 60, f"{sink} has caught up"
    )
    time.sleep(2.0)


def read_back(topics: Topics, source: str, sink: str, options: argparse.Namespace) -> dict[str, list[float]]:
    """Join both topics by the intended send time and key; only the last ``seconds`` count."""
    arrived = {(m.key(), _sent(m)): m.timestamp()[1] for m in topics.records(source, PARTITIONS)}
    done = {(m.key(), _sent(m)): m.timestamp()[1] for m in topics.records(sink, PARTITIONS)}
    last = max(sent for _, sent in arrived)
    window = sorted((k for k in arrived if k[1] > last - options.seconds * 1000), key=lambda k: k[1])
    missing = [k for k in window if k not in done]
    if missing:
        raise BenchError(f"{len(missing)} of {len(window)} records are not on the sink")
    slow = sorted(int((k[1] - window[0][1]) / 1000) for k in window if done[k] - k[1] > GOAL_MS)
    print(
        f"  over {GOAL_MS:g} ms: {len(slow)} of {len(window)}, in the seconds {sorted(set(slow))}", flush=True
    )
    return {
        "total": [float(done[k] - k[1]) for k in window],
        "into the source": [float(arrived[k] - k[1]) for k in window],
        "job alone": [float(done[k] - arrived[k]) for k in window],
    }


def _sent(message: Any) -> int:
    return int(json.loads(message.value())["viewtime"])


def show(found: dict[str, dict[str, list[float]]], options: argparse.Namespace) -> None:
    """The table and the verdict."""
    rows = []
    for case, parts in found.items():
        name = case if case.startswith("hand") else f"leatstream {case}"
        for part, values in parts.items():
            spread = Spread.of(values)
            rows.append([f"{name}: {part}", spread.n, spread.p50, spread.p99, spread.largest])
    print(table([f"milliseconds at {options.rate:g} records/s", "n", "p50", "p99", "max"], rows))
    if "realtime" in found:
        p99 = Spread.of(found["realtime"]["total"]).p99
        print(verdict("real-time p99", p99, GOAL_MS, "ms"))
        if "hand-written realtime" in found:
            peer = Spread.of(found["hand-written realtime"]["total"]).p99
            print(f"Ratio to the hand-written job in real-time mode (p99): {p99 / max(peer, 1.0):.2f}")


if __name__ == "__main__":
    main()
