"""Streams joined with tables of a real PostgreSQL, batch by batch, as real Spark does it."""

from __future__ import annotations

import functools
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from postgres_server import PASSWORD, PostgresServer
from psycopg import sql
from pyspark.sql import SparkSession
from test_changelogs import META, Run

from leatstream.connectors import table_lookup
from leatstream.connectors.base import Connector
from leatstream.connectors.entities import Table as StoreTable
from leatstream.connectors.entities import TableColumn
from leatstream.connectors.postgres import lookup as postgres_lookup
from leatstream.connectors.postgres.workers import kept_connection
from leatstream.connectors.registry import open_connector
from leatstream.errors import LeatstreamError
from leatstream.model.names import Fqn
from leatstream.model.objects import Column, Relation, RelationKind
from leatstream.model.types import parse_type
from leatstream.plan.change import classify as classify_change
from leatstream.plan.job_spec import ColumnSpec, LookupSpec, StoreRef
from leatstream_jobs.attempt import run_query
from leatstream_jobs.attempt.failures import Failure, chain_of, classify

pytestmark = pytest.mark.spark
ORDERS = {"s": {"columns": "id BIGINT, item VARCHAR, shop INTEGER, price DECIMAL(10,2), at TIMESTAMP"}}
MAKE = """
CREATE SCHEMA {schema};
CREATE TABLE {schema}.items (item text PRIMARY KEY, name varchar(20), price numeric(12,4), tags text[], doc jsonb);
CREATE TABLE {schema}.stock (shop smallint NOT NULL, item text NOT NULL, n integer, made timestamptz, PRIMARY KEY (shop, item));
CREATE TABLE {schema}.offers (item text, percent double precision);
CREATE INDEX ON {schema}.offers (item);
CREATE TABLE {schema}.codes (code uuid PRIMARY KEY, day date, raw bytea, flag boolean, "Order" bigint, mood text);
GRANT ALL ON SCHEMA {schema} TO shop;
GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO shop;
INSERT INTO {schema}.items VALUES
  ('lamp', 'a lamp', 12.5, '{{a,"b \\"c"}}', '{{"k": 1}}'), ('chair', E'a\\tchair\\n', 99, NULL, NULL), ('unread', NULL, 1, NULL, NULL);
INSERT INTO {schema}.stock VALUES (1, 'lamp', 10, '2026-01-01 12:00+02'), (2, 'lamp', 20, NULL), (1, 'chair', 5, NULL);
INSERT INTO {schema}.offers VALUES ('lamp', 10), ('lamp', 20), (NULL, 30), ('zero', 0);
INSERT INTO {schema}.codes VALUES ('00000000-0000-0000-0000-00000000000a', '2026-02-03', '\\x00ff', true, 7, 'fine');
"""


class LookupRun(Run):
    """A statement over files and tables."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        text: str,
        tables: dict[str, str],
        world: World,
        relations: dict[str, Any],
    ) -> None:
        self.tables = {name: _table(world.schema, name, columns) for name, columns in tables.items()}
        self.world = world
        super().__init__(spark, folder, text, relations)
        lookups = [
            LookupSpec(
                view=one.scan.view,
                relation=str(one.scan.relation.fqn),
                store=StoreRef(name="pg", kind="postgres", config={}),
                entity=one.scan.relation.entity,
                columns=[ColumnSpec(name=c.name, type=str(c.type)) for c in one.scan.relation.columns],
                left=one.left,
                keys=list(one.keys),
                values=list(one.values),
                cache_ttl_ms=one.cache_ttl_ms,
            )
            for one in self.plan.lookups
        ]
        self.spec = self.spec.model_copy(update={"lookups": lookups, "query_id": uuid.uuid4().hex})
        self.started: Any = None

    def _find(self, name: Any) -> Relation:
        return self.tables.get(name.parts[-1]) or super()._find(name)

    def connect(self, store: StoreRef) -> Connector:
        return self.world.connector if store.kind == "postgres" else self.store

    def rows(self, *records: dict[str, Any]) -> list[Any]:
        """One batch of these records; gives the values it wrote, in order."""
        return sorted((v for _, v in self.pairs("s", [[str(r.get("id")), r, 0] for r in records])), key=repr)

    def pairs(self, name: str, records: list[list[Any]]) -> list[Any]:
        """One batch of one relation's records (key, value, seconds of their time); gives what it wrote."""
        self.give({name: records})
        self.store.written = []
        if self.query is None:
            self.started = run_query.start(self.spark, self.spec, self.connect, 2)
            self.query = self.started.query
        self.query.processAllAvailable()
        return sorted(self.store.written, key=repr)

    def failure(self, *records: dict[str, Any]) -> Failure:
        """The batch's failure, as the driver reports it."""
        try:
            self.rows(*records)
        except LeatstreamError as error:
            return Failure("job-failed", error.detail, error.code)
        except Exception:
            self.stop()
            return classify(chain_of(self.started.batches.error), self.spec)
        pytest.fail("it did not fail")


