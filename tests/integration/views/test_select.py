"""SELECT over views gives what Spark gives for the same text over the same rows, on SQLite and on PostgreSQL."""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from leatstream.errors import LeatstreamError
from leatstream.model.names import Fqn
from leatstream.model.objects import Column, Meta, Relation, RelationKind
from leatstream.model.types import DataType, parse_type
from leatstream.model.view_values import encode
from leatstream.plan.job_spec import ColumnSpec, JobSpec, SinkSpec, StoreRef, ViewSpec
from leatstream.ports import Snapshot, ViewStore
from leatstream.services.selects.snapshots import reader
from leatstream.sql.parser import parse
from leatstream.sql.snapshot.compiler import compile_select
from leatstream.sql.snapshot.shared import Source
from leatstream.sql.statements import Name, Select
from leatstream.views.base import Batch
from leatstream.views.opening import view_writer

pytestmark = pytest.mark.core

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
META = Meta(id="r", generation=1, created_at=NOW, updated_at=NOW, created_by="admin", owner="admin")
NAN, INF = math.nan, math.inf
VISITS = (
    "k VARCHAR, b BOOLEAN, i INTEGER, n BIGINT, r DOUBLE, d DECIMAL(10, 2), e DECIMAL(20, 6), day DATE, at TIMESTAMP,"
    " utc TIMESTAMP_LTZ",
    [
        (
            "a",
            True,
            1,
            10,
            1.5,
            "1.50",
            "0.000001",
            "2026-01-01",
            "2026-01-01 00:00:00",
            "2026-01-01 00:00:00",
        ),
        (
            "a",
            False,
            2,
            20,
            -2.5,
            "-2.50",
            "12.5",
            "2025-12-31",
            "2025-12-31 23:59:59.999999",
            "2026-01-01 12:00:00",
        ),
        (
            "B",
            None,
            -3,
            30,
            NAN,
            "10.00",
            "-12.500001",
            "2024-02-29",
            "2024-02-29 06:07:08.5",
            "2024-02-29 00:00:00",
        ),
        ("ß", True, 7, -(2**40), INF, "99999999.99", None, "1969-07-20", "1969-07-20 20:17:40.000001", None),
        ("", True, 0, 0, 0.0, "0.00", "0", "2026-06-15", "2026-06-15 12:30:00", "2026-06-15 12:30:00"),
        (None, None, None, None, None, None, None, None, None, None),
        (
            " x_%y ",
            False,
            5,
            5,
            1e300,
            "0.05",
            "3.333333",
            "2026-03-01",
            "2026-03-01 01:01:01",
            "2026-03-01 01:01:01",
        ),
    ],
)
USERS = (
    "k VARCHAR, city VARCHAR, rank INTEGER",
    [("a", "Ulm", 1), ("B", "Ürzig", 2), ("z", None, 3), (None, "nowhere", 4)],
)
# Each is sorted whole, so that rows can be compared one by one.
QUERIES = """
SELECT k, b, i, n, r, d, e, day, at, utc FROM visits ORDER BY i
SELECT * FROM visits WHERE i > 1 ORDER BY i DESC
SELECT k FROM visits ORDER BY k
SELECT k FROM visits ORDER BY k DESC NULLS FIRST
SELECT r FROM visits ORDER BY r
SELECT d, e FROM visits ORDER BY e, d
SELECT d FROM visits ORDER BY d DESC LIMIT 3
SELECT i FROM visits ORDER BY i LIMIT 2 OFFSET 2
SELECT i FROM visits WHERE d = 1.5 OR d = 10 OR d > 99999999.985 ORDER BY i
SELECT i FROM visits WHERE e < 0 OR d < 0 ORDER BY i
SELECT i FROM visits WHERE d > e ORDER BY i
SELECT i FROM visits WHERE d > i ORDER BY i
SELECT i FROM visits WHERE d < r ORDER BY i
SELECT i FROM visits WHERE r = 1.5 OR i = 2.0 ORDER BY i
SELECT i FROM visits WHERE r > 1e299 ORDER BY i
SELECT i FROM visits WHERE k IN ('a', 'ß') AND i NOT IN (2, 3) ORDER BY i
SELECT i FROM visits WHERE n BETWEEN 5 AND 20 ORDER BY i
SELECT i FROM visits WHERE k IS NULL OR k = '' ORDER BY i
SELECT i FROM visits WHERE b IS TRUE ORDER BY i
SELECT i FROM visits WHERE NOT b ORDER BY i
SELECT i FROM visits WHERE b IS DISTINCT FROM TRUE ORDER BY i
SELECT i FROM visits WHERE k LIKE 'A%' OR k LIKE '_' ORDER BY i
SELECT i FROM visits WHERE k LIKE ' x\\_\\%%' ESCAPE '\\' ORDER BY i
SELECT i FROM visits WHERE k LIKE '%\\%' OR k LIKE concat(' x', '_%') ORDER BY i
SELECT i FROM visits WHERE k ILIKE 'b' OR k LIKE '%!_!%%' ESCAPE '!' ORDER BY i
SELECT i FROM visits WHERE day = DATE '2024-02-29' OR at > TIMESTAMP '2026-06-01 00:00:00' ORDER BY i
SELECT i FROM visits WHERE day >= '2026-01-01' AND at < '2026-06-01 00:00:00' ORDER BY i
SELECT i FROM visits WHERE utc > at ORDER BY i
SELECT i FROM visits WHERE day = at ORDER BY i
SELECT i, i + 1 AS a, i - 1 AS b, i * 2 AS c, i / 4 AS d, i % 2 AS e, -i AS f FROM visits ORDER BY i
SELECT i, n / 7 AS a, -n / 3 AS b, 7 / 2 AS c, n / 2.0 AS f FROM visits ORDER BY i
SELECT i FROM visits WHERE i <> 0 AND n / i > 3 ORDER BY i
SELECT i, n * 1000000 AS a, n DIV 7 AS b, n % 7 AS c, mod(n, -7) AS f FROM visits ORDER BY i
SELECT i, r + 1 AS a, r * 2 AS b, r / 3 AS c, r - i AS e, -r AS f FROM visits ORDER BY i
SELECT i, d + e AS a, d - 1 AS b, d * d AS c, d / 3 AS f, d % 3 AS g, -d AS h FROM visits ORDER BY i
SELECT i, e / 7 AS a, e * e AS b, d DIV 3 AS c, d * i AS f, d + r AS g FROM visits ORDER BY i
SELECT i, abs(d) AS a, round(d, 1) AS b, floor(d) AS c, ceil(d) AS f, sign(d) AS g FROM visits ORDER BY i
SELECT i, abs(i) AS a, abs(r) AS b, round(n, -1) AS c FROM visits ORDER BY i
SELECT i, round(r, 0) AS a, floor(r) AS b, sqrt(abs(r)) AS c FROM visits WHERE i IN (0, 1, 2) ORDER BY i
SELECT i, power(i, 2) AS a, exp(0) AS b, ln(1) AS c, greatest(i, 2) AS f, least(d, 1) AS g FROM visits ORDER BY i
SELECT k, upper(k) AS a, lower(k) AS b, length(k) AS c, reverse(k) AS d, trim(k) AS e FROM visits ORDER BY k
SELECT k, ltrim(k) AS a, rtrim(k) AS b, k || '-' || k AS c, concat(k, 'ü') AS d FROM visits ORDER BY k
SELECT k, substring(k, 2) AS a, substring(k, -2, 1) AS b, substr(k, 0, 2) AS c, left(k, 2) AS d FROM visits ORDER BY k
SELECT k, right(k, 2) AS a, lpad(k, 4, 'ab') AS b, rpad(k, 3, 'z') AS c, replace(k, 'x', 'yy') AS d FROM visits ORDER BY k
SELECT k, startswith(k, ' ') AS a, contains(k, '_') AS b, instr(k, 'x') AS c, locate('y', k) AS d FROM visits ORDER BY k
SELECT i, coalesce(k, 'none') AS a, nullif(k, 'a') AS b, if(b, 1, 2) AS c, nvl2(k, 'y', 'n') AS d FROM visits ORDER BY i
SELECT i, CASE WHEN i > 1 THEN 'many' WHEN i = 1 THEN 'one' ELSE 'none' END AS a, CASE k WHEN 'a' THEN 1.5 END AS b FROM visits ORDER BY i
SELECT i, year(day) AS a, quarter(at) AS b, month(at) AS c, day(at) AS d, hour(at) AS e, minute(at) AS f, second(at) AS g FROM visits ORDER BY i
SELECT i, dayofweek(day) AS a, dayofyear(day) AS b, EXTRACT(WEEK FROM day) AS c, EXTRACT(DOW FROM at) AS d FROM visits ORDER BY i
SELECT i, date_trunc('month', at) AS a, date_trunc('week', at) AS b, date_trunc('quarter', at) AS c, date_trunc('minute', at) AS d FROM visits ORDER BY i
SELECT i, at + INTERVAL '90' MINUTE AS a, at - INTERVAL '1' DAY AS b, at + INTERVAL '1' MONTH AS c, at - INTERVAL '1' YEAR AS d FROM visits ORDER BY i
SELECT i, date_add(day, 3) AS a, date_sub(day, 60) AS b, datediff(day, DATE '2026-01-01') AS c FROM visits ORDER BY i
SELECT i, unix_seconds(utc) AS a, unix_millis(utc) AS b FROM visits ORDER BY i
SELECT i, CAST(i AS VARCHAR) AS a, CAST(d AS VARCHAR) AS b, CAST(day AS VARCHAR) AS c, CAST(at AS VARCHAR) AS d, CAST(b AS VARCHAR) AS e FROM visits ORDER BY i
SELECT i, CAST(d AS INTEGER) AS a, CAST(d AS DOUBLE) AS b, CAST(i AS DECIMAL(12, 3)) AS c, CAST(e AS DECIMAL(10, 1)) AS f FROM visits ORDER BY i
SELECT i, CAST(at AS DATE) AS a, CAST(day AS TIMESTAMP) AS b, CAST('12.5' AS DECIMAL(4, 2)) AS c, CAST(' 7 ' AS INTEGER) AS d FROM visits ORDER BY i
SELECT i, CAST(i AS TINYINT) AS a, CAST(n AS SMALLINT) AS b FROM visits WHERE n BETWEEN 0 AND 100 ORDER BY i
SELECT count(*) AS a, count(k) AS b, count(DISTINCT k) AS c, sum(i) AS d, avg(i) AS e, min(k) AS f, max(k) AS g FROM visits
SELECT sum(d) AS a, avg(d) AS b, min(d) AS c, max(e) AS f, sum(e) AS g, avg(e) AS h FROM visits
SELECT min(r) AS a, max(r) AS b, min(at) AS c, max(day) AS d, min(b) AS e, max(b) AS f FROM visits
SELECT sum(r) AS a, avg(r) AS b FROM visits WHERE i IN (0, 1, 2)
SELECT sum(i) AS a, count(*) AS b, avg(d) AS c, max(k) AS d FROM visits WHERE i > 1000
SELECT count_if(b) AS a, bool_and(b) AS c, bool_or(b) AS d, sum(DISTINCT i) AS e FROM visits
SELECT k, count(*) AS c, sum(i) AS s FROM visits GROUP BY k ORDER BY k
SELECT b, max(d) - min(d) AS spread FROM visits GROUP BY b ORDER BY b
SELECT i % 2 AS odd, count(*) AS c FROM visits GROUP BY i % 2 ORDER BY i % 2
SELECT upper(k) AS u, sum(n) AS s FROM visits GROUP BY upper(k) HAVING count(*) > 1 ORDER BY u
SELECT k FROM visits GROUP BY k ORDER BY count(*) DESC, k LIMIT 2
SELECT date_trunc('year', at) AS y, count(*) AS c FROM visits GROUP BY date_trunc('year', at) ORDER BY 1
SELECT v.i, u.city FROM visits v JOIN users u ON v.k = u.k ORDER BY v.i
SELECT v.i, u.city FROM visits v LEFT JOIN users u ON v.k = u.k AND u.rank < 2 ORDER BY v.i
SELECT v.i, u.rank FROM visits v RIGHT JOIN users u ON v.k = u.k ORDER BY v.i, u.rank
SELECT v.i, u.rank FROM visits v FULL JOIN users u ON v.k = u.k ORDER BY v.i, u.rank
SELECT v.i, u.rank FROM visits v FULL JOIN users u ON v.k = u.k AND v.i <= u.rank ORDER BY v.i, u.rank
SELECT i, day + INTERVAL '1' DAY AS a, day - INTERVAL '1' MONTH AS b, round(d) AS e FROM visits ORDER BY i
SELECT count(*) AS c FROM visits CROSS JOIN users
SELECT u.city, count(*) AS c, sum(v.d) AS s FROM users u JOIN visits v ON u.k = v.k GROUP BY u.city ORDER BY u.city
SELECT a.i, b.i AS j FROM visits a JOIN visits b ON a.i < b.i WHERE a.k = b.k ORDER BY a.i
SELECT DISTINCT k FROM visits ORDER BY k
SELECT DISTINCT b, i > 1 AS c FROM visits ORDER BY b, c
SELECT k FROM visits UNION SELECT k FROM users ORDER BY k
SELECT k, i FROM visits WHERE i > 1 UNION ALL SELECT k, rank FROM users ORDER BY i, k
SELECT * FROM (SELECT k, count(*) AS c FROM visits GROUP BY k) AS t WHERE c > 1
WITH big AS (SELECT * FROM visits WHERE i > 1) SELECT a.i, b.i AS j FROM big a JOIN big b ON a.i = b.i ORDER BY a.i
SELECT i FROM visits WHERE k IN (SELECT k FROM users WHERE rank < 3) ORDER BY i
SELECT i FROM (SELECT i FROM visits ORDER BY i DESC LIMIT 2) t ORDER BY i
SELECT i, CAST(r AS FLOAT) AS a, CAST(d AS FLOAT) AS b, CAST(n AS FLOAT) AS c, CAST(e AS FLOAT) / 3 AS f FROM visits ORDER BY i
SELECT i, CAST(d AS FLOAT) + CAST(i AS FLOAT) AS a, CAST(e AS FLOAT) * CAST(d AS FLOAT) AS b, -CAST(d AS FLOAT) AS f, CAST(e AS FLOAT) + 1 AS g FROM visits ORDER BY i
SELECT i, CAST(d AS FLOAT) % CAST(3 AS FLOAT) AS a, CAST(CAST(e AS FLOAT) AS DECIMAL(12, 9)) AS b, abs(CAST(e AS FLOAT)) AS c FROM visits ORDER BY i
SELECT sum(CAST(e AS FLOAT)) AS a, avg(CAST(d AS FLOAT)) AS b, max(CAST(e AS FLOAT)) AS c FROM visits WHERE i < 6
SELECT i FROM visits WHERE CAST(e AS FLOAT) = e OR CAST(d AS FLOAT) = CAST(1.5 AS FLOAT) ORDER BY i
SELECT CAST('0.1' AS FLOAT) AS a, CAST(16777217 AS FLOAT) AS b, CAST(9007199791611905 AS FLOAT) AS c, CAST(1e-300 AS FLOAT) AS d, CAST(-1e39 AS FLOAT) AS e FROM users WHERE rank = 1
SELECT round(CAST(2.35 AS FLOAT), 1) AS a, greatest(CAST(0.1 AS FLOAT), 0) AS b, coalesce(CAST(0.1 AS FLOAT), 1.5) AS c, sqrt(CAST(0.1 AS FLOAT)) AS d FROM users WHERE rank = 1
SELECT CAST(9007199254740993e0 AS BIGINT) AS a, CAST(0.1234567890123456e0 AS DECIMAL(20, 18)) AS b, round(1234567.1234567895e0, 9) AS c FROM users WHERE rank = 1
SELECT i, day + INTERVAL '5' HOUR AS a, day - INTERVAL '90' SECOND AS b, day + INTERVAL '1' WEEK AS c, at + INTERVAL '1' WEEK AS d, utc - INTERVAL '3' MINUTE AS e FROM visits ORDER BY i
SELECT i, coalesce(utc, at) AS a, least(day, utc) AS b, greatest(day, at) AS c FROM visits ORDER BY i
SELECT i FROM visits WHERE EXISTS (SELECT k FROM users WHERE rank > 3) AND NOT EXISTS (SELECT 1 FROM users WHERE rank > 4) ORDER BY i
SELECT i FROM visits WHERE k NOT IN (SELECT k FROM users WHERE k IS NOT NULL) ORDER BY i
SELECT k FROM visits EXCEPT SELECT k FROM users ORDER BY k
SELECT k, i FROM visits INTERSECT SELECT k, rank FROM users ORDER BY k
SELECT r, d FROM visits MINUS SELECT r, d FROM visits WHERE i > 1 ORDER BY r
SELECT k, NULL AS n, NULL AS d, NULL AS at, NULL AS x FROM users UNION ALL SELECT k, n, d, at, NULL AS x FROM visits ORDER BY k, n
SELECT i, n FROM visits UNION SELECT rank, NULL AS n FROM users UNION SELECT NULL AS i, 5 AS n FROM users WHERE rank = 1 ORDER BY i, n
SELECT CAST('2026' AS DATE) AS a, CAST('2026-1' AS DATE) AS b, CAST('2026-1-1 noon' AS DATE) AS c, CAST('2026-1-1T1:2:3.5' AS TIMESTAMP) AS d, CAST('2026-01-01 00:00:00+01:00' AS TIMESTAMP) AS e FROM users WHERE rank = 1
SELECT i FROM visits WHERE day >= '2026' AND at < '2026-6' ORDER BY i
SELECT lower(city) AS a, upper(city) AS b FROM users UNION SELECT k, city FROM users ORDER BY a, b
SELECT i FROM visits WHERE upper(k) = k OR lower(k) < 'b' OR k IN (SELECT lower(k) FROM visits) ORDER BY lower(k), i
SELECT min(lower(city)) AS a, max(upper(city)) AS b, max(CASE WHEN rank = 1 THEN 'b' ELSE 'A' END) AS c FROM users
SELECT i FROM visits WHERE k BETWEEN 'A' AND 'ab' OR k BETWEEN upper('b') AND lower('B') ORDER BY CAST(b AS VARCHAR), i
SELECT NULL AS n FROM users UNION SELECT NULL AS n FROM visits EXCEPT SELECT i FROM visits WHERE i IS NULL ORDER BY n
SELECT k FROM users UNION SELECT k FROM visits INTERSECT SELECT k FROM users EXCEPT SELECT k FROM users WHERE rank = 2 UNION ALL SELECT k FROM users WHERE rank = 1 ORDER BY k
SELECT v.i, u.rank FROM visits v, users u WHERE v.k = u.k ORDER BY v.i
SELECT i FROM visits ORDER BY i FETCH FIRST 2 ROWS ONLY
SELECT 1 AS a, 2.50 AS b, 1e3 AS c, 'x' AS d, TRUE AS e, NULL AS f, DATE '2026-01-01' AS g FROM users WHERE rank = 1
SELECT current_date AS a, 3000000000 AS b, 12345678901234567890 AS c FROM users WHERE rank = 1
""".strip().splitlines()
WRONG = [
    ("SELECT i / 0 AS a FROM visits", "22012"),
    ("SELECT (n - n - 9223372036854775807 - 1) / (i - i - 1) AS a FROM visits", "22003"),
    ("SELECT d / 0 AS a FROM visits", "22012"),
    ("SELECT r / 0 AS a FROM visits", "22012"),
    ("SELECT n * n * n AS a FROM visits", "22003"),
    ("SELECT CAST(n AS INTEGER) AS a FROM visits", "22003"),
    ("SELECT CAST(k AS INTEGER) AS a FROM visits", "22018"),
    ("SELECT CAST('1.5' AS INTEGER) AS a FROM visits", "22018"),
    ("SELECT CAST('1e3' AS BIGINT) AS a FROM visits", "22018"),
    ("SELECT CAST('1_000' AS DOUBLE) AS a FROM visits", "22018"),
    ("SELECT CAST('99999999999999999999' AS BIGINT) AS a FROM visits", "22003"),
    ("SELECT CAST('1e1000000' AS DECIMAL(38, 0)) AS a FROM visits", "22003"),
    ("SELECT d * d * d * d * d * d AS a FROM visits", "22003"),
]


