"""A table that is altered while its changes are read: the query goes on rightly, or fails and says why."""

from __future__ import annotations

import json
import uuid
from contextlib import closing
from typing import Any

import psycopg
import pytest
from change_feed import COLUMNS, ENVELOPE, KEYED, PLAIN, ROW, fill
from postgres_server import PASSWORD, PostgresServer

from leatstream.connectors.postgres.admin import PostgresAdmin
from leatstream.connectors.postgres.cdc_records import Form
from leatstream.connectors.postgres.settings import PostgresConfig

# What a table can be changed to, and what a query that reads its changes says then.
_ALTERED = {
    "RENAME name TO title": "has no column name, or it is generated now",
    "DROP name": "has no column name, or it is generated now",
    "DROP name, ADD name text GENERATED ALWAYS AS ('x') STORED": "has no column name, or it is generated",
    "ALTER id TYPE text": "has text in column id now, which cannot be read as the declared BIGINT",
    "ALTER name SET NOT NULL, ADD UNIQUE (name)": "logs the columns of an index instead of the primary key",
}
# The key of a changelog is declared; that of a stream is the table's, whichever it is.
_OTHER_KEY = ("DROP CONSTRAINT {table}_pkey, ADD PRIMARY KEY (name)", "has (got )?another primary key")


@pytest.mark.parametrize(
    ("form", "change", "said"),
    [
        *(pytest.param(KEYED, *case, id=f"changelog-{case[0]}") for case in (*_ALTERED.items(), _OTHER_KEY)),
        *(pytest.param(PLAIN, *case, id=f"stream-{case[0]}") for case in _ALTERED.items()),
    ],
)
def test_what_the_relation_declares_is_there_no_more(
    admin: psycopg.Connection[Any], feed: Any, form: Form, change: str, said: str
) -> None:
    source = feed(form)
    table = source.plan.entity
    fill(admin, source, 1, 3)
    source.until(lambda: len(source.records) == 3)
    admin.execute(f"ALTER TABLE public.{table} {change.format(table=table)}")
    if "UNIQUE" in change:
        admin.execute(f"ALTER TABLE public.{table} REPLICA IDENTITY USING INDEX {table}_name_key")
    # The rows go on to change: none of them may come with less than it has.
    admin.execute(f"UPDATE public.{table} SET big = 'b'")
    with pytest.raises(RuntimeError, match=f"store-rejected .*table {table} .*{said}"):
        source.to_the_end()
    assert len(source.records) == 3
    # The next start says it again, also before another change comes.
    if "UNIQUE" not in change:
        source.restart()
        with pytest.raises(RuntimeError, match=f"store-rejected .*{table} has "):
            source.to_the_end()


def test_a_column_that_goes_while_the_query_is_stopped(admin: psycopg.Connection[Any], feed: Any) -> None:
    """Changes from before hold its values; they are not written, as those after would lack them."""
    source = feed()
    fill(admin, source, 1, 1)
    source.until(lambda: source.records)
    admin.execute(f"UPDATE public.{source.plan.entity} SET name = 'last'")
    admin.execute(f"ALTER TABLE public.{source.plan.entity} RENAME name TO title")
    source.restart()
    with pytest.raises(RuntimeError, match="has no column name"):
        source.to_the_end()
    admin.execute(f"ALTER TABLE public.{source.plan.entity} RENAME title TO name")
    source.restart()
    source.to_the_end()
    assert source.table[1]["name"] == "last"


def test_a_value_of_another_type_is_no_other_value(admin: psycopg.Connection[Any], feed: Any) -> None:
    table = f"t_{uuid.uuid4().hex[:8]}"
    admin.execute(f"CREATE TABLE public.{table} (id bigint PRIMARY KEY, on_sale boolean)")
    source = feed(Form("shop", (("id", "BIGINT"), ("on_sale", "BOOLEAN")), ("id",), True), table=table)
    admin.execute(f"INSERT INTO public.{table} VALUES (1, true)")
    source.until(lambda: source.records)
    admin.execute(f"ALTER TABLE public.{table} ALTER on_sale TYPE text")
    admin.execute(f"UPDATE public.{table} SET on_sale = 'true'")
    with pytest.raises(RuntimeError, match=r"has text in column on_sale now, .* declared BOOLEAN"):
        source.to_the_end()
    assert source.table == {1: {"id": 1, "on_sale": True}}


@pytest.mark.parametrize("stream", [False, True], ids=["changelog", "stream"])
def test_a_column_is_declared_after_changes_that_lack_it(
    admin: psycopg.Connection[Any], feed: Any, stream: bool
) -> None:
    """The rows have its default since it was added, and later values: not NULL."""
    source = feed(first_rows=False)
    table = source.plan.entity
    fill(admin, source, 1, 3)
    admin.execute(f"UPDATE public.{table} SET name = 'u' WHERE id = 1")
    admin.execute(f"DELETE FROM public.{table} WHERE id = 3")
    admin.execute(f"ALTER TABLE public.{table} ADD later text DEFAULT 'd', ADD other int")
    admin.execute(f"UPDATE public.{table} SET later = 'l' WHERE id = 2")
    wider = (*COLUMNS, ("later", "VARCHAR"))
    form = Form("shop", wider, ("id",), True)
    if stream:
        row = ROW.replace(">", ', "later" VARCHAR>')
        form = Form("shop", tuple((n, row if n in ("before", "after") else t) for n, t in ENVELOPE))
    plan = source.plan
    other = feed(
        form, table=table, first_rows=False, slot=plan.slot, publication=plan.publication, own=plan.own
    )
    other.until(lambda: len(other.records) >= 5)
    if not stream:
        found = {key: (row["name"], row["later"]) for key, row in other.table.items()}
        assert found == {1: ("u", "d"), 2: ("n2", "l")}
        return
    last = {event["after"]["id"]: event["after"]["later"] for event in other.events if event["after"]}
    # Of a row that has gone nothing can be asked.
    assert last == {1: "d", 2: "l", 3: None}