def _table(schema: str, name: str, columns: str) -> Relation:
    kind = parse_type(f"STRUCT<{columns}>")
    return Relation(
        meta=META,
        fqn=Fqn("demo", "public", name),
        primary_key=("item",) if name == "items" else (),
        kind=RelationKind.TABLE,
        columns=tuple(Column(n, t) for n, t in zip(kind.fields, kind.arguments, strict=True)),
        store="pg",
        entity=f"{schema}.{name}",
        value_format="",
    )


class World:
    """A schema of the server's."""

    def __init__(self, server: PostgresServer) -> None:
        self.server, self.schema = server, f"l_{uuid.uuid4().hex[:8]}"
        self.connector = open_connector("postgres", "pg", server.config(), {"password": PASSWORD})
        self.do(MAKE)

    def do(self, text: str) -> None:
        with self.server.connect() as connection:
            connection.execute(text.format(schema=self.schema))

    def reading(self, spec: LookupSpec, keys: list[list[str]], *, numbered: bool) -> str:
        """How PostgreSQL reads the rows of these keys."""
        settings: Any = self.connector
        found = self.connector.find_entity(spec.entity)
        assert found is not None
        assert found.table is not None
        reader = postgres_lookup.PostgresTableReader("pg", settings.settings, spec, found.table)
        text = sql.SQL("EXPLAIN ") + postgres_lookup.statement(reader.target, numbered=numbered)
        connection = kept_connection(settings.settings, 60.0, 60.0, by_index=True)
        return "\n".join(row[0] for row in connection.execute(text, keys))


@pytest.fixture(scope="module")
def world(postgres: PostgresServer) -> Iterator[World]:
    made = World(postgres)
    yield made
    made.do("DROP SCHEMA {schema} CASCADE")


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path, world: World) -> Iterator[Callable[..., LookupRun]]:
    made: list[LookupRun] = []

    def start(text: str, relations: dict[str, Any] = ORDERS, **tables: str) -> LookupRun:
        made.append(LookupRun(spark, tmp_path / str(len(made)), text, tables, world, relations))
        return made[-1]

    yield start
    for one in made:
        one.stop()


def order(id_: int, item: str | None, **more: Any) -> dict[str, Any]:
    return {"id": id_, "item": item, **more}


@pytest.mark.core
def test_each_batch_sees_the_rows_that_are_there_then(run: Callable[..., LookupRun], world: World) -> None:
    job = run(
        "CREATE STREAM o AS SELECT s.id, i.name, i.price, i.tags, i.doc FROM s JOIN items i ON s.item = i.item",
        items="item VARCHAR, name VARCHAR, price DECIMAL(12,4), tags ARRAY<VARCHAR>, doc STRUCT<k BIGINT>",
    )
    first = job.rows(order(1, "lamp"), order(2, "chair"), order(3, None), order(4, "none"), order(5, "lamp"))
    lamp = {"name": "a lamp", "price": 12.5, "tags": ["a", 'b "c'], "doc": {"k": 1}}
    chair = {"name": "a\tchair\n", "price": 99, "tags": None, "doc": None}
    assert first == [{"id": 1, **lamp}, {"id": 2, **chair}, {"id": 5, **lamp}]
    world.do(
        "UPDATE {schema}.items SET price = 13 WHERE item = 'lamp'; DELETE FROM {schema}.items WHERE item = 'chair'"
    )
    world.do("INSERT INTO {schema}.items VALUES ('none', 'now there')")
    now = job.rows(order(6, "lamp"), order(7, "chair"), order(8, "none"))
    assert [(row["id"], row["name"], row["price"]) for row in now] == [
        (6, "a lamp", 13),
        (8, "now there", None),
    ]
    # Started anew it goes on with the records that come.
    job.stop()
    assert [row["id"] for row in job.rows(order(9, "lamp"))] == [9]


