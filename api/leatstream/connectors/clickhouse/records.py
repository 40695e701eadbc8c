"""A table's rows for people, and rows that statements spell out."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from leatstream.connectors.clickhouse.admin import ClickHouseAdmin, Engine, engine_of_table
from leatstream.connectors.clickhouse.arrow_rows import DELETED, stream, versioned
from leatstream.connectors.clickhouse.batches import now
from leatstream.connectors.clickhouse.errors import value_error
from leatstream.connectors.clickhouse.names import place, quoted
from leatstream.connectors.clickhouse.rows import JSON_SETTINGS, row_reader, selected
from leatstream.connectors.clickhouse.sink import ROW_BITS
from leatstream.connectors.clickhouse.types import base_of
from leatstream.connectors.clickhouse.values import Taker, ValueFaultError, arrow_type
from leatstream.connectors.entities import NewRecord, Record, Table, TableColumn
from leatstream.errors import StoreError

_TIMEOUT = 5.0
_PAGE = 1 << 16


def rows(admin: ClickHouseAdmin, entity: str, table: Table, limit: int | None) -> Iterator[Record | None]:
    """The existing rows, as JSON objects, by sorting key; the key is an object of its columns.

    Args:
        admin: of the store.
        entity: the table.
        table: as it is now.
        limit: end after so many rows; None = after all.
    """
    engine = engine_of_table(table)
    columns = [(column.name, column.type, column.native) for column in table.columns]
    order = ", ".join(map(quoted, table.primary_key)) or table.details.get("sorting_key") or ""
    text = (
        f"SELECT {selected(columns)} FROM {place(entity, admin.config.home)}{final(engine)}"  # noqa: S608
        + (f" ORDER BY {order}" if order else "")
        + (f" LIMIT {limit:d}" if limit is not None else "")
        + " FORMAT JSONCompactEachRow"
    )
    read = row_reader(columns)
    yield None
    with admin.client(f"reading table {entity}", _TIMEOUT, entity) as client:
        pieces = client.raw_stream(text, settings=dict(JSON_SETTINGS))
        for number, line in enumerate(_lines(pieces)):
            try:
                row = read(line)
            except ValueFaultError as fault:
                raise StoreError("store-rejected", f"Table {entity}: {fault.why}.") from None
            key = {name: row[name] for name in table.primary_key}
            raw = json.dumps(key, ensure_ascii=False).encode() if key else None
            value = json.dumps(row, ensure_ascii=False).encode()
            yield Record(raw, value, partition=0, offset=number, timestamp=None)


def final(engine: Engine) -> str:
    """What makes a SELECT see one row of each key."""
    return " FINAL" if engine.replaces else ""


def _lines(pieces: Any) -> Iterator[bytes]:
    rest = b""
    while piece := pieces.read(_PAGE):
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
    if rest:
        yield rest


def write(
    admin: ClickHouseAdmin, entity: str, table: Table, records: Sequence[NewRecord], timeout: float
) -> None:
    """Write rows; in a table with a key they replace the row of the same key, whole.

    Rows of the same columns in a row are one insert, and so are there together or not at all.

    Args:
        admin: of the store.
        entity: the table.
        table: as it is now.
        records: JSON objects of its columns.
        timeout: seconds.

    Raises:
        StoreError: store-rejected; nothing is written where a value does not fit.
    """
    if not records:
        return
    columns = {column.name: column for column in table.columns if not column.generated}
    documents = [_document(record, columns, entity) for record in records]
    missing = [name for name in table.primary_key if any(name not in document for document in documents)]
    if missing:
        detail = f"A row of table {entity} needs its key: {', '.join(missing)}."
        raise StoreError("store-rejected", detail)
    groups: list[list[dict[str, Any]]] = []
    for document in documents:
        if groups and groups[-1][0].keys() == document.keys():
            groups[-1].append(document)
        else:
            groups.append([document])
    engine = engine_of_table(table)
    fitted = [_arrow(admin.store, entity, columns, group, engine) for group in groups]
    with admin.client(f"writing to table {entity}", timeout, entity) as client:
        first = now(client) << ROW_BITS if engine.deleted else 0
        for one in fitted:
            if engine.version is not None and engine.deleted is not None:
                one, first = versioned(one, engine.version, engine.deleted, first), first + one.num_rows
            client.raw_insert(
                place(entity, admin.config.home),
                column_names=[quoted(name) for name in one.schema.names],
                insert_block=stream(one),
                fmt="ArrowStream",
            )


def _document(record: NewRecord, columns: Mapping[str, TableColumn], entity: str) -> dict[str, Any]:
    """The row of a record: its JSON object, whose members are columns of the table."""
    given = json.loads(record.value or b"null", parse_float=Decimal)
    if not isinstance(given, dict) or not given:
        raise StoreError("store-rejected", f"A row of table {entity} must be a JSON object of its columns.")
    unknown = sorted(set(given) - set(columns))
    if unknown:
        there = ", ".join(columns)
        raise StoreError(
            "store-rejected", f"Table {entity} has no column {', '.join(unknown)}.", hint=f"It has {there}."
        )
    return {name: given[name] for name in columns if name in given}


def _arrow(
    store: str,
    entity: str,
    columns: Mapping[str, TableColumn],
    documents: Sequence[Mapping[str, Any]],
    engine: Engine,
) -> Any:
    import pyarrow as pa

    found: dict[str, Any] = {}
    if engine.deleted is not None:
        found[DELETED] = pa.array([False] * len(documents))
    for name in documents[0]:
        column = columns[name]
        taker = Taker(name, column.native, column.not_null)
        try:
            given = [_value(document[name], column) for document in documents]
            found[name] = taker.taken(pa.array(given, _given_type(column.native)))
        except ValueFaultError as fault:
            raise value_error(store, entity, name, fault.why) from None
        except (ValueError, TypeError, OverflowError, ArithmeticError):
            why = f"it cannot be read as {column.native}"
            raise value_error(store, entity, name, why) from None
    return pa.table(found)


def _given_type(native: str) -> Any:
    """Arrow's type of values before they are checked: times keep every digit."""
    import pyarrow as pa

    name, _ = base_of(native)
    return pa.timestamp("us") if name in ("DateTime", "DateTime64") else arrow_type(native)


