"""Rows a second, time a batch and size on disk of joins and aggregates over keyed snapshots, beside a copy.

One Spark session, sources of JSON files, a sink that encodes the records and drops them: what is measured is
the operator, without Kafka. The first batch loads the changelog (``--keys`` rows); then come small and large
batches.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from report import conditions, keep, table

from leatstream.connectors.kafka.connector import KafkaConnector
from leatstream.plan.job_spec import (
    ColumnSpec,
    JobSpec,
    LinkSpec,
    Mode,
    OperatorSpec,
    SinkSpec,
    SnapshotSpec,
    SourceSpec,
    StoreRef,
)
from leatstream_jobs.attempt import run_query
from leatstream_jobs.runtime.session import start_session

STORE = StoreRef(name="bench", kind="kafka", config={})
HIDDEN = "`t0`.`__leat_rowkey` AS `__leat_rowkey`, `t0`.`__leat_rowtime` AS `__leat_rowtime`"
NONE = "CAST(NULL AS BINARY) AS `__leat_rowkey`, CAST(NULL AS TIMESTAMP) AS `__leat_rowtime`"
AS_OF = (
    "`t1`.`__leat_rowtime` <= `t0`.`__leat_rowtime` AND (`t1`.`__leat_until` IS NULL OR"
    " `t0`.`__leat_rowtime` < `t1`.`__leat_until`) AND NOT `t1`.`__leat_deleted`"
)
VIEWS, ACCOUNTS = (
    [("id", "VARCHAR"), ("n", "BIGINT")],
    [("id", "VARCHAR"), ("region", "VARCHAR"), ("n", "BIGINT")],
)


class Files(KafkaConnector):
    """Topics that are directories."""

    def __init__(self, folder: Path) -> None:
        self.name, self.folder = "bench", folder

    def read_stream(self, spark: Any, source: SourceSpec, *, realtime: bool) -> Any:
        """Raw records."""
        folder = self.folder / source.entity
        folder.mkdir(parents=True, exist_ok=True)
        place = (
            "named_struct('topic', '', 'partition', 0, 'offset', n, 'timestamp_type', 0) AS __leat_rowmeta"
        )
        rows = spark.readStream.schema("key STRING, value STRING, timestamp TIMESTAMP, n BIGINT").json(
            str(folder)
        )
        return rows.selectExpr("CAST(key AS BINARY) key", "CAST(value AS BINARY) value", "timestamp", place)

    def write_stream(self, frame: Any, sink: SinkSpec, *, realtime: bool) -> Any:
        """Encode and drop."""
        return frame.writeStream.format("noop")

    def write_batch(self, frame: Any, sink: SinkSpec) -> None:
        """Encode and drop."""
        frame.write.format("noop").mode("overwrite").save()


def source(view: str, entity: str, columns: list[tuple[str, str]], *keys: str) -> SourceSpec:
    """One source."""
    return SourceSpec(
        view=view,
        relation=entity,
        store=STORE,
        entity=entity,
        columns=[ColumnSpec(name=n, type=t) for n, t in columns],
        value_format="json",
        key_format="primitive",
        primary_key=list(keys),
    )


def jobs(folder: Path) -> dict[str, JobSpec]:
    """What is measured: a plain copy, a temporal join, an aggregate of a changelog."""

    def job(
        name: str, sql: str, sources: list[SourceSpec], out: list[tuple[str, str]], **more: Any
    ) -> JobSpec:
        columns = [ColumnSpec(name=n, type=t) for n, t in out]
        sink = SinkSpec(relation="o", store=STORE, entity="o", columns=columns, value_format="json")
        if name == "aggregate":
            sink = sink.model_copy(update={"key_columns": ["region"], "key_format": "primitive"})
        return JobSpec(
            query_id=name,
            query_name=name,
            generation=1,
            attempt=1,
            fencing_token="",
            sql=sql,
            sources=sources,
            sink=sink,
            mode=Mode.MICRO_BATCH,
            mode_reason="bench",
            checkpoint=(folder / "checkpoint" / name).as_uri(),
            conf={"spark.sql.shuffle.partitions": "2"},
            **more,
        )

    views, row = "`leat_src_0` AS `t0`", [("n", "BIGINT"), ("region", "VARCHAR")]
    joined = OperatorSpec(
        kind="temporal-join",
        snapshots=[SnapshotSpec(view="leat_src_1", keys=["id"], versions=True, history_ms=604_800_000)],
        links=[LinkSpec(view="leat_src_1", relation=views, values=["`t0`.`id`"])],
    )
    grouped = OperatorSpec(
        kind="changelog-aggregate",
        snapshots=[SnapshotSpec(view="leat_src_0", keys=["id"])],
        groups=LinkSpec(view="leat_src_0", relation=views, values=["`t0`.`region`"]),
    )
    return {
        "copy": job(
            "copy",
            f"SELECT t0.n, t0.id AS region, {HIDDEN} FROM {views}",
            [source("leat_src_0", "views", VIEWS)],
            row,
        ),
        "temporal join": job(
            "temporal",
            f"SELECT t0.n, t1.region, {HIDDEN} FROM {views} LEFT JOIN `leat_src_1` AS `t1`"
            f" ON t0.id = t1.id AND {AS_OF}",
            [source("leat_src_0", "views", VIEWS), source("leat_src_1", "accounts", ACCOUNTS, "id")],
            row,
            operator=joined,
        ),
        "aggregate": job(
            "aggregate",
            f"SELECT t0.region, count(*) AS n, {NONE} FROM {views} GROUP BY t0.region",
            [source("leat_src_0", "accounts", ACCOUNTS, "id")],
            [("region", "VARCHAR"), ("n", "BIGINT")],
            operator=grouped,
        ),
    }


def feeder(folder: Path, keys: int) -> Callable[[str, int, bool], None]:
    """Writes a batch of one source."""
    chance, count = random.Random(7), 0

    def feed(entity: str, rows: int, every: bool) -> None:
        nonlocal count
        lines = []
        for i in range(rows):
            count += 1
            key = f"k{i if every else chance.randrange(keys)}"
            value = json.dumps({"id": key, "region": f"r{chance.randrange(keys // 10)}", "n": count})
            lines.append(
                json.dumps(
                    {
                        "key": key,
                        "value": value,
                        "timestamp": f"2026-01-01T{count // 10**6:02d}:00:00Z",
                        "n": count,
                    }
                )
            )
        target = folder / entity / f"{count}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        hidden = target.with_name(f"_{count}")
        hidden.write_text("\n".join(lines))
        hidden.rename(target)

    return feed


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--small", type=int, default=100, help="rows of a small batch")
    parser.add_argument("--large", type=int, default=50_000, help="rows of a large batch")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--json", help="write the raw numbers here")
    options = parser.parse_args()
    print(conditions())
    with tempfile.TemporaryDirectory() as name:
        spark = start_session(Path(name) / "spark", 2)
        found: dict[str, Any] = {}
        disk: dict[str, int] = {}
        for index, title in enumerate(("copy", "temporal join", "aggregate")):
            folder = Path(name) / str(index)
            spec = jobs(folder)[title]
            feed, entities = feeder(folder, options.keys), [s.entity for s in spec.sources]
            if "accounts" in entities:
                feed("accounts", options.keys, True)
            query = run_query.start(spark, spec, lambda _, f=folder: Files(f), 2).query  # type: ignore[misc]
            query.processAllAvailable()
            for rows in (options.small, options.large):
                times = []
                for _ in range(options.rounds):
                    feed(entities[0], rows, False)
                    start = time.perf_counter()
                    query.processAllAvailable()
                    times.append(time.perf_counter() - start)
                found.setdefault(title, {})[rows] = sorted(times)[len(times) // 2]
            query.stop()
            place = Path(spec.checkpoint.removeprefix("file://"))
            disk[title] = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
        spark.stop()
    lines = [
        [
            title,
            f"{1000 * by[options.small]:.0f} ms",
            f"{options.large / by[options.large]:.0f} rows/s",
            f"{by[options.large] / found['copy'][options.large]:.1f}",
            f"{disk[title] / 2**20:.1f} MiB",
        ]
        for title, by in found.items()
    ]
    header = [f"batch of {options.small}", f"batches of {options.large}", "time / copy", "on disk"]
    print(table(["operator", *header], lines))
    seconds = {k: {str(r): t for r, t in by.items()} for k, by in found.items()}
    keep(options.json, {"seconds": seconds, "checkpoint_bytes": disk})


if __name__ == "__main__":
    main()