def test_left_joins_keep_rows_and_conditions_beside_the_key_count(run: Callable[..., LookupRun]) -> None:
    job = run(
        "CREATE STREAM o AS SELECT s.id, f.percent FROM s LEFT JOIN offers f ON s.item = f.item AND f.percent < s.price",
        offers="item VARCHAR, percent DOUBLE",
    )
    got = job.rows(
        order(1, "lamp", price=15),
        order(2, "lamp", price=25),
        order(3, "lamp", price=5),
        order(4, None, price=99),
        order(5, "chair", price=99),
    )
    assert got == [
        {"id": 1, "percent": 10.0},
        {"id": 2, "percent": 10.0},
        {"id": 2, "percent": 20.0},
        {"id": 3, "percent": None},
        {"id": 4, "percent": None},
        {"id": 5, "percent": None},
    ]


def test_a_changelogs_rows_are_looked_up_when_they_change(
    run: Callable[..., LookupRun], world: World
) -> None:
    """Of several records of a key in one batch the last one in the topic counts, whatever its time."""
    carts = {"c": {"columns": "id VARCHAR, item VARCHAR, n BIGINT", "primary_key": ["id"]}}
    world.do("INSERT INTO {schema}.items VALUES ('sofa', 'a sofa'), ('stool', 'a stool')")

    def cart(key: str, item: str | None, n: int, at: int = 0) -> list[Any]:
        return [key, {"id": key, "item": item, "n": n}, at]

    text = "CREATE CHANGELOG o AS SELECT c.id, i.name, c.n FROM c {} JOIN items i ON c.item = i.item WHERE c.n > 0"
    items = "item VARCHAR, name VARCHAR"
    inner, left = (run(text.format(kind), carts, items=items) for kind in ("", "LEFT"))
    first = [
        cart("a", "stool", 1, 9),
        cart("a", "sofa", 2),
        cart("b", "no", 3),
        cart("c", None, 0),
        ["d", None, 0],
    ]
    a, b = ("a", {"id": "a", "name": "a sofa", "n": 2}), ("b", {"id": "b", "name": None, "n": 3})
    assert inner.pairs("c", first) == [a, ("b", None), ("c", None), ("d", None)]
    assert left.pairs("c", first) == [a, b, ("c", None), ("d", None)]
    world.do(
        "UPDATE {schema}.items SET name = 'wide' WHERE item = 'sofa'; DELETE FROM {schema}.items WHERE item = 'stool'"
    )
    # Only what changes is looked up again, and with the table's rows as they are now.
    again = [cart("b", "sofa", 4), cart("c", "stool", 5), cart("e", "sofa", 6), ["e", None, 0]]
    b, e = ("b", {"id": "b", "name": "wide", "n": 4}), ("e", None)
    assert inner.pairs("c", again) == [b, ("c", None), e]
    assert left.pairs("c", again) == [b, ("c", {"id": "c", "name": None, "n": 5}), e]
    stream = run(text.replace("CHANGELOG", "STREAM").format("LEFT"), carts, items=items)
    assert sorted(v["n"] for _, v in stream.pairs("c", first)) == [1, 2, 3]


