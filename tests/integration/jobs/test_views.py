"""Materialized views as real Spark fills them, batch by batch.

A case of tests/fixtures/views tells a statement over the stream ``s``, the records of each batch, a SELECT over
the view ``v``, and its rows after each batch. With ``restart`` the job is stopped and started between the batches,
each time as a new attempt.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from leatstream.connectors.kafka.connector import KafkaConnector
from leatstream.model.names import Fqn
from leatstream.model.objects import HIDDEN_PREFIX, Column, Meta, Relation, RelationKind
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, JobSpec
from leatstream.plan.logical import AnalyzedColumn
from leatstream.ports import Snapshot
from leatstream.services.planning.sink_columns import new_columns
from leatstream.sql.binder import bind
from leatstream.sql.parser import parse
from leatstream.sql.statements import CreateMaterializedViewAs
from leatstream.sql.view_properties import read_view_properties
from leatstream.sql.views import view_schema
from leatstream.views.sqlite_store import SqliteViews
from leatstream_jobs.attempt import run_query

pytestmark = [pytest.mark.spark, pytest.mark.core]
FOLDER = Path(__file__).parents[2] / "fixtures" / "views"
CASES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
NOW = datetime(2026, 1, 1, tzinfo=UTC)
META = Meta(id="r", generation=1, created_at=NOW, updated_at=NOW, created_by="admin", owner="admin")


class Run:
    """A view over one topic, filled batch by batch."""

    def __init__(
        self,
        spark: SparkSession,
        kafka: KafkaConnector,
        job: Callable[..., Any],
        case: dict[str, Any],
        views: SqliteViews,
    ) -> None:
        self.spark, self.kafka, self.views, self.source = spark, kafka, views, case["source"]
        (statement,) = parse(case["sql"])
        assert isinstance(statement, CreateMaterializedViewAs)
        struct = parse_type(f"STRUCT<{case['columns']}>")
        columns = tuple(Column(n, t) for n, t in zip(struct.fields, struct.arguments, strict=True))
        stream = Relation(
            meta=META,
            fqn=Fqn("demo", "public", "s"),
            kind=RelationKind.STREAM,
            columns=columns,
            store="store",
            entity=self.source,
            value_format="json",
        )
        grouped = statement.select.args.get("group") is not None
        plan = bind(statement.select, lambda _: stream, case["sql"], changelog=grouped)
        for scan in plan.scans:
            view = view_schema(scan)
            spark.createDataFrame([], view.ddl).createOrReplaceTempView(view.name)
        analyzed = [
            AnalyzedColumn(f.name, f.dataType.simpleString(), f.nullable)
            for f in spark.sql(plan.sql).schema.fields
            if not f.name.startswith(HIDDEN_PREFIX)
        ]
        self.columns = new_columns(analyzed, statement.position)
        source = {"entity": self.source, "columns": "x BIGINT", "timestamp": case.get("timestamp")}
        source["watermark_delay_ms"] = 10_000 if plan.timed else None
        document = job([source] * len(plan.scans), "", plan.sql, "x BIGINT")
        for scan in document["sources"]:
            scan["columns"] = [_spec(c) for c in columns]
        self.table = f"qry_{uuid.uuid4().hex}"
        keys = plan.primary_key
        retention = read_view_properties(statement.properties).retention_ms
        document["sink"] |= {
            "store": {"name": "", "kind": "view", "config": {}},
            "columns": [_spec(c) for c in self.columns],
            "value_format": "",
            "key_columns": list(keys),
            "deletes": plan.deletes,
            "view": {
                "table": self.table,
                "generation": 1,
                "database": views.database.model_dump(),
                "retention_ms": retention,
            },
        }
        document["output_mode"] = "update" if keys else "append"
        self.document = document
        self.query: Any = None

    def batch(self) -> None:
        """Work off what the topic has."""
        if self.query is None:
            spec = JobSpec.model_validate(self.document)
            self.started = run_query.start(self.spark, spec, lambda _: self.kafka, 2)
            self.query = self.started.query
        self.query.processAllAvailable()

    def stop(self) -> None:
        """End the job; the next one is a new attempt."""
        if self.query is not None:
            self.query.stop()
            self.query = None
            self.document["attempt"] += 1

    def rows(self, what: str) -> list[list[Any]]:
        """What a SELECT over the view gives."""
        found, _ = self.views.read(Snapshot(what, (), [(self.table, 1)], 1000, 30))
        return [list(row) for row in found]


def _spec(column: Column) -> dict[str, Any]:
    return ColumnSpec(name=column.name, type=str(column.type), not_null=column.not_null).model_dump()


@pytest.fixture
def start(
    spark: SparkSession,
    kafka: KafkaConnector,
    job: Callable[..., Any],
    topic: Callable[..., str],
    tmp_path: Path,
) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def begin(**case: Any) -> Run:
        runs.append(Run(spark, kafka, job, {**case, "source": topic(1)}, SqliteViews(tmp_path / "views")))
        return runs[-1]

    yield begin
    for run in runs:
        run.stop()


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, start: Callable[..., Run], produce: Callable[..., None]) -> None:
    case = CASES[name]
    run = start(**{k: case[k] for k in ("sql", "columns", "timestamp")})
    for number, (records, expected) in enumerate(zip(case["batches"], case["expected"], strict=True)):
        produce(run.source, *records)
        run.batch()
        assert run.rows(case["select"]) == expected, f"batch {number}"
        if expected and not case.get("restart"):
            (written,) = (sink.written for sink in run.started.sinks)
            assert written.rows > 0
            assert written.size > 0
        if case.get("restart"):
            run.stop()
