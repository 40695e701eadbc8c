"""Functions in Java in a real Spark: every type there and back, failures told without data, stale classes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from java_classes import FAIL, JOIN, SAME, TOLD, jar, load, udf_class
from pyspark.sql import SparkSession

from leatstream.errors import JobError
from leatstream.plan.job_spec import FunctionSpec, JobSpec
from leatstream_jobs.attempt.failures import chain_of, classify
from leatstream_jobs.functions import java_functions
from leatstream_jobs.functions.user_functions import forget, register

pytestmark = pytest.mark.spark
JAR = jar(
    shop__Same=SAME,
    shop__Join=JOIN,
    shop__Fail=FAIL,
    shop__New=udf_class("shop.New", 1, [load(1)], version=200),
)
DIGEST = hashlib.sha256(JAR.encode()).hexdigest()
TYPES = {
    "BOOLEAN": "TRUE",
    "TINYINT": "1Y",
    "SMALLINT": "2S",
    "INTEGER": "3",
    "BIGINT": "4L",
    "FLOAT": "CAST(1.5 AS FLOAT)",
    "DOUBLE": "1.5D",
    "DECIMAL(20, 4)": "CAST(12.5 AS DECIMAL(20, 4))",
    "VARCHAR": "'é'",
    "BYTES": "X'00ff'",
    "DATE": "DATE '0001-01-31'",
    "TIMESTAMP": "TIMESTAMP_NTZ '2026-01-31 12:00:00.000001'",
    "TIMESTAMP_LTZ": "TIMESTAMP_LTZ '2026-03-29 01:30:00.000001Z'",
    "ARRAY<BIGINT>": "ARRAY(1L, NULL)",
    "MAP<VARCHAR, INTEGER>": "MAP('a', 1)",
    "STRUCT<x INTEGER, y ARRAY<VARCHAR>>": "NAMED_STRUCT('x', 1, 'y', ARRAY('b'))",
}


def function(number: int, handler: str, returns: str, digest: str = DIGEST) -> FunctionSpec:
    return FunctionSpec(
        name=f"leat_fn_{number}",
        function=handler.rpartition(".")[2].lower(),
        arguments=[],
        returns=returns,
        aggregate=False,
        source="mine",
        file="mine.jar",
        handler=handler,
        digest=digest,
        timeout_seconds=60,
        language="java",
    )


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    made = spark.newSession()
    yield made
    forget(made, [{"name": f"leat_fn_{n}"} for n in range(len(TYPES) + 1)])


def test_every_type_comes_back_as_it_went_in(session: SparkSession, tmp_path: Path) -> None:
    specs = [function(n, "shop.Same", kind) for n, kind in enumerate(TYPES)]
    specs.append(function(len(TYPES), "shop.Join", "VARCHAR"))
    register(session, specs, {DIGEST: JAR}, tmp_path / "jars")
    # Each call over a row that is read, or Spark would compute it while it plans.
    same = [f"leat_fn_{n}(IF(id = 0, {value}, NULL)) AS c{n}" for n, value in enumerate(TYPES.values())]
    own = [f"IF(id = 0, {value}, NULL) AS d{n}" for n, value in enumerate(TYPES.values())]
    there, gone = session.sql(f"SELECT {', '.join(same + own)} FROM range(2) ORDER BY id").collect()
    assert {kind: there[f"c{n}"] for n, kind in enumerate(TYPES)} == {
        kind: there[f"d{n}"] for n, kind in enumerate(TYPES)
    }
    assert set(gone) == {None}
    time = "TIMESTAMP_LTZ '2026-03-29 01:30:00Z'"
    joined = session.sql(f"SELECT leat_fn_{len(TYPES)}({time}, DATE '2026-01-02') AS t FROM range(1)")
    assert joined.first() == ("2026-03-29T01:30:00Z2026-01-02",)


def failure(
    session: SparkSession, specs: list[FunctionSpec], sql: str
) -> tuple[str, str | None, bool | None]:
    with pytest.raises(Exception) as caught:  # noqa: PT011  (py4j's own class)
        session.sql(sql).collect()
    found = classify(
        chain_of(caught.value), JobSpec.model_construct(sources=[], checkpoint="file:///c", functions=specs)
    )
    return found.detail, found.condition, found.retryable


def test_what_goes_wrong_is_told_without_data(session: SparkSession, tmp_path: Path) -> None:
    specs = [function(0, "shop.Fail", "VARCHAR"), function(1, "shop.Same", "BIGINT")]
    register(session, specs, {DIGEST: JAR}, tmp_path)
    assert failure(session, specs, "SELECT leat_fn_0('a secret value') FROM range(1)") == (
        "The function fail failed in shop.Fail.call: java.lang.IllegalStateException.",
        "FUNCTION_FAILED",
        False,
    )
    told, condition, _ = failure(session, specs, "SELECT leat_fn_1(CAST(id AS STRING)) + 1 FROM range(1)")
    assert condition == "FUNCTION_FAILED"
    assert told in (
        "The function same gave a value that is no BIGINT.",
        "The function same failed: java.lang.ClassCastException.",
    )


def test_classes_that_cannot_be_loaded(session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(
        JobError, match=r"shop.New of function new cannot be loaded: .*class file version 200"
    ):
        register(session, [function(0, "shop.New", "BIGINT")], {DIGEST: JAR}, tmp_path)
    with pytest.raises(JobError, match=r"shop.Gone of function gone cannot be loaded"):
        register(session, [function(0, "shop.Gone", "BIGINT")], {DIGEST: JAR}, tmp_path)


def test_one_jvm_takes_one_version_of_a_class(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would go on with the first one and say nothing."""
    monkeypatch.setattr(java_functions, "_loaded", dict(java_functions._loaded))
    register(session, [function(0, "shop.Same", "BIGINT")], {DIGEST: JAR}, tmp_path)
    other = jar(shop__Same=udf_class("shop.Same", 1, [load(1), TOLD]))
    digest = hashlib.sha256(other.encode()).hexdigest()
    sources: dict[str, Any] = {digest: other}
    with pytest.raises(JobError, match="Function same brings another version of a class"):
        register(session, [function(1, "shop.Same", "VARCHAR", digest)], sources, tmp_path)