def test_keys_of_several_columns_and_one_table_behind_another(run: Callable[..., LookupRun]) -> None:
    """The second table's key is a value of the first one's row, and an expression."""
    job = run(
        "CREATE STREAM o AS SELECT s.id, k.n, k.made, i.name FROM s LEFT JOIN stock k ON k.shop = s.shop + 0 AND s.item = k.item"
        " LEFT JOIN items i ON i.item = k.item WHERE s.id > 0",
        stock="shop BIGINT, item VARCHAR, n INTEGER, made TIMESTAMP_LTZ",
        items="item VARCHAR, name VARCHAR",
    )
    got = job.rows(
        order(1, "lamp", shop=1),
        order(2, "lamp", shop=2),
        order(3, "lamp", shop=3),
        order(4, "lamp", shop=2_000_000_000),
        order(5, None, shop=1),
        order(6, "lamp", shop=None),
        order(0, "lamp", shop=1),
    )
    assert got == [
        {"id": 1, "n": 10, "made": "2026-01-01 10:00:00Z", "name": "a lamp"},
        {"id": 2, "n": 20, "made": None, "name": "a lamp"},
        {"id": 3, "n": None, "made": None, "name": None},
        {"id": 4, "n": None, "made": None, "name": None},
        {"id": 5, "n": None, "made": None, "name": None},
        {"id": 6, "n": None, "made": None, "name": None},
    ]


def test_minus_zero_is_zero(run: Callable[..., LookupRun]) -> None:
    """Its row is read once for both, or each of them would meet it twice."""
    text = "CREATE STREAM o AS SELECT s.id FROM s JOIN offers f ON f.percent = CAST(s.item AS DOUBLE)"
    found = run(text, offers="item VARCHAR, percent DOUBLE").rows(
        *(order(n, item) for n, item in enumerate(("-0.0", "0.0", "0")))
    )
    assert [row["id"] for row in found] == [0, 1, 2]


def test_texts_that_are_no_keys_find_nothing(run: Callable[..., LookupRun]) -> None:
    """uuid takes no other text; as VARCHAR a number is compared as a text; NUL is no character there."""
    job = run(
        'CREATE STREAM o AS SELECT s.id, c.day, c.raw, c.flag, c."Order" FROM s JOIN codes c ON s.item = c.code',
        codes='code VARCHAR, day DATE, raw BYTES, flag BOOLEAN, "Order" BIGINT',
    )
    code = "00000000-0000-0000-0000-00000000000a"
    got = job.rows(order(1, code), order(2, code.upper()), order(3, "x"), order(4, "a\x00b"), order(5, ""))
    assert got == [{"id": 1, "day": "2026-02-03", "raw": "AP8=", "flag": True, "Order": 7}]
    text = run(
        'CREATE STREAM o AS SELECT s.id, c.flag FROM s JOIN codes c ON s.item = c."Order"',
        codes='"Order" VARCHAR, flag BOOLEAN',
    )
    assert text.rows(order(1, "7"), order(2, "7.0"), order(3, "seven")) == [{"id": 1, "flag": True}]


def test_only_what_is_asked_for_is_read(run: Callable[..., LookupRun], world: World) -> None:
    """Of many rows PostgreSQL reads by the index those that are asked for."""
    world.do(
        "INSERT INTO {schema}.items SELECT 'x' || i, 'n' || i FROM generate_series(1, 100000) i; ANALYZE {schema}.items;"
        "INSERT INTO {schema}.stock SELECT i % 1000, 'x' || i FROM generate_series(1, 100000) i; ANALYZE {schema}.stock"
    )
    job = run(
        "CREATE STREAM o AS SELECT s.id, i.name, k.n FROM s JOIN items i ON s.item = i.item"
        " LEFT JOIN stock k ON k.shop = s.shop AND k.item = i.item",
        items="item VARCHAR, name VARCHAR",
        stock="shop BIGINT, item VARCHAR, n INTEGER",
    )
    got = job.rows(*(order(i, f"x{i}", shop=0) for i in range(1, 2600)))
    assert [(row["id"], row["name"]) for row in sorted(got, key=lambda r: r["id"])] == [
        (i, f"n{i}") for i in range(1, 2600)
    ]
    items, stock = job.spec.lookups
    for numbered in (False, True):
        one = world.reading(items, [[f"x{i}" for i in range(500)]], numbered=numbered)
        two = world.reading(stock, [["1"] * 100, [f"x{i}" for i in range(100)]], numbered=numbered)
        for told in (one, two):
            assert "Index" in told
            assert "Seq Scan" not in told


