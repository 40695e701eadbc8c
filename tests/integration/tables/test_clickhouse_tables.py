"""ClickHouse's sink in the suite of all table stores, and what is its own."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import clickhouse_connect
import pytest
from clickhouse_server import PASSWORD, USER, ClickHouseServer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from sink_suite import VALUES, TableSinkSuite, changes, items
from table_run import Row, TableRun, TableServer

from leatstream.connectors.clickhouse.sink import row_hash
from leatstream.connectors.entities import StoredView
from leatstream.formats import json_writing
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, LookupSpec, StoreRef

pytestmark = pytest.mark.spark
LOOKED_UP = {"s": {"columns": "d DECIMAL(9, 4), b BYTES, name VARCHAR"}}
_STREAM = "CREATE STREAM o WITH ('store'='x') AS SELECT id, name, n FROM s"
_GROUPS = "CREATE CHANGELOG o WITH ('store'='x') AS SELECT id, name FROM c"
CHANGES = {"c": {"columns": "id VARCHAR, name VARCHAR", "primary_key": ["id"]}}


def _shown(values: Mapping[str, tuple[str, Any, Any]]) -> dict[str, tuple[str, Any, Any]]:
    """ARRAY, MAP and STRUCT are kept as JSON, since only a text can be NULL; a text is bytes there."""
    found: dict[str, tuple[str, Any, Any]] = {}
    for name, (kind, given, shown) in values.items():
        if isinstance(shown, list | dict):
            shown = json.dumps(shown, separators=(",", ":"), ensure_ascii=False)
        if isinstance(shown, bytes):
            shown = shown.decode()
        found[name] = (kind, given, shown)
    return found


@pytest.fixture
def client(clickhouse: ClickHouseServer) -> Any:
    """A user's client of the server."""
    return clickhouse_connect.get_client(
        host="127.0.0.1", port=clickhouse.port, username=USER, password=PASSWORD, database="shop"
    )


def test_rows_that_differ_have_hashes_that_differ(spark: SparkSession) -> None:
    """By them a large batch is cut into inserts: where NULL stands counts, and a map has an order of its own."""
    rows = [
        "1, NULL, array(1, NULL), map('a', 1)",
        "NULL, 1, array(1, NULL), map('a', 1)",
        "1, NULL, array(NULL, 1), map('a', 1)",
        "1, NULL, array(1, NULL), map('a', NULL)",
        "1, NULL, array(1, NULL), NULL",
        "1, NULL, NULL, map('a', 1)",
    ]
    frame = spark.sql(f"SELECT * FROM VALUES {', '.join(f'({row})' for row in rows)} AS t(a, b, l, m)")
    hashes = row_hash([F.col(name) for name in "ablm"], [False, False, True, True])
    found = [row[0] for row in frame.select(hashes).collect()]
    assert len(set(found)) == len(rows)
    again = frame.repartition(3).select(hashes).collect()
    assert sorted(row[0] for row in again) == sorted(found)