def python(text: Any, kind: DataType) -> Any:
    """A value of the table above as Python has it."""
    if text is None:
        return None
    if kind.kind == "DECIMAL":
        return Decimal(text)
    if kind.kind == "DATE":
        return date.fromisoformat(text)
    if kind.kind == "TIMESTAMP":
        return datetime.fromisoformat(text)
    return datetime.fromisoformat(text).replace(tzinfo=UTC) if kind.kind == "TIMESTAMP_LTZ" else text


class World:
    """Two views, with the same rows in a view store."""

    def __init__(self, store: ViewStore) -> None:
        self.store = store
        self.sources: dict[str, Source] = {}
        self.tables: list[tuple[str, int]] = []
        for i, (name, (columns, rows)) in enumerate((("visits", VISITS), ("users", USERS))):
            self.sources[name] = self._fill(i, name, columns, rows)

    def _fill(self, place: int, name: str, columns: str, rows: list[Any]) -> Source:
        struct, table = parse_type(f"STRUCT<{columns}>"), f"qry_{uuid.uuid4().hex}"
        pairs = list(zip(struct.fields, struct.arguments, strict=True))
        spec = JobSpec(
            query_id=table,
            query_name=name,
            generation=1,
            attempt=1,
            fencing_token="",
            sql="",
            sources=[],
            mode="micro_batch",
            mode_reason="",
            checkpoint="",
            sink=SinkSpec(
                relation=name,
                store=StoreRef(name="", kind="view", config={}),
                entity="",
                columns=[ColumnSpec(name=n, type=str(t)) for n, t in pairs],
                value_format="",
                view=ViewSpec(table=table, generation=1, database=self.store.database),
            ),
        )
        writer = view_writer(spec, self.store.password)
        writer.open()
        values = [tuple(python(v, t) for v, (_, t) in zip(row, pairs, strict=True)) for row in rows]
        if not writer.native:
            values = [tuple(encode(v, t) for v, (_, t) in zip(row, pairs, strict=True)) for row in values]
        writer.apply(Batch(0, values, [], 0))
        writer.close()
        self.tables.append((table, 1))
        relation = Relation(
            meta=META,
            fqn=Fqn("demo", "public", name),
            kind=RelationKind.MATERIALIZED_VIEW,
            columns=tuple(Column(n, t) for n, t in pairs),
            store="",
            entity="",
            value_format="",
        )
        place_ = f"v{place}.leat_rows" if self.store.kind == "sqlite" else f"leatstream_views.{table}"
        return Source(relation, place_)

    def select(self, text: str, most: int = 1000) -> list[list[Any]]:
        """Rows of a SELECT, as the statement would show them."""
        (statement,) = parse(text)
        assert isinstance(statement, Select)

        def resolve(name: Name) -> Source:
            return self.sources[name.parts[-1]]

        made = compile_select(statement.select, resolve, self.store.kind, NOW)
        rows, _ = self.store.read(Snapshot(made.sql, made.parameters, self.tables, most, 20))
        shown = [reader(kind, self.store.kind == "sqlite") for _, kind in made.columns]
        return [[show(v) for show, v in zip(shown, row, strict=True)] for row in rows]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    from leatstream.views.stores import open_views

    postgresql = request.param == "postgresql"
    url = request.getfixturevalue("postgresql") if postgresql else "sqlite:///catalog.db"
    made = World(open_views(url, tmp_path_factory.mktemp("views")))
    yield made
    for table, _ in made.tables:
        made.store.drop(table)