def test_kept_rows_are_used_for_their_time(run: Callable[..., LookupRun], world: World) -> None:
    world.do("INSERT INTO {schema}.offers VALUES ('desk', 1), ('desk', 2)")
    text = "CREATE STREAM o AS SELECT s.id, f.percent FROM s LEFT JOIN offers f WITH ('lookup.cache.ttl.millis' = {}) ON s.item = f.item"
    kept = run(text.format(3_600_000), offers="item VARCHAR, percent DOUBLE")
    fresh = run(text.format(0), offers="item VARCHAR, percent DOUBLE")
    both = [{"id": 1, "percent": 1.0}, {"id": 1, "percent": 2.0}]
    assert kept.rows(order(1, "desk")) == fresh.rows(order(1, "desk")) == both
    world.do("UPDATE {schema}.offers SET percent = 9 WHERE item = 'desk'")
    assert fresh.rows(order(1, "desk")) == [{"id": 1, "percent": 9.0}] * 2
    assert kept.spec.lookups[0].cache_ttl_ms == 3_600_000


@pytest.mark.parametrize("looked_up_first", [True, False])
def test_a_changed_select_goes_on_from_its_offsets(
    run: Callable[..., LookupRun], looked_up_first: bool
) -> None:
    """A lookup more or less, or another one, keeps the place in the records."""
    plain = run("CREATE STREAM o AS SELECT s.id FROM s")
    joined = run(
        "CREATE STREAM o AS SELECT s.id FROM s LEFT JOIN items i ON s.item = i.item", items="item VARCHAR"
    )
    other = run(
        "CREATE STREAM o AS SELECT s.id FROM s LEFT JOIN offers f ON s.item = f.item", offers="item VARCHAR"
    )
    versions = [joined, plain, other] if looked_up_first else [plain, joined, other]
    first = versions[0]
    assert [row["id"] for row in first.rows(order(1, "chair"), order(2, None))] == [1, 2]
    for number, (before, after) in enumerate(pairwise(versions), 3):
        before.stop()
        assert classify_change(before.spec, after.spec).kind == "restart-from-offsets"
        after.spec = after.spec.model_copy(update={"checkpoint": first.spec.checkpoint})
        after.store, after.number = first.store, number
        after.offset = number
        assert [row["id"] for row in after.rows(order(number, "chair"))] == [number]


def test_faults_of_a_table_are_told(run: Callable[..., LookupRun], world: World) -> None:
    text = "CREATE STREAM o AS SELECT s.id, g.day FROM s JOIN gone g ON s.item = g.item"
    world.do(
        "CREATE TABLE {schema}.gone (item text PRIMARY KEY, day date); GRANT ALL ON {schema}.gone TO shop"
    )
    world.do("INSERT INTO {schema}.gone VALUES ('a', '2026-01-01'), ('b', '0044-03-15 BC')")
    job = run(text, gone="item VARCHAR, day DATE")
    assert job.rows(order(1, "a")) == [{"id": 1, "day": "2026-01-01"}]
    unread = job.failure(order(2, "b"))
    assert (unread.code, unread.as_json()["retryable"]) == ("undecodable-record", False)
    assert f"A row of table {world.schema}.gone (demo.public.gone)" in unread.detail
    world.do("ALTER TABLE {schema}.gone DROP COLUMN day")
    changed = run(text, gone="item VARCHAR, day DATE").failure(order(1, "a"))
    assert "has changed: the table has no column day" in changed.detail
    world.do("DROP TABLE {schema}.gone")
    gone = run(text, gone="item VARCHAR, day DATE").failure(order(1, "a"))
    assert (gone.condition, gone.detail.split(" of ")[0]) == (
        "store-rejected",
        f"Table {world.schema}.gone",
    )


def test_a_server_that_is_away_is_tried_again(run: Callable[..., LookupRun], world: World) -> None:
    """A batch's error can be retried, and the batch is done by the next job: nothing of it is lost."""
    job = run(
        "CREATE STREAM o AS SELECT s.id, i.name FROM s JOIN items i ON s.item = i.item",
        items="item VARCHAR, name VARCHAR",
    )
    assert [row["id"] for row in job.rows(order(1, "lamp"))] == [1]
    world.do("ALTER ROLE shop CONNECTION LIMIT 0")
    world.do("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'shop'")
    try:
        away = job.failure(order(2, "lamp"))
    finally:
        world.do("ALTER ROLE shop CONNECTION LIMIT -1")
    assert (away.condition, away.as_json()["retryable"]) == ("store-unreachable", True)
    assert PASSWORD not in str(away)
    assert [row["id"] for row in job.rows(order(3, "lamp"))] == [2, 3]