def test_tables_whose_rows_are_apart(
    postgres: PostgresServer, admin: psycopg.Connection[Any], feed: Any
) -> None:
    config = PostgresConfig(**postgres.config(), password=PASSWORD)
    names = [f"{word}_{uuid.uuid4().hex[:8]}" for word in ("parent", "child", "parts", "plain", "quick")]
    parent, child, parts, plain, quick = names
    columns = "(id bigint PRIMARY KEY, name text, big text)"
    admin.execute(f"CREATE TABLE public.{parent} {columns}")
    source = feed(table=parent)
    fill(admin, source, 1, 1)
    source.until(lambda: source.records)
    admin.execute(f"CREATE TABLE public.{child} () INHERITS (public.{parent})")
    admin.execute(f"INSERT INTO public.{child} VALUES (2, 'c')")
    fill(admin, source, 3, 3)
    with pytest.raises(RuntimeError, match=f"store-rejected .* public.{child} inherit from it"):
        source.to_the_end()
    with pytest.raises(RuntimeError, match=f"store-rejected .* public.{child} inherit from it"):
        feed(table=parent)
    admin.execute(f"CREATE TABLE public.{parts} {columns} PARTITION BY RANGE (id)")
    admin.execute(f"CREATE TABLE public.{plain} PARTITION OF public.{parts} FOR VALUES FROM (0) TO (100)")
    admin.execute(f"CREATE UNLOGGED TABLE public.{quick} {columns}")
    told = {name: PostgresAdmin("pg", config).find(name, 20) for name in (parent, child, parts, quick)}
    apart = {name: entity.table.apart for name, entity in told.items() if entity and entity.table}
    assert f"public.{child} inherit from it" in apart[parent]
    assert (apart[child], apart[parts]) == ("", "")
    assert f"public.{quick}, unlogged" in apart[quick]
    # Partitions are read with their table, the first rows and the changes.
    whole = feed(table=parts)
    fill(admin, whole, 1, 2)
    whole.until(lambda: len(whole.records) == 2)
    admin.execute(f"UPDATE public.{plain} SET name = 'p' WHERE id = 2")
    whole.to_the_end()
    assert whole.table[2]["name"] == "p"


@pytest.mark.parametrize("kind", ["WITH (publish = 'insert')", "a row filter", "no root"])
def test_a_publication_that_leaves_changes_out(
    postgres: PostgresServer, admin: psycopg.Connection[Any], feed: Any, kind: str
) -> None:
    table, name = f"t_{uuid.uuid4().hex[:8]}", f"p_{uuid.uuid4().hex[:8]}"
    parts = " PARTITION BY RANGE (id)" if kind == "no root" else ""
    admin.execute(f"CREATE TABLE public.{table} (id bigint PRIMARY KEY, name text, big text){parts}")
    if parts:
        admin.execute(f"CREATE TABLE public.{table}_0 PARTITION OF public.{table} DEFAULT")
    with closing(postgres.connect()) as root:
        if kind == "a row filter" and root.info.server_version < 150000:
            pytest.skip("row filters came with PostgreSQL 15")
        more = {"a row filter": "WHERE (id > 5)", "no root": ""}.get(kind, kind)
        root.execute(f"CREATE PUBLICATION {name} FOR TABLE public.{table} {more}")
        try:
            said = "does not have the table" if parts else "leaves out changes of table"
            with pytest.raises(RuntimeError, match=said):
                feed(table=table, publication=name, own_publication=False)
        finally:
            root.execute(f"DROP PUBLICATION {name}")


def test_a_table_that_gets_another_name(admin: psycopg.Connection[Any], feed: Any) -> None:
    source = feed()
    table = source.plan.entity
    fill(admin, source, 1, 1)
    source.until(lambda: source.records)
    admin.execute(f"INSERT INTO public.{table} VALUES (2, 'before')")
    admin.execute(f"ALTER TABLE public.{table} RENAME TO {table}_now")
    admin.execute(f"INSERT INTO public.{table}_now VALUES (3, 'after')")
    with pytest.raises(RuntimeError, match=r"entity-not-found"):
        source.to_the_end()
    # Put back, nothing is missing.
    admin.execute(f"ALTER TABLE public.{table}_now RENAME TO {table}")
    source.restart()
    source.to_the_end()
    assert [json.loads(r["value"])["id"] for r in source.records] == [1, 2, 3]


def test_a_table_that_takes_the_name_of_another(
    postgres: PostgresServer, admin: psycopg.Connection[Any], feed: Any
) -> None:
    """A publication of all tables has the new one too; rows of the old one would stay for ever."""
    name = f"p_{uuid.uuid4().hex[:8]}"
    with closing(postgres.connect()) as root:
        root.execute(f"CREATE PUBLICATION {name} FOR ALL TABLES")
        try:
            source = feed(publication=name, own_publication=False)
            table = source.plan.entity
            fill(admin, source, 1, 1)
            source.until(lambda: source.records)
            admin.execute(f"INSERT INTO public.{table} VALUES (2, 'old')")
            admin.execute(f"ALTER TABLE public.{table} RENAME TO {table}_old")
            admin.execute(f"CREATE TABLE public.{table} (LIKE public.{table}_old INCLUDING ALL)")
            source.restart()
            with pytest.raises(RuntimeError, match=r"entity-not-found .*is another one now"):
                source.to_the_end()
        finally:
            root.execute(f"DROP PUBLICATION {name}")
