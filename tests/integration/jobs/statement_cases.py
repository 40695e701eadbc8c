"""A continuous statement over one stream, compiled as the services do, and run batch by batch over files.

A case tells the statement over the stream ``s``, the stream's columns, the records of each batch, and what each
batch writes, in any order: pairs of record key (text, or 0x… where it is none) and value. The batches follow one
another without a pause; ``after`` is what the batch without records behind the last one writes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from spark_analyzer import typed

from leatstream.model.names import Fqn
from leatstream.model.objects import HIDDEN_PREFIX, Column, Meta, Relation, RelationKind
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, JobSpec, SinkSpec, SourceSpec
from leatstream.plan.logical import AnalyzedColumn, LogicalPlan
from leatstream.services.planning.sink_columns import new_columns
from leatstream.services.planning.sink_formats import sink_formats
from leatstream.sql.binder import bind
from leatstream.sql.parser import parse
from leatstream.sql.passes.quotients import Settled
from leatstream.sql.relation_properties import read_relation_properties
from leatstream.sql.source_properties import read_source_options
from leatstream.sql.statements import CreateAs, CreateChangelogAs
from leatstream.sql.views import view_schema
from leatstream_jobs.attempt import run_query

NOW = datetime(2026, 1, 1, tzinfo=UTC)
META = Meta(id="r", generation=1, created_at=NOW, updated_at=NOW, created_by="admin", owner="admin")
Pairs = list[tuple[str | None, Any]]


def stream(columns: str, timestamp: str | None) -> Relation:
    """The stream ``s`` of ``demo.public``."""
    struct = parse_type(f"STRUCT<{columns}>")
    return Relation(
        meta=META,
        fqn=Fqn("demo", "public", "s"),
        kind=RelationKind.STREAM,
        columns=tuple(Column(n, t) for n, t in zip(struct.fields, struct.arguments, strict=True)),
        store="store",
        entity="s",
        value_format="json",
        timestamp=timestamp,
    )


def _register(spark: SparkSession, plan: LogicalPlan) -> None:
    views = [view_schema(scan) for scan in plan.scans]
    for view in [*views, *([plan.matches.view] if plan.matches is not None else [])]:
        spark.createDataFrame([], view.ddl).createOrReplaceTempView(view.name)


def analyzed(spark: SparkSession, plan: LogicalPlan) -> list[AnalyzedColumn]:
    """The output columns as Spark's analyzer tells them."""
    _register(spark, plan)
    fields = spark.sql(plan.sql).schema.fields
    return [
        AnalyzedColumn(f.name, f.dataType.simpleString(), f.nullable)
        for f in fields
        if not f.name.startswith(HIDDEN_PREFIX)
    ]


def job_of(
    spark: SparkSession, case: Mapping[str, Any], job: Callable[..., dict[str, Any]], topics: tuple[str, str]
) -> JobSpec:
    """The case's JobSpec, from one entity to another."""
    (statement,) = parse(case["sql"])
    assert isinstance(statement, CreateAs)
    changelog = isinstance(statement, CreateChangelogAs)
    relation = stream(case["columns"], case.get("timestamp", "at"))
    find = case.get("find_function")

    def bound(settled: Settled) -> LogicalPlan:
        tree = statement.select.copy()
        return bind(
            tree, lambda _: relation, case["sql"], changelog=changelog, find_function=find, settled=settled
        )

    plan = typed(spark, bound)
    if "register" in case:
        case["register"](plan)
    made = new_columns(analyzed(spark, plan), statement.position)
    given = read_relation_properties(statement.properties, changelog=changelog)
    group = plan.aggregation
    effective = sink_formats(given, relation, group, made, {}, plan.primary_key)
    sources = []
    for scan in plan.scans:
        options = read_source_options(scan.properties)
        source = {
            "entity": topics[0],
            "columns": "x BIGINT",
            "timestamp": options.timestamp or relation.timestamp,
            "idle_timeout_ms": options.idle_timeout_ms if plan.timed else None,
            "on_error": options.on_error,
            # The records' own time is one for all: most cases go far beyond.
            "max_ahead_ms": options.max_ahead_ms if case.get("bounded") else None,
        }
        sources.append(source | {"watermark_delay_ms": case.get("delay_ms", 10_000) if plan.timed else None})
    document = job(sources, topics[1], plan.sql, "x BIGINT")
    for source in document["sources"]:
        source["columns"] = [_spec(c) for c in relation.columns]
    document["sink"] |= {
        "columns": [_spec(c) for c in made],
        "key_format": effective["key.format"].value if "key.format" in effective else None,
        "key_columns": list(plan.primary_key or given.key_columns),
        "deletes": plan.deletes,
    }
    document["output_mode"] = "update" if group is not None and group.update else "append"
    document["distinct"] = plan.distinct
    if plan.matches is not None:
        document["operator"] = {"kind": "match-recognize", "pattern": plan.matches.spec.model_dump()}
    return JobSpec.model_validate(document)