class TestClickHouse(TableSinkSuite):
    values: ClassVar = _shown(VALUES)

    @pytest.fixture
    def server(self, clickhouse: ClickHouseServer, client: Any) -> TableServer:
        def rows(entity: str) -> list[Row]:
            engine = client.command(f"SELECT engine FROM system.tables WHERE name = '{entity}'")
            final = "FINAL" if engine == "ReplacingMergeTree" else ""
            found = client.query(f"SELECT COLUMNS('^[^_]') FROM {entity} {final} ORDER BY 1", tz_mode="aware")
            utc = ["'UTC'" in one.name for one in found.column_types]
            return [
                tuple(
                    value.replace(tzinfo=None) if value is not None and wall else value
                    for value, wall in zip(row, utc, strict=True)
                )
                for row in found.result_rows
            ]

        return TableServer("clickhouse", clickhouse.config(), {"password": PASSWORD}, rows)

    def test_values_that_are_no_numbers_arrive(self, start: Callable[..., TableRun]) -> None:
        sql = "CREATE STREAM o WITH ('store'='x') AS SELECT CAST('NaN' AS DOUBLE) AS a, CAST('-Infinity' AS FLOAT) AS b FROM s"
        job = start(sql)
        job.give(items(1))
        job.run()
        ((a, b),) = job.rows()
        assert (math.isnan(a), b) == (True, -math.inf)

    def test_a_key_may_be_null(self, start: Callable[..., TableRun]) -> None:
        job = start(
            "CREATE CHANGELOG o WITH ('store'='x') AS SELECT name, count(*) AS c FROM s GROUP BY name"
        )
        job.give({"s": [["1", {"id": 1, "name": None}, 1], ["2", {"id": 2, "name": "a"}, 1]]})
        job.run()
        job.give({"s": [["1", {"id": 3, "name": None}, 1]]})
        job.run()
        assert sorted(job.rows(), key=str) == [("a", 1), (None, 2)]

    def test_a_query_that_starts_over_replaces_what_it_wrote(self, start: Callable[..., TableRun]) -> None:
        """Batches of another checkpoint count from 0, but their rows are newer."""
        job = start(_GROUPS, CHANGES)
        for n in range(3):
            job.give(changes((1, f"old {n}"), (2, "old")))
            job.run()
        job.give(changes((1, "new"), (2, None)))
        fresh = {"attempt": 2, "checkpoint": job.spec.checkpoint.replace("/g1", "/g2")}
        job.run(job.spec.model_copy(update=fresh))
        assert job.rows() == [("1", "new")]

    def test_an_existing_tables_own_types(self, start: Callable[..., TableRun], client: Any) -> None:
        job = start(
            "CREATE STREAM o WITH ('store'='x') AS SELECT CAST(name AS BIGINT) AS u, n, name AS e, l, m, at, day FROM s",
            {
                "s": {
                    "columns": "name VARCHAR, n INTEGER, l ARRAY<VARCHAR>, m MAP<VARCHAR, INTEGER>,"
                    " at TIMESTAMP_LTZ, day DATE"
                }
            },
            make=False,
        )
        client.command(
            f"CREATE TABLE {job.table} (u UInt64, n Nullable(Float64), e Enum8('7' = 1), l Array(String),"
            " m Map(String, Nullable(Int32)), at DateTime('Europe/Berlin'), day Date, made DateTime DEFAULT now(),"
            " twice Int64 MATERIALIZED u * 2) ENGINE = MergeTree PARTITION BY u % 2 ORDER BY u"
        )
        full = {"name": "7", "n": 3, "l": ["a", "b"], "m": {"x": 1, "y": None}}
        full |= {"at": "2026-01-02T03:04:05Z", "day": "2149-06-06"}
        job.give({"s": [["1", full, 1]]})
        job.run()
        found = client.query(
            f"SELECT u, n, e, l, m, toString(at, 'UTC'), day, twice FROM {job.table}"
        ).result_rows
        ((*shown, day, twice),) = found
        assert shown == [7, 3.0, "7", ["a", "b"], {"x": 1, "y": None}, "2026-01-02 03:04:05"]
        assert (str(day), twice) == ("2149-06-06", 14)
        setting = client.command(f"SELECT engine_full FROM system.tables WHERE name = '{job.table}'")
        assert "non_replicated_deduplication_window = 1000" in setting

    def test_a_day_that_clickhouse_does_not_have(self, start: Callable[..., TableRun]) -> None:
        job = start("CREATE STREAM o WITH ('store'='x') AS SELECT day FROM s", {"s": {"columns": "day DATE"}})
        job.give({"s": [["1", {"day": "1899-12-31"}, 1]]})
        assert "column day: it is out of the range of Date32" in job.failure().detail
        assert job.rows() == []

    @pytest.mark.parametrize(
        ("sql", "engine", "words"),
        [
            (_STREAM, "Memory", "does not recognize a repeated insert"),
            (_STREAM, "ReplacingMergeTree ORDER BY id", "keeps one row of each key"),
            (_GROUPS, "MergeTree ORDER BY id", "no columns for the version and the deletion"),
            (_GROUPS, "ReplacingMergeTree(v) ORDER BY id", "no columns for the version and the deletion"),
            (_GROUPS, "ReplacingMergeTree(w, gone) ORDER BY id", "is not UInt64"),
            (_GROUPS, "ReplacingMergeTree(v, gone) ORDER BY (id, n)", "no unique key"),
            (_GROUPS, "ReplacingMergeTree(v, gone) ORDER BY lower(id)", "no unique key"),
        ],
    )
    def test_engines_that_would_lose_or_double_rows(
        self, start: Callable[..., TableRun], client: Any, sql: str, engine: str, words: str
    ) -> None:
        stream = sql is _STREAM
        job = start(sql, make=False) if stream else start(sql, CHANGES, make=False)
        kind = "Int64" if stream else "String"
        client.command(
            f"CREATE TABLE {job.table} (id {kind}, name Nullable(String), n Int32 DEFAULT 0, v UInt64, w UInt32,"
            f" gone UInt8) ENGINE = {engine}"
        )
        job.give(items(1) if stream else changes((1, "a")))
        assert words in job.failure().detail

    def test_a_users_own_version_columns(self, start: Callable[..., TableRun], client: Any) -> None:
        job = start(_GROUPS, CHANGES, make=False)
        client.command(
            f"CREATE TABLE {job.table} (id String, name String, v UInt64, gone UInt8)"
            " ENGINE = ReplacingMergeTree(v, gone) ORDER BY id"
        )
        job.give(changes((1, "a"), (2, "b"), (2, None), (3, None)))
        job.run()
        assert client.query(f"SELECT id, name FROM {job.table} FINAL").result_rows == [("1", "a")]
        assert client.query(f"SELECT count() FROM {job.table} WHERE gone").result_rows == [(2,)]

    def test_a_view_that_the_store_holds(self, start: Callable[..., TableRun], client: Any) -> None:
        job = start(
            "CREATE CHANGELOG o WITH ('store'='x') AS SELECT n, count(*) AS c FROM s GROUP BY n", make=False
        )
        columns = tuple(Column(c.name, parse_type(c.type), c.not_null) for c in job.spec.sink.columns)
        job.target.show_view(StoredView(job.table, columns, tuple(job.spec.sink.key_columns)))
        job.spec = job.spec.model_copy(
            update={"sink": job.spec.sink.model_copy(update={"stored_view": True})}
        )
        job.give(items(*range(14)))
        job.run()
        job.give(items(0, 1))
        job.run(job.attempt(2))
        shown = f"SELECT * FROM {job.table} ORDER BY n"
        assert client.query(shown).result_rows == [(0, 3), (1, 3), *((i, 2) for i in range(2, 7))]
        job.give(items(3))
        fresh = {"attempt": 3, "checkpoint": job.spec.checkpoint.replace("/g1", "/g2")}
        job.run(job.spec.model_copy(update=fresh))
        # The new checkpoint reads all files again.
        assert client.query(shown).result_rows == [
            (0, 3),
            (1, 3),
            (2, 2),
            (3, 3),
            *((i, 2) for i in range(4, 7)),
        ]
        job.target.drop_view(job.table)

    def test_rows_are_looked_up_by_tasks(
        self, start: Callable[..., TableRun], spark: SparkSession, client: Any
    ) -> None:
        job = start("CREATE STREAM o WITH ('store'='x') AS SELECT d, b, name FROM s", LOOKED_UP)
        job.give({"s": [[None, {"d": d, "b": "AAH/", "name": d}, 1] for d in ("12.50", "13")]})
        job.run()
        spec = LookupSpec(
            view="v",
            relation="r",
            store=StoreRef(name="target", kind="clickhouse", config={}),
            entity=job.table,
            columns=[ColumnSpec(name=c.name, type=c.type) for c in job.spec.sink.columns],
            left="l",
            keys=["d", "b"],
            values=[],
        )
        reader = job.target.table_reader(spec)
        wanted = spark.sql("SELECT CAST(12.5 AS DECIMAL(9, 4)) AS k0, unhex('0001FF') AS k1")
        keys = wanted.select(*reader.texts([F.col("k0"), F.col("k1")], json_writing.nested))
        (found,) = reader.rows(keys).collect()
        assert json.loads(found["value"]) == {"d": "12.5", "b": "AAH/", "name": "12.50"}