# The relation's type, the column's, a value of it, and the text that a job looks it up by.
KEYS = [
    ("BOOLEAN", "boolean", "true", "true"),
    ("SMALLINT", "smallint", "7", "7"),
    ("BIGINT", "smallint", "7", "7"),
    ("BIGINT", "integer", "7", "7"),
    ("DECIMAL(12, 4)", "numeric(12,4)", "12.5", "12.5000"),
    ("DECIMAL(19, 0)", "bigint", "7", "7"),
    ("DOUBLE", "real", "0.1", "0.1"),
    ("FLOAT", "real", "1e-40", "1.0E-40"),
    ("DOUBLE", "double precision", "1e10", "1.0E10"),
    ("DATE", "date", "'2026-02-03'", "2026-02-03"),
    ("TIMESTAMP", "timestamp", "'2026-02-03 04:05:06.5'", "2026-02-03 04:05:06.5"),
    ("TIMESTAMP_LTZ", "timestamptz", "'2026-02-03 05:05:06+01'", "2026-02-03 04:05:06Z"),
    ("TIME", "time", "'04:05'", "04:05:00"),
    ("BYTES", "bytea", "'\\x00ff'", "\\x00FF"),
    ("VARCHAR", "varchar(9)", "'a''b'", "a'b"),
    ("VARCHAR", "text", "'a,\"{{b'", 'a,"{b'),
    ("VARCHAR", "numeric", "1.50", "1.50"),
    ("VARCHAR", "inet", "'10.0.0.1'", "10.0.0.1"),
    ("VARCHAR", "boolean", "true", "t"),
    ("VARCHAR", "character(5)", "'ab'", "ab   "),
    ("VARCHAR", "uuid", "'00000000-0000-0000-0000-00000000000A'", "00000000-0000-0000-0000-00000000000a"),
]
NO_KEYS = ["x\x00y", "no such value", "+12026-01-01", "ab", ""]
NO_REALS = ["1.0E300", "-1.0E300", "1.0E-300", "0.0", "NaN", "-Infinity"]
NO_DOUBLES = [*NO_REALS, "0.10000000149011612"]  # the double of real 0.1
NO_TIMES = ["+12026-01-01", "0000-01-01", "0000-01-01 00:00:00Z"]


@pytest.mark.parametrize(("kind", "native", "value", "text"), KEYS, ids=[f"{k} {n}" for k, n, *_ in KEYS])
def test_columns_of_every_kind_are_keys(world: World, kind: str, native: str, value: str, text: str) -> None:
    name = f"{{schema}}.k_{uuid.uuid4().hex[:6]}"
    world.do(
        f'CREATE TABLE {name} ("k %s%" {native}); INSERT INTO {name} VALUES ({value}), (NULL); GRANT ALL ON {name} TO shop'
    )
    spec = LookupSpec(
        view="v",
        relation="r",
        store=StoreRef(name="pg", kind="postgres", config={}),
        entity=name.format(schema=world.schema),
        columns=[ColumnSpec(name="k %s%", type=kind)],
        left="",
        keys=["k %s%"],
        values=[""],
    )
    reader: Any = world.connector.table_reader(spec)
    others = NO_KEYS if kind == "VARCHAR" else NO_TIMES if kind.startswith(("DATE", "TIMEST")) else []
    others = (NO_DOUBLES if kind == "DOUBLE" else NO_REALS) if native == "real" else others
    able = [
        key for key in ((text,), *((one,) for one in others)) if postgres_lookup._able(reader.target, key)
    ]
    assert (text,) in able
    for ttl in (0, 1000):
        target = replace(reader.target, ttl_ms=ttl)
        (found,) = _found(target, able)
        if kind == "VARCHAR":  # Spark compares with the row's own text
            assert json.loads(found) == {"k %s%": text}


def _found(target: postgres_lookup.Target, keys: list[tuple[str, ...]]) -> list[bytes]:
    return table_lookup.found(target, functools.partial(postgres_lookup._fetched, target), keys)