def shown_key(raw: bytes | None) -> str | None:
    """A record key as cases write it."""
    if raw is None:
        return None
    text = raw.decode(errors="ignore")
    return text if text.isprintable() and text.encode() == raw else f"0x{raw.hex()}"


def ordered(pairs: Any) -> list[str]:
    """Pairs in an order of their own."""
    return sorted(json.dumps(list(pair), ensure_ascii=False) for pair in pairs)


class FileStore:
    """Stands for a store: each batch is a file of records, what is written is kept by batch."""

    takes_rows = False

    @staticmethod
    def carried_format(value_format: str) -> str:
        """As a connector's."""
        return value_format

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written: dict[int, Pairs] = {}
        self.batch = 0
        self.broken = False

    def put(self, number: int, records: list[dict[str, Any]]) -> None:
        """The records of one batch."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{number:04}"
        path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records), encoding="utf-8")
        # Spark reads files in the order of their time.
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))

    def read_stream(self, spark: SparkSession, source: SourceSpec, *, realtime: bool) -> DataFrame:
        """As a connector's."""
        assert not realtime
        lines = spark.readStream.format("text").option("maxFilesPerTrigger", "1").load(str(self.folder))
        meta = (
            "named_struct('topic', 's', 'partition', 0, 'offset', 0L, 'timestamp_type', 0) AS __leat_rowmeta"
        )
        time = "TIMESTAMP '2026-01-01 00:00:00' AS timestamp"
        return lines.selectExpr("CAST(NULL AS BINARY) AS key", "CAST(value AS BINARY) AS value", time, meta)

    def write_stream(self, frame: DataFrame, sink: SinkSpec, *, realtime: bool) -> Any:
        """As a connector's."""

        return frame.writeStream.foreachBatch(self._keep)

    def write_batch(self, frame: DataFrame, sink: SinkSpec) -> None:
        """As a connector's; ``batch`` is the number it goes under."""
        if self.broken:
            raise ConnectionError("the sink is away")
        self._keep(frame, self.batch)

    def _keep(self, rows: DataFrame, batch: int) -> None:
        found = [
            (shown_key(r.key), json.loads(r.value) if r.value is not None else None) for r in rows.collect()
        ]
        self.written.setdefault(batch, []).extend(found)


def run_case(
    spark: SparkSession, case: Mapping[str, Any], job: Callable[..., dict[str, Any]], folder: Path
) -> tuple[list[Pairs], Pairs, int]:
    """Run to the end; gives what each batch wrote, what came after them, and how many late rows Spark tells."""
    store: Any = FileStore(folder / "records")
    for number, records in enumerate(case["batches"]):
        store.put(number, records)
    spec = job_of(spark, case, job, ("s", "out"))
    spec = spec.model_copy(update={"conf": {"spark.sql.shuffle.partitions": "1"}})
    query = run_query.start(spark, spec, lambda _: store, 2).query
    try:
        query.processAllAvailable()
        states = [s for r in query.recentProgress for s in json.loads(r.json)["stateOperators"]]
    finally:
        query.stop()
    count = len(case["batches"])
    found = [store.written.get(number, []) for number in range(count)]
    after = [pair for number, pairs in store.written.items() if number >= count for pair in pairs]
    return found, after, sum(s["numRowsDroppedByWatermark"] for s in states)


def _spec(column: Column) -> ColumnSpec:
    return ColumnSpec(name=column.name, type=str(column.type), not_null=column.not_null)
