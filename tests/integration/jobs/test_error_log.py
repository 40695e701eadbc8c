"""Records that cannot be read are written, with the reason, to a topic of their own: in the same batch."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession
from statement_cases import job_of

from leatstream.connectors.kafka.connector import KafkaConnector
from leatstream.plan.job_spec import JobSpec
from leatstream_jobs.attempt import run_query
from leatstream_jobs.attempt.progress import Progress
from leatstream_jobs.reading.json_kernel import kernels

pytestmark = pytest.mark.spark
COLUMNS = "id VARCHAR, n BIGINT, at TIMESTAMP"
TEXTS = {
    "a copy": "CREATE STREAM c AS SELECT id, n FROM s WHERE n > 0",
    "groups": "CREATE CHANGELOG c AS SELECT id, sum(n) AS n FROM s GROUP BY id",
}


def spec_of(
    spark: SparkSession, text: str, job: Any, source: str, sink: str, log: str, reader: str
) -> JobSpec:
    spec = job_of(spark, {"sql": text, "columns": COLUMNS, "bounded": True}, job, (source, sink))
    sources = [s.model_copy(update={"on_error": "ignore", "log_entity": log}) for s in spec.sources]
    return spec.model_copy(update={"sources": sources, "json_reader": reader})


@pytest.mark.parametrize(
    ("name", "reader"),
    [
        ("a copy", "expressions"),
        pytest.param("a copy", "workers", marks=pytest.mark.long),
        ("groups", "workers"),
    ],
)
def test_undecodable_records_are_kept(
    name: str,
    reader: str,
    spark: SparkSession,
    kafka: KafkaConnector,
    job: Any,
    topic: Callable[..., str],
    produce: Any,
    rows: Any,
) -> None:
    source, sink, log = topic(1), topic(1), topic(1)
    spec = spec_of(spark, TEXTS[name], job, source, sink, log, reader)
    assert bool(kernels(spec)) == (reader == "workers")
    good = {"id": "a", "n": 1, "at": "2026-01-01 00:00:00"}
    produce(source, good, b"{no json", {"id": "b", "n": "x"}, b"\xff\xfe", good | {"id": "c"})
    query = run_query.start(spark, spec, lambda _: kafka, 2).query
    progress = Progress(spec.sources)
    try:
        query.processAllAvailable()
        assert sorted(r["id"] for r in rows(sink, 2)) == ["a", "c"]
        logged = rows(log, 3)
        assert [r["offset"] for r in logged] == [1, 2, 3]
        assert {(r["relation"], r["topic"], r["partition"], r["reason"]) for r in logged} == {
            ("demo.public.s0", source, 0, "it does not fit the columns")
        }
        assert [r.get("value") for r in logged] == ["{no json", json.dumps({"id": "b", "n": "x"}), None]
        assert base64.b64decode(logged[2]["value_base64"]) == b"\xff\xfe"
        progress.look(query)
        assert (progress.skipped_rows, progress.untimely_rows) == (3, 0)
    finally:
        query.stop()
    # A restart goes on where both ended.
    ahead = {"id": "f", "n": 1, "at": "2999-01-01 00:00:00"}
    produce(source, good | {"id": "d"}, {"id": "e", "n": 1, "at": "soon"}, ahead)
    query = run_query.start(spark, spec, lambda _: kafka, 2).query
    try:
        query.processAllAvailable()
        assert sorted(r["id"] for r in rows(sink, 3)) == ["a", "c", "d"]
        assert [r["offset"] for r in rows(log, 5)[3:]] == [6, 7]
        again = Progress(spec.sources)
        again.look(query)
        assert (again.skipped_rows, again.untimely_rows) == (2, 1)
    finally:
        query.stop()