def test_kept_rows_have_a_bound(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    """In this process, as in a worker: the oldest go, and those of other tables stay apart."""
    monkeypatch.setattr(table_lookup, "KEPT_ROWS", 3)
    monkeypatch.setattr(table_lookup, "_rows", {})
    table = StoreTable((TableColumn("item", parse_type("VARCHAR"), "text"),))
    spec = LookupSpec(
        view="v",
        relation="r",
        store=StoreRef(name="pg", kind="postgres", config={}),
        entity=f"{world.schema}.items",
        columns=[ColumnSpec(name="item", type="VARCHAR")],
        left="",
        keys=["item"],
        values=[""],
        cache_ttl_ms=60_000,
    )
    settings: Any = world.connector
    target = postgres_lookup.PostgresTableReader("pg", settings.settings, spec, table).target
    assert _found(target, [("lamp",), ("nothing",)]) == [b'{"item":"lamp"}']
    world.do("UPDATE {schema}.items SET item = 'torch' WHERE item = 'lamp'")
    try:
        assert _found(target, [("lamp",), ("torch",)]) == [
            b'{"item":"lamp"}',
            b'{"item":"torch"}',
        ]
        assert [key for _, key in table_lookup._rows] == [("lamp",), ("nothing",), ("torch",)]
        assert _found(target, [("unread",)]) == [b'{"item":"unread"}']
        assert [key for _, key in table_lookup._rows] == [("nothing",), ("torch",), ("unread",)]
    finally:
        world.do("UPDATE {schema}.items SET item = 'lamp' WHERE item = 'torch'")


def test_another_query_with_views_of_the_same_names_changes_nothing(
    run: Callable[..., LookupRun], world: World, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries that share a driver share Spark's cache, which forgets by the names of views."""
    job = run(
        "CREATE STREAM o AS SELECT s.id, i.price FROM s JOIN items i ON s.item = i.item",
        items="item VARCHAR, price DECIMAL(12,4)",
    )
    world.do("INSERT INTO {schema}.items VALUES ('shelf', 'a shelf', 1)")
    plain, read = job.store.write_batch, []

    def twice(frame: Any, sink: Any) -> None:
        read.append(sorted(bytes(row["value"]) for row in frame.collect()))
        other = spark.newSession()
        for rows in (1, 2):  # Spark forgets only where a view gets other rows
            for view in (job.spec.sources[0].view, job.spec.lookups[0].view):
                other.range(rows).createOrReplaceTempView(view)
        world.do("UPDATE {schema}.items SET price = 2 WHERE item = 'shelf'")
        plain(frame.select("key", "value"), sink)  # planned anew, as a sink may do

    monkeypatch.setattr(job.store, "write_batch", twice)
    written = job.rows(order(1, "shelf"))
    assert [json.loads(value) for value in read[0]] == written == [{"id": 1, "price": 1.0}]


@pytest.mark.core
def test_looked_up_rows_reach_a_view(run: Callable[..., LookupRun], world: World) -> None:
    """A row that finds nothing any more, or is deleted, goes from the view too."""
    job = run(
        "CREATE MATERIALIZED VIEW v AS SELECT c.id, i.price FROM c JOIN items i ON c.item = i.item",
        relations={"c": {"columns": "id VARCHAR, item VARCHAR", "primary_key": ["id"]}},
        items="item VARCHAR, price DOUBLE",
    )
    world.do("INSERT INTO {schema}.items (item, price) VALUES ('view one', 12.5), ('view two', 99)")
    job.pairs(
        "c",
        [
            [i, {"id": i, "item": item}, 1]
            for i, item in zip("123", ("view one", "view two", "view none"), strict=True)
        ],
    )
    assert job.kept() == [["1", 12.5], ["2", 99.0]]
    job.pairs(
        "c",
        [
            ["1", None, 2],
            ["2", {"id": "2", "item": "view one"}, 2],
            ["3", {"id": "3", "item": "view two"}, 2],
        ],
    )
    assert job.kept() == [["2", 12.5], ["3", 99.0]]
    job.pairs("c", [["2", {"id": "2", "item": "view none"}, 3]])
    assert job.kept() == [["3", 99.0]]