@pytest.fixture(scope="module")
def with_tables(spark: SparkSession) -> SparkSession:
    """Spark with the tables' rows."""
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    for name, (columns, rows) in (("visits", VISITS), ("users", USERS)):
        struct = parse_type(f"STRUCT<{columns}>")
        values = [tuple(python(v, t) for v, t in zip(row, struct.arguments, strict=True)) for row in rows]
        ddl = ", ".join(f"`{n}` {t.spark()}" for n, t in zip(struct.fields, struct.arguments, strict=True))
        spark.createDataFrame(values, ddl).coalesce(1).createOrReplaceTempView(name)
    return spark


@pytest.fixture(scope="module")
def spark_says(with_tables: SparkSession) -> Callable[[str], list[list[Any]]]:
    """Spark's rows, in the same words."""
    known: dict[str, list[list[Any]]] = {}

    def rows(text: str) -> list[list[Any]]:
        if text not in known:
            # Two types have other names there.
            theirs = text.replace("AS VARCHAR)", "AS STRING)").replace("AS TIMESTAMP)", "AS TIMESTAMP_NTZ)")
            theirs = re.sub("FETCH FIRST (.*) ROWS ONLY", r"LIMIT \1", theirs)
            theirs = theirs.replace(r"ESCAPE '\'", r"ESCAPE '\\'")  # there a backslash escapes in literals
            theirs = re.sub(r"\b([in7]) / ([in]|\d)(?!\.)", r"\1 DIV \2", theirs)  # ours for whole numbers
            table = with_tables.sql(theirs).toArrow()
            columns = [table.column(i).to_pylist() for i in range(table.num_columns)]
            known[text] = [[plain(v) for v in row] for row in zip(*columns, strict=True)]
        return known[text]

    return rows