def _value(given: Any, column: TableColumn) -> Any:
    """A member of a JSON object as a value of a column.

    Raises:
        ValueError, TypeError: it is none.
    """
    if given is None:
        return None
    name, parts = base_of(column.native)
    if name == "Array":
        inner = TableColumn("", column.type, parts[0])
        return [_value(one, inner) for one in _as(list, given)]
    if name == "Map":
        inner = TableColumn("", column.type, parts[1])
        return [(key, _value(one, inner)) for key, one in _as(dict, given).items()]
    return _scalar(given, name, column)


def _scalar(given: Any, name: str, column: TableColumn) -> Any:
    if name == "String" and column.type.kind in ("BYTES", "VARBINARY"):
        return base64.b64decode(_as(str, given), validate=True)
    if name in ("String", "FixedString"):
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
        return text.encode()
    if name == "Bool":
        return _as(bool, given)
    if name in ("Date", "Date32"):
        return date.fromisoformat(_as(str, given))
    if name in ("DateTime", "DateTime64"):
        at = datetime.fromisoformat(_as(str, given))
        return at if at.tzinfo is None else at.astimezone(UTC).replace(tzinfo=None)
    if isinstance(given, bool):
        raise TypeError
    if name == "Decimal":
        try:
            return Decimal(given if isinstance(given, str) else str(given))
        except InvalidOperation:
            raise ValueError from None
    if name.startswith("Float"):
        number = float(given if isinstance(given, str) and not given[-1:].isdigit() else _number(given))
        if name == "Float32" and math.isfinite(number) and abs(number) > 3.4028235677973366e38:
            raise OverflowError
        return number
    return _as(int if name.startswith(("Int", "UInt")) else str, given)


def _number(given: Any) -> Any:
    return _as((int, Decimal), given)


def _as(kind: Any, given: Any) -> Any:
    if not isinstance(given, kind):
        raise TypeError
    return given
