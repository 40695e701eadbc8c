"""Common slips: each is refused as before, and its hint says what was probably meant."""

from __future__ import annotations

import pytest
from sql_catalog import bind_text

from leatstream.errors import RequestError
from leatstream.sql.generation.statements import generate
from leatstream.sql.parser import parse
from leatstream.sql.source_properties import suggestion_of
from leatstream.sql.view_properties import read_view_properties


def hint_of(text: str) -> str | None:
    with pytest.raises(RequestError) as caught:
        parse(text)
    (fault,) = caught.value.faults
    return fault.hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("LIST STREAM;", "Did you mean STREAMS?"),
        ("LIST QUERY;", "Did you mean QUERIES?"),
        ("SHOW ENTITY;", "Did you mean ENTITIES?"),
        ("LIST DATABASE;", "Did you mean DATABASES?"),
        ("LIST MATERIALIZED VIEW;", "Did you mean MATERIALIZED VIEWS?"),
        ("DROP STREAMS s;", "Did you mean STREAM?"),
        ("USE DATABSE d;", "Did you mean DATABASE?"),
        ("CREAT STREAM s AS SELECT * FROM t;", "Did you mean CREATE?"),
        ("CREATE STREAM s AS SELCT * FROM t;", "Did you mean SELECT?"),
        ("CREATE STREAM s AS SELECT * FORM t;", "Did you mean FROM?"),
        ("SELECT 1;", "A SELECT reads relations: SELECT … FROM name."),
        ("DESCRIBE pageviews;", "Write what it is before the name: DESCRIBE RELATION pageviews."),
        ("DESCRIBE a.b.c;", "Write what it is before the name: DESCRIBE RELATION a.b.c."),
        ("PRINT pageviews;", "SELECT * FROM name shows the rows of a stream."),
        ("CREATE STREAM s (a BIGINT) ('topic' = 's');", "Write WITH before the list of properties."),
        ("SELECT * FROM s WHERE a = ‘x’;", "Write straight quotes: 'text', \"name\"."),
        ("SELECT “a” FROM s;", "Write straight quotes: 'text', \"name\"."),
        ("EXPLAIN STREAM s;", "DESCRIBE shows objects."),
        ("DELETE FROM x;", "Delete rows in the store itself. DROP removes an object."),
        ("TRUNCATE x;", "Delete rows in the store itself. DROP ENTITY removes an entity with its records."),
        ("MERGE INTO x;", "CREATE CHANGELOG … AS SELECT keeps one row for each primary key."),
        (
            "COPY INTO x;",
            "CREATE STREAM … AS SELECT writes to a store; a stream over an S3 store reads files.",
        ),
        ("TEST STORE s;", "Write `leat store test STORE` in the shell."),
        (
            "UPDATE x SET a = 1;",
            "Change rows in the store itself; rows of a changelog follow those of its source.",
        ),
        ("UPDATE STORES k WITH ('uris'='x');", "Did you mean STORE?"),
        ("EXPLAIN ANALYZE SELECT * FROM s;", "DESCRIBE QUERY METRICS shows what a running query does."),
    ],
)
def test_the_hint_says_what_was_meant(text: str, hint: str) -> None:
    assert hint_of(text) == hint


def test_alter_names_what_changes_objects() -> None:
    assert "CREATE OR REPLACE" in str(hint_of("ALTER STREAM s ADD COLUMN a BIGINT;"))


@pytest.mark.parametrize("text", ["SELECT a § b FROM s;", "LIST zzzzz;", "FOO;"])
def test_nothing_is_guessed_without_a_reason(text: str) -> None:
    assert hint_of(text) is None


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        (
            'userid = "User_6"',
            "Did you mean userid? Text is written in single quotes: 'User_6'.",
        ),
        ("""userid = "it's far off" """, "Text is written in single quotes: 'it''s far off'."),
        ("\"UserId\" = 'x'", "Did you mean userid?"),
        ("usrid = 'x'", "Did you mean userid?"),
    ],
)
def test_double_quotes_around_a_text(condition: str, hint: str) -> None:
    with pytest.raises(RequestError) as caught:
        bind_text(f"SELECT pageid FROM pageviews WHERE {condition}")
    assert [fault.hint for fault in caught.value.faults] == [hint]


@pytest.mark.parametrize(
    "text", ["SELECT * FROM s", "CREATE STREAM t AS SELECT * FROM s", "RESTART QUERY q FROM EARLIEST"]
)
def test_explain_is_describe(text: str) -> None:
    (explained,), (described,) = parse(f"EXPLAIN {text};"), parse(f"DESCRIBE {text};")
    assert generate(explained) == generate(described)
    assert explained.text.startswith("EXPLAIN")


def test_a_property_of_the_relation_is_sent_there() -> None:
    hint = "It is a property of the relation: CREATE STREAM … WITH ('iceberg.start.snapshot' = …)."
    assert suggestion_of("iceberg.start.snapshot") == hint
    assert suggestion_of("starting.positon") == "Did you mean 'starting.position'?"


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("clickhouse.table.nam", "Did you mean 'clickhouse.table.name'?"),
        ("retension", "Did you mean 'retention'?"),
    ],
)
def test_a_views_own_names_are_offered(key: str, hint: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_view_properties({"store": "ch", key: "x"})
    assert [fault.hint for fault in caught.value.faults] == [hint]