def plain(value: Any) -> Any:
    """A value of either side in comparable form: numbers by value, times as text."""
    if isinstance(value, float):
        return str(value).replace("nan", "NaN") if not math.isfinite(value) else float(f"{value:.12g}")
    if isinstance(value, Decimal):
        return value.normalize() + 0
    if isinstance(value, datetime):
        text = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        shown = text.isoformat(" ", "microseconds").rstrip("0").rstrip(".")
        return shown + ("Z" if value.tzinfo else "")
    return value.isoformat() if isinstance(value, date) else value


def same(ours: Any, theirs: Any) -> bool:
    """Whether our JSON value is Spark's value."""
    if isinstance(theirs, Decimal):
        return Decimal(ours) == theirs if isinstance(ours, str) else Decimal(str(ours)) == theirs
    if isinstance(theirs, float):
        return plain(float(ours)) == theirs
    if isinstance(ours, str) and theirs in ("inf", "-inf", "NaN"):
        return {"Infinity": "inf", "-Infinity": "-inf"}.get(ours, ours) == theirs
    return type(ours) is type(theirs) and ours == theirs


@pytest.mark.spark
@pytest.mark.parametrize("text", QUERIES)
def test_it_answers_as_spark(world: World, spark_says: Callable[[str], list[list[Any]]], text: str) -> None:
    expected = spark_says(text)
    if "current_date" in text:
        expected = [["2026-01-02", *row[1:]] for row in expected]
    found = world.select(text)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert all(same(o, t) for o, t in zip(ours, theirs, strict=True)), (ours, theirs)


