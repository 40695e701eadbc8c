"""Oracle's sink in the suite of all table stores, against a double: ``oracle_double`` says what that proves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest
from oracle_double import PASSWORD, OracleDouble
from pyspark.sql import SparkSession
from query_shapes import CHANGES
from sink_suite import VALUES, TableSinkSuite, changes, items
from table_run import Row, TableRun, TableServer

from leatstream.connectors.oracle.sink import staged_prefix

pytestmark = pytest.mark.spark
_SHADOW = Path(__file__).parents[2] / "support" / "oracle_shadow"
_JSON = {"l", "m", "o", "q", "p"}


@pytest.fixture(scope="module", autouse=True)
def _workers_know_the_double(spark: SparkSession, oracle: OracleDouble) -> Iterator[None]:
    """Spark's Python workers import the real library through ``oracle_shadow``."""
    from oracle_double import CLASS_PATH, class_path

    given: dict[str, str] = spark.sparkContext.environment
    given |= {"PYTHONPATH": str(_SHADOW), CLASS_PATH: class_path()}
    yield
    for name in ("PYTHONPATH", CLASS_PATH):
        del given[name]


class TestOracle(TableSinkSuite):
    # BOOLEAN is NUMBER(1), a DATE has a time of day, what is nested is JSON, and there is no empty text.
    values: ClassVar[Any] = {
        **{name: (kind, value, shown) for name, (kind, value, shown) in VALUES.items() if name not in _JSON},
        **{
            name: (
                VALUES[name][0],
                VALUES[name][1],
                json.dumps(VALUES[name][1], ensure_ascii=False, separators=(",", ":")),
            )
            for name in _JSON
        },
        "a": ("BOOLEAN", True, 1),
        "h": ("DATE", "2024-02-29", datetime(2024, 2, 29)),
        "j": (*VALUES["j"][:2], VALUES["i"][2]),
        "r": ("VARCHAR", "x", "x"),
    }

    @pytest.fixture
    def server(self, oracle: OracleDouble) -> TableServer:
        def rows(entity: str) -> list[Row]:
            return oracle.run(f"SELECT * FROM LEAT.{entity.upper()} ORDER BY 1")

        return TableServer("oracle", oracle.config(), {"password": PASSWORD}, rows)

    def test_an_empty_text_is_not_made_null(self, start: Callable[..., TableRun]) -> None:
        job = start("CREATE STREAM o WITH ('store'='x') AS SELECT id, name FROM s")
        job.give({"s": [["1", {"id": 1, "name": ""}, 1]]})
        failure = job.failure()
        assert "column name: it is empty, which Oracle keeps as NULL" in failure.detail
        assert job.rows() == []

    def test_nothing_of_a_batch_that_fails_is_written(self, start: Callable[..., TableRun]) -> None:
        job = start("CREATE STREAM o WITH ('store'='x') AS SELECT id, name FROM s")
        job.give(items(1))
        job.run()
        job.give({"s": [["2", {"id": 2, "name": "short"}, 2], ["3", {"id": 3, "name": "sesame" * 1000}, 3]]})
        detail = job.failure(job.attempt(2)).detail
        assert "column name: it is too long" in detail
        assert "sesame" not in detail
        assert [row[0] for row in job.rows()] == [1]

    def test_a_deleted_query_leaves_nothing(
        self, start: Callable[..., TableRun], oracle: OracleDouble
    ) -> None:
        job = start("CREATE CHANGELOG o WITH ('store'='x') AS SELECT id, name FROM c", CHANGES)
        job.give(changes((1, "a")))
        job.run()
        prefix = staged_prefix(job.spec.query_id)
        staged = f"SELECT TABLE_NAME FROM SYS.ALL_TABLES WHERE TABLE_NAME LIKE '{prefix}%'"
        counted = f"SELECT 1 FROM LEAT.LEATSTREAM_BATCHES WHERE QUERY = '{job.spec.query_id}'"
        assert (len(oracle.run(staged)), len(oracle.run(counted))) == (1, 1)
        for _ in range(2):
            job.target.forget_batches(job.spec.query_id, 10)
        assert (oracle.run(staged), oracle.run(counted)) == ([], [])
