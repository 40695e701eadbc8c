"""A table's rows for people, and rows that statements spell out."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leatstream.connectors.entities import NewRecord, Record, Table
from leatstream.connectors.postgres.admin import PostgresAdmin, beside_values, identifier
from leatstream.errors import StoreError

_FETCH = 500
_TIMEOUT = 5.0


def rows(admin: PostgresAdmin, entity: str, table: Table, limit: int | None) -> Iterator[Record | None]:
    """The rows that are there, as JSON objects, by primary key; the key is an object of its columns.

    They are read in one transaction, so that rows changed meanwhile come once and as they were.
    """
    from psycopg import sql

    keys = [sql.Identifier(name) for name in table.primary_key]
    pairs = sql.SQL(", ").join(
        sql.SQL("{}, t.{}").format(sql.Literal(name), sql.Identifier(name)) for name in table.primary_key
    )
    key = sql.SQL("json_build_object({})::text").format(pairs) if keys else sql.SQL("NULL")
    order = sql.SQL(", ").join(sql.SQL("t.{}").format(k) for k in keys) if keys else sql.SQL("t.ctid")
    text = sql.SQL("SELECT {}, row_to_json(t)::text FROM {} t ORDER BY {}").format(
        key, identifier(entity), order
    )
    if limit is not None:
        text += sql.SQL(" LIMIT {}").format(sql.Literal(limit))
    yield None
    with (
        admin.connection(f"reading table {entity}", _TIMEOUT) as connection,
        connection.transaction(),
        connection.cursor("leat_print") as cursor,
    ):
        cursor.itersize = _FETCH
        for number, (of_key, of_row) in enumerate(cursor.execute(text)):
            raw = None if of_key is None else of_key.encode()
            yield Record(raw, of_row.encode(), partition=0, offset=number, timestamp=None)


def write(
    admin: PostgresAdmin, entity: str, table: Table, records: Sequence[NewRecord], timeout: float
) -> None:
    """Write rows in one transaction; those with a key replace the row of the same key.

    Raises:
        StoreError: store-rejected, nothing is written then.
    """
    if not records:
        return
    documents = [_document(record, table, entity) for record in records]
    with (
        admin.connection(f"writing to table {entity}", timeout, entity) as connection,
        connection.transaction(),
    ):
        for record, document in zip(records, documents, strict=True):
            _write_one(connection, entity, document, _replaced_by(record, table))


def _replaced_by(record: NewRecord, table: Table) -> Sequence[str]:
    """The columns by which a record replaces a row: those of its key, where these are unique."""
    if record.key is None:
        return ()
    try:
        key = json.loads(record.key)
    except ValueError:
        key = None
    names = tuple(key) if isinstance(key, dict) else ()
    return names if any(set(names) == set(unique) for unique in table.unique) else table.primary_key


def _write_one(connection: Any, entity: str, document: Mapping[str, Any], keys: Sequence[str]) -> None:
    from psycopg import sql

    # A column that is left out gets its default.
    names = [beside_values(sql.Identifier(name)) for name in document]
    columns = sql.SQL(", ").join(names)
    target = beside_values(identifier(entity))
    end: sql.Composable = sql.SQL("")
    if keys:
        rest = [n for n, name in zip(names, document, strict=True) if name not in keys]
        sets = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(n) for n in rest)
        doing = sql.SQL("UPDATE SET {}").format(sets) if rest else sql.SQL("NOTHING")
        unique = sql.SQL(", ").join(beside_values(sql.Identifier(name)) for name in keys)
        end = sql.SQL(" ON CONFLICT ({}) DO {}").format(unique, doing)
    statement = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM json_populate_record(NULL::{}, %s::json)")
    text = json.dumps(document)
    connection.execute(statement.format(target, columns, columns, target) + end, (text,))


def _document(record: NewRecord, table: Table, entity: str) -> dict[str, Any]:
    """The row of a record: its JSON object, whose members are columns of the table."""
    given = json.loads(record.value or b"null")
    if not isinstance(given, dict) or not given:
        raise StoreError("store-rejected", f"A row of table {entity} must be a JSON object of its columns.")
    columns = {column.name: column for column in table.columns}
    unknown = sorted(set(given) - set(columns))
    if unknown:
        there = ", ".join(columns)
        raise StoreError(
            "store-rejected", f"Table {entity} has no column {', '.join(unknown)}.", hint=f"It has {there}."
        )
    return {
        name: _bytes(value) if columns[name].native == "bytea" else value for name, value in given.items()
    }


def _bytes(value: Any) -> Any:
    """BYTES are base64 in our JSON; PostgreSQL reads hexadecimal digits."""
    try:
        return "\\x" + base64.b64decode(value, validate=True).hex()
    except (ValueError, TypeError):
        return value
