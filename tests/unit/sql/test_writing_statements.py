"""INSERT … VALUES, INSERT INTO ENTITY, OR REPLACE, COMMENT, UPDATE, DESCRIBE QUERY …, GENERATE."""

from __future__ import annotations

from typing import Any

import pytest

from leatstream.sql import statements as s
from leatstream.sql.parser import parse


def one(text: str) -> Any:
    (statement,) = parse(text)
    assert statement.text == text.rstrip(" ;")
    return statement


def test_insert_values() -> None:
    text = (
        "INSERT INTO a.b.c (x, \"Y\") VALUES (1, 'it''s'), (-1.5e3, NULL), (TRUE, DATE '2026-01-02'), "
        "(X'0aFF', TIMESTAMP_LTZ '2026-01-02 03:04:05Z'), "
        "(ARRAY[1, NULL], MAP['k', STRUCT(1, 'x')]), (ARRAY[], +2);"
    )
    found = one(text)
    assert isinstance(found, s.InsertValues)
    assert found.name.parts == ("a", "b", "c")
    assert [c.parts for c in found.columns] == [("x",), ("Y",)]
    kinds = [[(c.kind, c.text) for c in row] for row in found.rows]
    assert kinds == [
        [("number", "1"), ("string", "it's")],
        [("number", "-1.5e3"), ("null", "")],
        [("boolean", "true"), ("date", "2026-01-02")],
        [("bytes", "0aFF"), ("timestamp", "2026-01-02 03:04:05Z")],
        [("array", ""), ("map", "")],
        [("array", ""), ("number", "2")],
    ]
    array, pairs = found.rows[4]
    assert [i.kind for i in array.items] == ["number", "null"]
    assert [i.kind for i in pairs.items] == ["string", "struct"]
    place = found.rows[1][0].position
    assert text[place.offset : place.offset + place.length] == "-1.5e3"
    assert one("INSERT INTO x VALUES (1)").columns == ()


def test_a_constant_can_be_called_like_a_type() -> None:
    assert one("INSERT INTO x (date, map, value) VALUES (1, 2, 3)").columns[0].parts == ("date",)


def test_insert_into_entity() -> None:
    found = one("""INSERT INTO TOPIC "A.b".c IN STORE k VALUE('{"k": ''1''}') WITH ('key' = 'x')""")
    assert isinstance(found, s.InsertEntity)
    assert (found.name.parts, found.store and found.store.parts) == (("A.b", "c"), ("k",))
    assert found.value.text == """{"k": '1'}"""
    assert found.properties["key"].value == "x"


@pytest.mark.parametrize(
    "text",
    [
        "CREATE OR REPLACE DATABASE d COMMENT 'about d'",
        "CREATE OR REPLACE SCHEMA s IN DATABASE d COMMENT 'about d'",
        "CREATE OR REPLACE DATA STORE k COMMENT 'about d' WITH ('type'=KAFKA)",
        "CREATE OR REPLACE STREAM x (a BIGINT NOT NULL COMMENT 'first', b INT) COMMENT 'about d' WITH ('a'=1)",
        "CREATE OR REPLACE STREAM x COMMENT 'about d' AS SELECT a FROM t",
        "CREATE OR REPLACE STREAM x COMMENT 'about d' WITH ('a'=1) AS SELECT a FROM t",
    ],
)
def test_or_replace_and_comment(text: str) -> None:
    found = one(text)
    assert (found.or_replace, found.if_not_exists, found.comment) == (True, False, "about d")
    plain = one(text.replace("OR REPLACE ", "").replace(" COMMENT 'about d'", ""))
    assert (plain.or_replace, plain.comment) == (False, None)


def test_comments_of_columns() -> None:
    found = one("CREATE STREAM x (a BIGINT NOT NULL COMMENT 'it''s', comment VARCHAR) WITH ('a'=1)")
    assert [(c.name, c.comment) for c in found.columns] == [("a", "it's"), ("comment", None)]


def test_update() -> None:
    store = one("UPDATE DATA STORE k WITH ('uris' = 'a:1')")
    assert (type(store), store.name.parts, store.properties["uris"].value) == (s.UpdateStore, ("k",), "a:1")
    entity = one("UPDATE TOPIC a.b IN STORE k WITH ('kafka.partitions' = 3)")
    assert (type(entity), entity.name.parts, entity.store.parts) == (s.UpdateEntity, ("a", "b"), ("k",))


def test_describe_query() -> None:
    state = one("DESCRIBE QUERY STATE q")
    assert (type(state), state.what, state.name.parts) == (s.DescribeQuery, "state", ("q",))
    assert one("DESCRIBE QUERY metrics state").name.parts == ("state",)
    assert one("DESCRIBE QUERY state").name.parts == ("state",)  # a query of that name


def test_generate() -> None:
    columns = one("GENERATE COLUMNS FROM TOPIC a.b IN STORE k WITH ('limit' = 5)")
    assert (columns.what, columns.name.parts, columns.store.parts) == ("columns", ("a", "b"), ("k",))
    template = one("GENERATE TEMPLATE FOR ENTITY x")
    assert (template.what, template.store) == ("template", None)
