"""CPU per record of a generated filter job beside the same job written by hand in PySpark.

Each contender works off the same backlog on the same broker in a process tree of its own (Python and JVM),
with the same JVM flags and session settings, in an order that turns around from round to round. Counted is
the CPU of the tree between two fill levels of the sink, once the JIT is warm; the broker does not count.
The sinks are read back: equal count and equal order-free checksum, or the run is void.

`generated` goes the whole way through the API: statement, plan, driver. `same settings` is the hand-written
job with the Kafka client settings that the product chose, `defaults` the one that everybody writes. `Flink
SQL` has its own defaults, and in `Flink SQL, same settings` the product's Kafka client settings. It is
fetched for the run (330 MB, see flink_process.py), and measured only where it is named.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cpu_tree import Slope
from flink_process import flink_home, running_flink
from handwritten import client_settings, running_peer
from report import Spread, conditions, keep, table, verdict
from stack import BenchError, Stack, running_stack
from start import driver_settings
from topics import COLUMNS, DROPPED_PAGE, SELECT, Topics

from leatstream.launching import BUSY_JVM

PARTITIONS = 2
GENERATED, EXPRESSIONS = "generated", "generated, expressions"
SAME, DEFAULTS = "hand-written, same settings", "hand-written, defaults"
FLINK, FLINK_SAME = "Flink SQL", "Flink SQL, same settings"
CONTENDERS = (GENERATED, EXPRESSIONS, SAME, DEFAULTS, FLINK, FLINK_SAME)
# What the generated job may take of each peer's CPU.
GOALS = {EXPRESSIONS: 1.0, SAME: 1.05, DEFAULTS: 1.05, FLINK: 0.7, FLINK_SAME: 0.7}
# As a server with LEATSTREAM_JSON_WORKERS runs a query with a driver of its own, with more heap.
THROUGHPUT = {
    "LEATSTREAM_DRIVER_MEMORY": "1g",
    "LEATSTREAM_DRIVER_JVM_OPTIONS": BUSY_JVM,
    "LEATSTREAM_JSON_WORKERS": "true",
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--records", type=int, default=3_000_000, help="backlog")
    parser.add_argument("--warm", type=int, default=1_500_000, help="records that do not count")
    parser.add_argument("--mode", choices=("micro_batch", "realtime"), default="micro_batch")
    parser.add_argument("--jvm", choices=("product", "throughput"), default="product")
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=[GENERATED, SAME, DEFAULTS])
    parser.add_argument("--flink", type=Path, help="where Flink is kept from run to run")
    parser.add_argument("--json", help="write the raw numbers here")
    options = parser.parse_args()

    print(conditions())
    jvm = driver_settings() if options.jvm == "product" else THROUGHPUT
    print(f"JVM of every contender: {jvm}; mode {options.mode}")
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in options.contenders}
    # One driver at a time: else the pool warms the next one during the measurement.
    with contextlib.ExitStack() as opened:
        needs_flink = {FLINK, FLINK_SAME} & set(options.contenders)
        home = opened.enter_context(flink_home(options.flink)) if needs_flink else None
        stack = opened.enter_context(running_stack({**jvm, "LEATSTREAM_MAX_DRIVERS": "1"}))
        topics = Topics(stack.kafka)
        topics.create("pageviews", PARTITIONS)
        expected = topics.fill("pageviews", options.records)
        stack.sql("CREATE DATABASE bench", "bench")
        stack.sql(
            f"CREATE STREAM pageviews ({COLUMNS}) WITH ('topic'='pageviews', 'value.format'='json')", "bench"
        )
        bench = Bench(stack, topics, jvm, options, expected, home)
        for number in range(options.rounds):
            order = options.contenders if number % 2 == 0 else options.contenders[::-1]
            for name in order:
                runs[name].append(bench.run(name, number))
        topics.close()
    show(runs)
    print(conditions())
    keep(options.json, {"jvm": jvm, "mode": options.mode, "runs": runs})


class Bench:
    """The runs of one broker."""

    def __init__(
        self,
        stack: Stack,
        topics: Topics,
        jvm: Mapping[str, str],
        options: Any,
        expected: int,
        flink: Path | None,
    ) -> None:
        """Hold what every run needs; ``expected`` is how many records pass the filter."""
        self._stack, self._topics, self._jvm, self._flink = stack, topics, jvm, flink
        self._options, self._expected = options, expected
        self._checksum: int | None = None

    def run(self, name: str, number: int) -> dict[str, float]:
        """One contender over the whole backlog; CPU microseconds per input record, and more."""
        sink = f"kept_{CONTENDERS.index(name)}_{number}"
        self._topics.create(sink, PARTITIONS)
        self._stack.wait_warm()
        slope = Slope()
        if name in (GENERATED, EXPRESSIONS):
            self._run_generated(sink, slope, "auto" if name == GENERATED else "expressions")
        elif name in (FLINK, FLINK_SAME):
            self._run_flink(sink, slope, same=name == FLINK_SAME)
        else:
            self._run_by_hand(sink, slope, "same" if name == SAME else "defaults")
        self._verify(name, sink)
        self._topics.drop(sink)
        result = self._measured(slope)
        shown = ", ".join(f"{k} {v:.3g}" for k, v in result.items())
        print(f"  {name}, round {number}: {shown}; {conditions().rpartition(';')[2].strip()}", flush=True)
        return result

    def _run_generated(self, sink: str, slope: Slope, reader: str) -> None:
        select = SELECT.format(source="pageviews WITH ('starting.position'='earliest')")
        properties = f"'mode'='{self._options.mode}', 'query.json.reader'='{reader}'"
        sql = f"CREATE STREAM {sink} AS {select} QUERY WITH ({properties})"
        self._stack.put_query(sink, sql, "bench")
        process = self._stack.driver_of(self._started(sink))
        self._watch(process, sink, slope)
        self._stack.drop_query(sink, delete_entity=False)

    def _started(self, name: str) -> dict[str, Any]:
        """The query as soon as it has a driver."""
        found: dict[str, Any] = {}

        def has_driver() -> bool:
            found.update(self._stack.call("GET", f"/v1/queries/{name}"))
            return bool((found["status"].get("job") or {}).get("driver_id"))

        self._stack.until(has_driver, 60, f"{name} has a driver")
        return found

    def _run_by_hand(self, sink: str, slope: Slope, form: str) -> None:
        with running_peer(
            self._stack.kafka,
            "pageviews",
            sink,
            form=form,
            mode=self._options.mode,
            position="earliest",
            environment=self._jvm,
            warm_up=True,
        ) as peer:
            peer.go()
            self._watch(peer.process, sink, slope)

    def _run_flink(self, sink: str, slope: Slope, *, same: bool) -> None:
        assert self._flink is not None
        script = flink_script(self._stack.kafka, sink, same=same)
        with running_flink(self._flink, script, self._jvm["LEATSTREAM_DRIVER_MEMORY"]) as (process, _):
            self._watch(process, sink, slope)

    def _watch(self, process: Any, sink: str, slope: Slope) -> None:
        slope.watch(process, lambda: self._topics.count(sink, PARTITIONS), self._expected, 600)

    def _measured(self, slope: Slope) -> dict[str, float]:
        passed = self._expected / self._options.records
        begin, end = self._options.warm * passed, self._expected * 0.99
        inputs = (end - begin) / passed
        wall = slope.time_at(end) - slope.time_at(begin)
        cold = slope.cpu_at(self._expected / 3) - slope.samples[0][2]
        return {
            "us/record": (slope.cpu_at(end) - slope.cpu_at(begin)) / inputs * 1e6,
            "records/s": inputs / wall,
            "us/record of the first third": cold / (self._options.records / 3) * 1e6,
            "peak RSS MB": slope.peak_rss / 2**20,
        }

    def _verify(self, name: str, sink: str) -> None:
        time.sleep(0.5)
        count, checksum = self._topics.checksum(sink, PARTITIONS)
        self._checksum = checksum if self._checksum is None else self._checksum
        if (count, checksum) != (self._expected, self._checksum):
            raise BenchError(
                f"{name}: {count} records with checksum {checksum:x}, not {self._expected} with "
                f"{self._checksum:x}: the contenders do not do the same"
            )


def flink_script(bootstrap: str, sink: str, *, same: bool) -> str:
    """The statements of the same job for Flink: the record's key is passed on."""
    columns = f"`key` BYTES, {COLUMNS.replace('VARCHAR', 'STRING')}"
    place = "'connector'='kafka', 'value.format'='json', 'value.fields-include'='EXCEPT_KEY'"
    place += ", 'key.format'='raw', 'key.fields'='key'"

    def properties(topic: str, chosen: Mapping[str, str]) -> str:
        client = {key.removeprefix("kafka."): value for key, value in chosen.items() if "kafka." in key}
        if not same:
            client = {"bootstrap.servers": bootstrap}
        told = "".join(f", 'properties.{key}'='{value}'" for key, value in client.items())
        return f"{place}, 'topic'='{topic}'{told}"

    read, write = client_settings("same", bootstrap, "pageviews", sink, realtime=False)
    begin = f"'scan.startup.mode'='earliest-offset', 'properties.group.id'='{sink}'"
    return ";\n".join(
        [
            f"CREATE TABLE pageviews ({columns}) WITH ({properties('pageviews', read)}, {begin})",
            f"CREATE TABLE sink ({columns}) WITH ({properties(sink, write)})",
            f"INSERT INTO sink SELECT `key`, viewtime, UPPER(userid), pageid FROM pageviews "
            f"WHERE pageid <> '{DROPPED_PAGE}'",
        ]
    )


def show(runs: dict[str, list[dict[str, float]]]) -> None:
    """The table and the verdict: ratios of medians, with the range of the rounds."""
    rows = []
    for name, results in runs.items():
        costs = [r["us/record"] for r in results]
        spread = Spread.of(costs)
        rows.append(
            [
                name,
                spread.n,
                median(costs),
                min(costs),
                spread.largest,
                median([r["us/record of the first third"] for r in results]),
                median([r["records/s"] for r in results]),
                median([r["peak RSS MB"] for r in results]),
            ]
        )
    header = ["us of CPU per input record", "n", "median", "min", "max", "cold third", "records/s", "RSS MB"]
    print(table(header, rows))
    if GENERATED not in runs:
        return
    own = median([r["us/record"] for r in runs[GENERATED]])
    for peer, goal in GOALS.items():
        if peer in runs:
            ratio = own / median([r["us/record"] for r in runs[peer]])
            print(verdict(f"generated / {peer}", ratio, goal, "x"))


def median(values: list[float]) -> float:
    """The middle one, or the mean of the two in the middle."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


if __name__ == "__main__":
    main()
