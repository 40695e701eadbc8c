"""CPU per record and memory of a windowed count and an interval join beside Flink SQL, on the same topics.

Both work off the same backlog on the same broker, one after the other, each in a process tree of its own:
the product's driver (Python and JVM), started through the API, and Flink's, as ``flink_process`` fetches and
starts it. What the sinks hold is compared; else the run is void.

Counted is the CPU between two fill levels of the sink; cold start is left out of both. A batch of ours takes
up to 500,000 records and its windows are written at its end, so with few batches only the figure from the
start of the process tells anything: below a million records that count no ratio of CPU is shown.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import psutil
from cpu_per_record import THROUGHPUT
from cpu_tree import Slope
from flink_process import flink_home, running_flink
from report import conditions, keep, table, verdict
from stack import BenchError, Stack, running_stack
from topics import PAGES, Topics

PARTITIONS = 2
WINDOW_MS, DELAY_MS = 10_000, 10_000
COLUMNS = "viewtime BIGINT, userid VARCHAR, pageid VARCHAR, session VARCHAR"
GOALS = {"us/record": 1.0, "peak RSS MB": 0.6}
OURS = {
    "windowed count": "SELECT pageid, window_start, window_end, count(*) AS n"
    " FROM TUMBLE(pageviews, SIZE 10 SECONDS) p WITH ('starting.position'='earliest')"
    " GROUP BY window_start, window_end, pageid",
    "interval join": "SELECT a.session AS session, a.pageid AS pageid, b.viewtime AS n FROM pageviews a"
    " WITH ('starting.position'='earliest') JOIN clicks b WITH ('starting.position'='earliest')"
    " WITHIN 10 SECONDS ON a.session = b.session",
}
THEIRS = {
    "windowed count": (
        "pageid STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT",
        "SELECT pageid, window_start, window_end, count(*) FROM TABLE(TUMBLE(TABLE pageviews, DESCRIPTOR(ts),"
        " INTERVAL '10' SECOND)) GROUP BY window_start, window_end, pageid",
    ),
    "interval join": (
        "session STRING, pageid STRING, n BIGINT",
        "SELECT a.session, a.pageid, b.viewtime FROM pageviews a JOIN clicks b ON a.session = b.session"
        " AND b.ts BETWEEN a.ts - INTERVAL '10' SECOND AND a.ts + INTERVAL '10' SECOND",
    ),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--records", type=int, default=3_000_000, help="backlog of each topic")
    parser.add_argument("--warm", type=float, default=0.4, help="part of it that does not count")
    parser.add_argument("--cases", nargs="+", choices=list(OURS), default=list(OURS))
    parser.add_argument("--heap", default="1g", help="Flink's heap, and our driver's")
    parser.add_argument("--flink", type=Path, help="where Flink is kept from run to run")
    parser.add_argument("--json", help="write the raw numbers here")
    options = parser.parse_args()
    print(conditions())
    found: dict[str, dict[str, dict[str, float]]] = {}
    jvm = {**THROUGHPUT, "LEATSTREAM_DRIVER_MEMORY": options.heap, "LEATSTREAM_MAX_DRIVERS": "1"}
    with flink_home(options.flink) as home, running_stack(jvm) as stack:
        topics = Topics(stack.kafka)
        stack.sql("CREATE DATABASE bench", "bench")
        for name in ("pageviews", "clicks"):
            topics.create(name, PARTITIONS)
            topics.fill(name, options.records)
            properties = f"'topic'='{name}', 'value.format'='json', 'timestamp'='viewtime'"
            stack.sql(f"CREATE STREAM {name} ({COLUMNS}) WITH ({properties})", "bench")
        for number, case in enumerate(options.cases):
            bench = Case(stack, topics, home, options, case)
            runs = {"leatstream": bench.ours, "Flink SQL": bench.theirs}
            order = list(runs) if number % 2 == 0 else list(runs)[::-1]
            results = {name: runs[name](f"out_{number}_{i}") for i, name in enumerate(order)}
            bench.compare()
            found[case] = {name: results[name] for name in runs}
            print(f"  {case}: {results}; {conditions().rpartition(';')[2].strip()}", flush=True)
        topics.close()
    show(found, enough=(1 - options.warm) * options.records >= 1_000_000)
    print(conditions())
    keep(options.json, {"records": options.records, "heap": options.heap, "cases": found})


class Case:
    """One query on both sides."""

    def __init__(self, stack: Stack, topics: Topics, home: Path, options: Any, case: str) -> None:
        self._stack, self._topics, self._home, self._options, self._case = stack, topics, home, options, case
        windowed = case == "windowed count"
        # The windows of the last event times do not close before more comes.
        closed = max(0, options.records - 2 * WINDOW_MS - DELAY_MS) // WINDOW_MS * PAGES
        self._wanted = closed if windowed else int(0.98 * options.records)
        self._rows = closed if windowed else options.records
        self._seen: dict[str, dict[Any, Any]] = {}
        self._written: list[str] = []

    def ours(self, sink: str) -> dict[str, float]:
        """The product's job over the whole backlog."""
        self._topics.create(sink, PARTITIONS)
        self._stack.wait_warm()
        self._stack.put_query(sink, f"CREATE STREAM {sink} AS {OURS[self._case]}", "bench")
        query = self._stack.wait_running(sink)
        slope = self._watched(self._stack.driver_of(query), sink)
        self._stack.drop_query(sink, delete_entity=False)
        return self._measured(slope)

    def theirs(self, sink: str) -> dict[str, float]:
        """Flink's job over it."""
        self._topics.create(sink, PARTITIONS)
        columns, select = THEIRS[self._case]
        script = self._script(sink, columns, select)
        with running_flink(self._home, script, self._options.heap) as (process, log):
            slope = self._watched(process, sink)
            self._written.append(f"Flink says: {log.read_text(errors='replace')[-3000:]}")
            return self._measured(slope)

    def compare(self) -> None:
        """Rows of one key are equal on both sides; BenchError if they are not, or few are there."""
        one, other = self._seen.values()
        both = one.keys() & other.keys()
        wrong = [key for key in both if one[key] != other[key]]
        if wrong or len(both) < 0.95 * self._wanted:
            raise BenchError(
                f"{self._case}: {len(wrong)} of {len(both)} rows differ, such as {wrong[:3]}\n"
                + "\n".join(self._written)
            )

    def _watched(self, process: psutil.Process, sink: str) -> Slope:
        slope = Slope()
        slope.watch(process, lambda: self._topics.count(sink, PARTITIONS), self._wanted, 900)
        rows = (json.loads(message.value()) for message in self._topics.records(sink, PARTITIONS))
        if self._case == "windowed count":
            self._seen[sink] = {(r["pageid"], str(r["window_end"])[:19]): r["n"] for r in rows}
        else:
            self._seen[sink] = {r["session"]: (r["pageid"], r["n"]) for r in rows}
        rows_there = self._topics.count(sink, PARTITIONS)
        self._written.append(f"{sink}: {rows_there} rows, {len(self._seen[sink])} keys")
        return slope

    def _measured(self, slope: Slope) -> dict[str, float]:
        begin, end = self._options.warm * self._wanted, self._wanted * 0.98
        sources = 1 if self._case == "windowed count" else 2
        inputs = (end - begin) / self._rows * self._options.records * sources
        return {
            "us/record": (slope.cpu_at(end) - slope.cpu_at(begin)) / inputs * 1e6,
            "us/record from the start": slope.cpu_at(end)
            / (end / self._rows * self._options.records * sources)
            * 1e6,
            "peak RSS MB": slope.peak_rss / 2**20,
        }

    def _script(self, sink: str, columns: str, select: str) -> str:
        place = f"'connector'='kafka', 'properties.bootstrap.servers'='{self._stack.kafka}', 'format'='json'"
        read = f"{place}, 'scan.startup.mode'='earliest-offset', 'properties.group.id'='{sink}'"
        late = f"INTERVAL '{DELAY_MS // 1000}' SECOND"
        time = f"ts AS TO_TIMESTAMP_LTZ(viewtime, 3), WATERMARK FOR ts AS ts - {late}"
        fields = COLUMNS.replace("VARCHAR", "STRING")
        tables = [
            f"CREATE TABLE {name} ({fields}, {time}) WITH ({read}, 'topic'='{name}')"
            for name in ("pageviews", "clicks")
        ]
        out = f"CREATE TABLE sink ({columns}) WITH ({place}, 'topic'='{sink}')"
        return ";\n".join([*tables, out, f"INSERT INTO sink {select}"])


def show(found: dict[str, dict[str, dict[str, float]]], *, enough: bool) -> None:
    """The table, and the ratios against the goals; of the CPU only with ``enough`` records."""
    rows = [
        [f"{case}: {name}", *result.values()] for case, by in found.items() for name, result in by.items()
    ]
    print(table(["warm", "us of CPU per record", "the same from the start", "peak RSS MB"], rows))
    for case, by in found.items():
        for what, goal in GOALS.items():
            if what == "us/record" and not enough:
                continue
            ratio = by["leatstream"][what] / by["Flink SQL"][what]
            print(verdict(f"{case}, {what}, ours / Flink's", ratio, goal, "x"))


if __name__ == "__main__":
    main()
