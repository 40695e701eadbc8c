"""A table's rows for people, and rows that statements spell out."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from leatstream.connectors.entities import NewRecord, Record, Table, TableColumn
from leatstream.connectors.snowflake.admin import SnowflakeAdmin
from leatstream.connectors.snowflake.session import run
from leatstream.connectors.snowflake.staging import StagedColumn
from leatstream.connectors.snowflake.types import JSON, base_of
from leatstream.connectors.snowflake.values import reading, row_writer
from leatstream.connectors.upper_names import quoted
from leatstream.errors import StoreError

_TIMEOUT = 60.0  # a warehouse may have to start
_FETCH = 500


def rows(admin: SnowflakeAdmin, entity: str, table: Table, limit: int | None) -> Iterator[Record | None]:
    """The existing rows as JSON objects, by primary key; the key is an object of its columns.

    One statement reads them, so that rows changed meanwhile come once and as they were.

    Args:
        admin: of the store.
        entity: the table.
        table: its columns and key.
        limit: end after so many rows; None = no limit.
    """
    place, columns = admin.place(entity), table.columns
    read = ", ".join(reading(column.name, column.native) for column in columns)
    order = ", ".join(f"t.{quoted(name)}" for name in table.primary_key)
    text = f"SELECT {read} FROM {place.statement} t"  # noqa: S608 - our own names
    text += f" ORDER BY {order}" if order else ""
    text += f" LIMIT {int(limit)}" if limit is not None else ""
    whole = row_writer([(c.name, c.type) for c in columns], [c.native for c in columns])
    keys = [i for i, column in enumerate(columns) if column.name in table.primary_key]
    key = row_writer([(columns[i].name, columns[i].type) for i in keys], [columns[i].native for i in keys])
    yield None
    with (
        admin.connection(f"reading table {entity}", _TIMEOUT) as connection,
        contextlib.closing(connection.cursor()) as cursor,
    ):
        cursor.execute(text)
        number = 0
        while found := cursor.fetchmany(_FETCH):
            for row in found:
                of_key = key([row[i] for i in keys]).encode() if keys else None
                yield Record(of_key, whole(row).encode(), partition=0, offset=number, timestamp=None)
                number += 1


def write(
    admin: SnowflakeAdmin, entity: str, table: Table, records: Sequence[NewRecord], timeout: float
) -> None:
    """Write rows in one transaction; those with a key replace the row of the same primary key.

    Args:
        admin: of the store.
        entity: the table.
        table: its columns and key.
        records: JSON objects of the columns.
        timeout: seconds.

    Raises:
        StoreError: store-rejected, nothing is written then.
    """
    if not records:
        return
    made = [_statements(admin, entity, table, record) for record in records]
    with admin.connection(f"writing to table {entity}", max(timeout, _TIMEOUT), entity) as connection:
        # What ends before the COMMIT is rolled back with the session.
        run(connection, "BEGIN")
        for statements, document in made:
            for statement in statements:
                run(connection, statement, (document,))
        run(connection, "COMMIT")


def _statements(admin: SnowflakeAdmin, entity: str, table: Table, record: NewRecord) -> tuple[list[str], str]:
    """What writes a row, and the value that each of these statements takes."""
    document = _document(record, table, entity)
    columns = [StagedColumn(c.name, str(c.type), c.native) for c in table.columns if c.name in document]
    place, source = admin.place(entity).statement, "TABLE(FLATTEN(INPUT => PARSE_JSON(?))) f"
    values = {column.name: column.value(i) for i, column in enumerate(columns)}
    names = ", ".join(quoted(name) for name in values)
    # A column that is left out gets its default.
    insert = f"INSERT INTO {place} ({names}) SELECT {', '.join(values.values())} FROM {source}"  # noqa: S608
    keys = table.primary_key if record.key is not None else ()
    statements = [insert]
    if keys and set(keys) <= set(values):
        read = ", ".join(f"{values[name]} AS {quoted(name)}" for name in keys)
        same = " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in keys)
        statements.insert(0, f"DELETE FROM {place} t USING (SELECT {read} FROM {source}) s WHERE {same}")  # noqa: S608
    return statements, json.dumps([[document[name] for name in values]])


def _document(record: NewRecord, table: Table, entity: str) -> dict[str, str | None]:
    """The row of a record: its JSON object, whose members are columns of the table, as texts."""
    raw = record.value or b"null"
    given = json.loads(raw)
    if not isinstance(given, dict) or not given:
        raise StoreError("store-rejected", f"A row of table {entity} must be a JSON object of its columns.")
    columns = {column.name: column for column in table.columns}
    unknown = sorted(set(given) - set(columns))
    if unknown:
        there = ", ".join(columns)
        raise StoreError(
            "store-rejected", f"Table {entity} has no column {', '.join(unknown)}.", hint=f"It has {there}."
        )
    # Digits stay as they were written.
    exact = json.loads(raw, parse_float=str, parse_int=str)
    return {name: _text(columns[name], given[name], exact[name]) for name in given}


def _text(column: TableColumn, value: Any, exact: Any) -> str | None:
    base, _ = base_of(column.native)
    if value is None:
        return None
    if base in JSON or isinstance(value, list | dict):
        return json.dumps(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if base == "BINARY":
        # BYTES are base64 in our JSON.
        with contextlib.suppress(ValueError):
            return base64.b64decode(exact, validate=True).hex()
    return str(exact)
