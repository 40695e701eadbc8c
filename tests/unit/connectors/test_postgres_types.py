"""Which column of a table a relation's column can be written to, and how errors of PostgreSQL are told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from leatstream.connectors.entities import Table, TableColumn
from leatstream.connectors.postgres.errors import store_error
from leatstream.connectors.postgres.sink import _bytes
from leatstream.connectors.postgres.types import POSTGRES_TYPES, column_type, fits, read_type
from leatstream.connectors.table_fit import misfits
from leatstream.model.objects import Column
from leatstream.model.types import known_types, parse_type

SAMPLES = {
    "ARRAY": "ARRAY<BIGINT>",
    "MAP": "MAP<VARCHAR, BIGINT>",
    "STRUCT": "STRUCT<a BIGINT>",
    "DECIMAL": "DECIMAL(9, 2)",
}


@pytest.mark.parametrize("kind", known_types())
def test_a_made_column_takes_what_it_was_made_for(kind: str) -> None:
    parsed = parse_type(SAMPLES.get(kind, kind))
    assert fits(parsed, column_type(parsed))


@pytest.mark.parametrize(
    ("kind", "native", "answer"),
    [
        ("SMALLINT", "bigint", True),
        ("BIGINT", "integer", False),
        ("BIGINT", "numeric(19,0)", True),
        ("BIGINT", "numeric(18,0)", False),
        ("BIGINT", "numeric", True),
        ("BIGINT", "double precision", False),
        ("INTEGER", "real", False),
        ("DOUBLE", "real", False),
        ("FLOAT", "double precision", True),
        ("DECIMAL(10, 2)", "numeric(12,4)", True),
        ("DECIMAL(10, 2)", "numeric(12,5)", False),
        ("DECIMAL(10, 2)", "numeric(10,1)", False),
        ("DECIMAL(10, 2)", "bigint", False),
        ("VARCHAR", "character varying(3)", True),
        ("VARCHAR", "public.citext", True),
        ("VARCHAR", "uuid", True),
        ("VARCHAR", "jsonb", True),
        ("VARCHAR", "bigint", False),
        ("VARCHAR", "timestamp with time zone", False),
        ("VARCHAR", "text[]", False),
        ("TIMESTAMP", "timestamp(3) without time zone", True),
        ("TIMESTAMP", "timestamp with time zone", False),
        ("TIMESTAMP_LTZ", "timestamp with time zone", True),
        ("DATE", "timestamp without time zone", True),
        ("BYTES", "text", False),
        ("ARRAY<INTEGER>", "bigint[]", True),
        ("ARRAY<BIGINT>", "integer[]", False),
        ("ARRAY<ARRAY<BIGINT>>", "bigint[]", False),
        ("ARRAY<ARRAY<BIGINT>>", "json", True),
        ("MAP<VARCHAR, BIGINT>", "text", False),
    ],
)
def test_fits(kind: str, native: str, answer: bool) -> None:
    assert fits(parse_type(kind), native) is answer


@pytest.mark.parametrize(
    ("native", "kind"),
    [
        ("numeric(12,2)", "DECIMAL(12, 2)"),
        ("numeric(39,2)", "VARCHAR"),
        ("numeric(2,-3)", "VARCHAR"),
        ("numeric(2,5)", "VARCHAR"),
        ("timestamp(0) with time zone", "TIMESTAMP_LTZ"),
        ("character varying(7)[]", "ARRAY<VARCHAR(7)>"),
        ("interval", "VARCHAR"),
        ('"odd type"', "VARCHAR"),
    ],
)
def test_read(native: str, kind: str) -> None:
    assert str(read_type(native)) == kind


def test_every_misfit_is_told() -> None:
    integer = parse_type("INTEGER")
    table = Table(
        (
            TableColumn("a", integer, "integer", not_null=True),
            TableColumn("b", integer, "integer", not_null=True, filled=True),
            TableColumn("c", integer, "integer", generated=True),
            TableColumn("d", integer, "integer"),
        ),
        ("a",),
        (("a",), ("b", "d")),
    )
    assert misfits(table, [Column("a", integer)], [], POSTGRES_TYPES) == []
    known = Column("d", integer, not_null=True)
    assert misfits(table, [Column("a", integer), known], ["d", "b"], POSTGRES_TYPES) == []
    [null] = misfits(table, [Column("a", integer), Column("d", integer)], ["d", "b"], POSTGRES_TYPES)
    assert "d, which may be NULL in the table" in null.detail, "NULLs replace no NULLs: rows would pile up"
    found = [
        one.detail
        for one in misfits(
            table,
            [Column("c", integer), Column("x", integer), Column("d", parse_type("BIGINT"))],
            ["d"],
            POSTGRES_TYPES,
        )
    ]
    assert len(found) == 5
    for words in (
        "c is written by PostgreSQL",
        "no column x",
        "d is BIGINT",
        "a of the table is NOT NULL",
        "no unique key",
    ):
        assert any(words in one for one in found)


class Said(psycopg.Error):
    """An error as the server gives it."""

    def __init__(self, code: str | None, text: str, **diag: Any) -> None:
        super().__init__(text)
        self.sqlstate = code
        names = dict.fromkeys(("message_primary", "column_name", "constraint_name", "context"))
        self._diag = SimpleNamespace(**(names | {"message_primary": text} | diag))

    @property
    def diag(self) -> Any:
        return self._diag


@pytest.mark.parametrize(
    ("code", "text", "table", "told", "word"),
    [
        (None, 'FATAL:  role "x" does not exist', None, "store-auth-failed", "refused the login"),
        (None, "FATAL:  no pg_hba.conf entry for host, no encryption", None, "store-auth-failed", "login"),
        (None, 'FATAL:  database "x" does not exist', None, "store-rejected", "no database"),
        (
            None,
            "FATAL:  sorry, too many clients already; too many connections",
            None,
            "store-unreachable",
            "no connection left",
        ),
        (None, "SSL error: certificate verify failed", None, "store-unreachable", "certificate"),
        (None, "Connection refused", None, "store-unreachable", "did not answer"),
        ("42501", "permission denied for table t", "t", "store-auth-failed", "permission denied"),
        ("57014", "canceling statement due to statement timeout", None, "store-unreachable", "57014"),
        ("40P01", "deadlock detected", "t", "store-unreachable", "another transaction"),
        ("42P01", 'relation "t" does not exist', None, "entity-not-found", "no such table"),
        ("42P01", 'relation "t" does not exist', "t", "store-rejected", "42P01"),
        ("22P02", 'invalid input syntax for type uuid: "sesame"', "t", "store-rejected", "cannot be read"),
        ("22999", 'something about "sesame"', "t", "store-rejected", "does not fit"),
        ("23505", 'duplicate key value violates "k"', "t", "store-rejected", "must be unique"),
    ],
)
def test_what_the_server_says_is_told_without_values(
    code: str | None, text: str, table: str | None, told: str, word: str
) -> None:
    error = store_error("s", "trying", Said(code, text), "h:5432/d", 5.0, table)
    assert error.code == told
    assert word in error.detail
    assert "sesame" not in error.detail


def test_the_column_of_a_copied_value_is_named() -> None:
    context = 'JSON data, line 1: {sesame\nCOPY leat_batch, line 3, column odd: name: "sesame\nCOPY sesame"'
    error = store_error("s", "writing", Said("22P02", "x", context=context), "h:1/d", 5.0, "t")
    assert "column odd" in error.detail
    assert "sesame" not in error.detail


def test_lines_are_taken_from_arrow_as_they_lie() -> None:
    lines = pa.array(["a\n", "bé\n", "", "c\n"])
    assert bytes(_bytes(lines)) == "a\nbé\nc\n".encode()
    assert bytes(_bytes(lines.slice(1, 2))) == "bé\n".encode()
    assert bytes(_bytes(lines.cast(pa.large_string()).slice(3))) == b"c\n"
