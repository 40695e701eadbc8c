"""A table's rows for people, and rows that statements spell out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leatstream.connectors.entities import NewRecord, Record, Table
from leatstream.connectors.oracle.admin import OracleAdmin
from leatstream.connectors.oracle.names import table_name
from leatstream.connectors.oracle.session import connected
from leatstream.connectors.oracle.types import known
from leatstream.connectors.oracle.values import from_json, row_writer, selected
from leatstream.connectors.upper_names import quoted
from leatstream.errors import StoreError

_FETCH = 500
_TIMEOUT = 5.0


def rows(admin: OracleAdmin, entity: str, table: Table, limit: int | None) -> Iterator[Record | None]:
    """The existing rows, as JSON objects, by primary key; the key is an object of its columns.

    One statement reads them, so that rows changed meanwhile come once and as they were. Columns of types that
    are not read, such as XMLTYPE, are left out.

    Args:
        admin: of the store.
        entity: the table's name.
        table: the table.
        limit: end after so many rows; None = no limit.
    """
    columns = [column for column in table.columns if known(column.native)]
    if not columns:
        raise StoreError("store-rejected", f"Table {entity} has no column of a type that can be shown.")
    places = {column.name: i for i, column in enumerate(columns)}
    keys = [places[name] for name in table.primary_key if name in places]
    listed = ", ".join(selected(c.name, c.native) for c in columns)
    text = f"SELECT {listed} FROM {table_name(admin.config, entity)} T"  # noqa: S608
    if table.primary_key:
        text += f" ORDER BY {', '.join('T.' + quoted(name) for name in table.primary_key)}"
    if limit is not None:
        text += f" FETCH FIRST {int(limit)} ROWS ONLY"
    write = row_writer([(c.name, c.type) for c in columns], entity)
    write_key = row_writer([(columns[i].name, columns[i].type) for i in keys], entity)
    yield None
    place = admin.place(f"reading table {entity}")
    with connected(place, admin.config, _TIMEOUT) as connection, connection.cursor() as cursor:
        cursor.arraysize = _FETCH
        cursor.execute(text, fetch_lobs=False, fetch_decimals=True)
        for number, row in enumerate(cursor):
            key = write_key([row[i] for i in keys]) if keys else None
            yield Record(key, write(row), partition=0, offset=number, timestamp=None)


def write(
    admin: OracleAdmin, entity: str, table: Table, records: Sequence[NewRecord], timeout: float
) -> None:
    """Write rows in one transaction; those with a key replace the row of the same key.

    Args:
        admin: of the store.
        entity: the table's name.
        table: the table.
        records: JSON objects of its columns.
        timeout: seconds.

    Raises:
        StoreError: store-rejected, nothing is written then.
    """
    if not records:
        return
    documents = [_document(record, table, entity) for record in records]
    target = table_name(admin.config, entity)
    place = admin.place(f"writing to table {entity}")
    with connected(place, admin.config, timeout, entity) as connection, connection.cursor() as cursor:
        for record, document in zip(records, documents, strict=True):
            keys = table.primary_key if record.key is not None else ()
            if not keys or not set(keys) <= set(document) or not _replace(cursor, target, document, keys):
                places = ", ".join(f":{i}" for i in range(1, len(document) + 1))
                listed = ", ".join(quoted(name) for name in document)
                text = f"INSERT INTO {target} ({listed}) VALUES ({places})"  # noqa: S608
                cursor.execute(text, list(document.values()))
        connection.commit()


def _replace(cursor: Any, target: str, document: Mapping[str, Any], keys: Sequence[str]) -> bool:
    """Update the row of this key; False where there is none."""
    changed = [name for name in document if name not in keys] or list(keys)
    sets = ", ".join(f"{quoted(name)} = :{i}" for i, name in enumerate(changed, 1))
    same = [f"{quoted(name)} = :{i}" for i, name in enumerate(keys, len(changed) + 1)]
    text = f"UPDATE {target} SET {sets} WHERE {' AND '.join(same)}"  # noqa: S608
    cursor.execute(text, [document[name] for name in (*changed, *keys)])
    return bool(cursor.rowcount)


def merge(target: str, source: str, names: Sequence[str], keys: Sequence[str]) -> str:
    """The MERGE of rows into a table: those whose key is there are replaced, the others are inserted.

    Args:
        target: the table in a statement.
        source: a SELECT of the columns.
        names: the columns.
        keys: those that rows replace each other by.
    """
    columns = [quoted(name) for name in names]
    same = " AND ".join(f"T.{quoted(key)} = S.{quoted(key)}" for key in keys)
    sets = ", ".join(f"T.{c} = S.{c}" for c, name in zip(columns, names, strict=True) if name not in keys)
    matched = f" WHEN MATCHED THEN UPDATE SET {sets}" if sets else ""
    values = ", ".join(f"S.{column}" for column in columns)
    return (
        f"MERGE INTO {target} T USING ({source}) S ON ({same}){matched}"  # noqa: S608
        f" WHEN NOT MATCHED THEN INSERT ({', '.join(columns)}) VALUES ({values})"
    )


def _document(record: NewRecord, table: Table, entity: str) -> Mapping[str, Any]:
    """The row of a record: its JSON object, whose members are columns of the table."""
    given = json.loads(record.value or b"null")
    if not isinstance(given, dict) or not given:
        raise StoreError("store-rejected", f"A row of table {entity} must be a JSON object of its columns.")
    columns = {column.name: column for column in table.columns}
    unknown = sorted(set(given) - set(columns))
    if unknown:
        raise StoreError(
            "store-rejected",
            f"Table {entity} has no column {', '.join(unknown)}.",
            hint=f"It has {', '.join(columns)}.",
        )
    found = {}
    for name, value in given.items():
        try:
            found[name] = from_json(value, columns[name].native)
        except ValueError as error:
            detail = f"Table {entity} does not take a value of column {name}: {error}."
            raise StoreError("store-rejected", detail) from None
    return found