@pytest.mark.parametrize(("text", "sqlstate"), WRONG)
def test_what_cannot_be_computed_is_told(world: World, text: str, sqlstate: str) -> None:
    with pytest.raises(LeatstreamError) as told:
        world.select(text)
    assert told.value.code == "not-computable"
    assert told.value.sqlstate in (sqlstate, "22P02")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT k, NULL AS n FROM users UNION ALL SELECT k, n FROM visits WHERE i > 5 ORDER BY n, k",
            [None] * 4,
        ),
        ("SELECT n FROM visits WHERE i > 5 UNION SELECT NULL AS n FROM users ORDER BY n", [None]),
        ("SELECT n FROM visits WHERE i > 5 EXCEPT SELECT NULL AS n FROM users", []),
        (
            "SELECT NULL AS n FROM users UNION SELECT NULL AS n FROM users UNION SELECT n FROM visits WHERE i > 5",
            [None],
        ),
    ],
)
def test_a_null_is_of_the_other_side_s_type(world: World, text: str, expected: list[Any]) -> None:
    """PostgreSQL takes it for a text."""
    found = [row[-1] for row in world.select(text)]
    assert sorted(found, key=str) == sorted([*expected, -(2**40)], key=str)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT k FROM users WHERE k = lower(k) OR upper(k) = k ORDER BY k", ["B", "a", "z"]),
        ("SELECT k FROM users WHERE k IN (SELECT upper(k) FROM visits) ORDER BY k", ["B"]),
        ("SELECT lower(k) AS k FROM users UNION SELECT k FROM users ORDER BY k", [None, "B", "a", "b", "z"]),
        (
            "SELECT k FROM users UNION ALL SELECT 'C' AS k FROM users ORDER BY k",
            [None, "B", *"CCCC", "a", "z"],
        ),
        ("SELECT coalesce(lower(city), k) AS c FROM users ORDER BY c", ["nowhere", "ulm", "z", "ürzig"]),
        ("SELECT lower(city) AS c FROM users ORDER BY lower(city)", [None, "nowhere", "ulm", "ürzig"]),
        ("SELECT max(lower(city)) AS c FROM users", ["ürzig"]),
        ("SELECT min(upper(city)) AS c FROM users WHERE upper(city) > 'Z'", ["ÜRZIG"]),
        ("SELECT city FROM users WHERE city ILIKE 'ÜR%'", ["Ürzig"]),
        ("SELECT upper(NULL) AS c FROM users WHERE rank = 1", [None]),
        ("SELECT CASE WHEN rank = 1 THEN 'b' ELSE 'C' END AS c FROM users ORDER BY c", [*"CCC", "b"]),
        ("SELECT rank FROM users WHERE 'B' < 'a' AND k BETWEEN 'A' AND 'a' ORDER BY rank", [1, 2]),
        ("SELECT upper('b') AS c FROM users WHERE upper('b') BETWEEN 'A' AND lower('A') LIMIT 1", ["B"]),
        ("SELECT max(CASE WHEN rank = 1 THEN CAST(TRUE AS VARCHAR) ELSE 'U' END) AS c FROM users", ["true"]),
        (
            "SELECT i FROM visits WHERE CAST(at AS VARCHAR) > '2026-01-01 00:00:00' ORDER BY CAST(b AS VARCHAR)",
            [5, 0],
        ),
    ],
)
def test_texts_sort_by_code_point_whatever_the_database_does(world: World, text: str, expected: Any) -> None:
    assert [row[0] for row in world.select(text)] == expected


def test_short_dates_are_read(world: World) -> None:
    text = "SELECT i, CAST('2026' AS DATE) AS a, CAST('2026-1-1T1:2:3.5' AS TIMESTAMP) AS b FROM visits"
    assert world.select(f"{text} WHERE day >= '2026' AND at < '2026-6' ORDER BY i") == [
        [1, "2026-01-01", "2026-01-01 01:02:03.5"],
        [5, "2026-01-01", "2026-01-01 01:02:03.5"],
    ]


def test_time_runs_out(world: World) -> None:
    many = " CROSS JOIN ".join(f"visits t{i}" for i in range(12))
    (statement,) = parse(f"SELECT count(*) AS c FROM {many}")
    assert isinstance(statement, Select)
    made = compile_select(statement.select, lambda n: world.sources[n.parts[-1]], world.store.kind, NOW)
    with pytest.raises(LeatstreamError) as told:
        world.store.read(Snapshot(made.sql, made.parameters, world.tables, 10, 0.2))
    assert told.value.code == "statement-timeout"


def test_no_more_rows_are_made_than_are_read(world: World) -> None:
    many = " CROSS JOIN ".join(f"visits t{i}" for i in range(12))
    assert len(world.select(f"SELECT t1.i FROM {many}", most=10)) == 10


def test_texts_have_a_bound(world: World) -> None:
    with pytest.raises(LeatstreamError) as told:
        world.select("SELECT rpad(k, i * 400000000, 'ab') AS a FROM visits WHERE i = 1")
    assert (told.value.code, told.value.sqlstate) == ("not-computable", "54000")
    with pytest.raises(LeatstreamError) as told:
        world.select(
            "SELECT rpad(a.k, 900000, 'ab') AS a FROM visits a CROSS JOIN visits b CROSS JOIN users c"
        )
    assert "64 MiB" in told.value.faults[0].detail
