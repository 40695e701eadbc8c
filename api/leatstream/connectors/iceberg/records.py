"""A table's rows for people, and rows that statements spell out."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leatstream.connectors.entities import NewRecord, Record
from leatstream.connectors.iceberg.admin import IcebergAdmin, described
from leatstream.connectors.iceberg.keyed import replace_rows
from leatstream.connectors.iceberg.rows import arrow_schema, last_of_keys
from leatstream.connectors.iceberg.values import arrow_value, json_rows
from leatstream.errors import StoreError

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable
    from pyiceberg.table import Transaction

_TIMEOUT = 15.0
_MARK = "leatstream.statement"  # what a snapshot's summary says a statement's own mark under


def rows(admin: IcebergAdmin, entity: str, limit: int | None) -> Iterator[Record | None]:
    """The rows of the present snapshot as JSON objects; the key is an object of the key's columns.

    Args:
        admin: of the store.
        entity: its name in the store.
        limit: end after so many rows; None = no limit.

    They are those of one snapshot, whatever is committed meanwhile.
    """
    yield None
    what = f"reading table {entity}"
    table = admin.loaded(entity, _TIMEOUT, what)
    keys = described(table).primary_key
    snapshot = table.current_snapshot()
    if snapshot is None:
        return
    number = 0
    with admin.catalog(what, _TIMEOUT, rows=True):
        for batch in table.scan(limit=limit).to_arrow_batch_reader():
            whole = json_rows(batch)
            of_keys = json_rows(batch.select(list(keys))) if keys else [None] * len(whole)
            for key, row in zip(of_keys, whole, strict=True):
                yield Record(key, row, partition=0, offset=number, timestamp=snapshot.timestamp_ms)
                number += 1


def write(admin: IcebergAdmin, entity: str, records: Sequence[NewRecord], timeout: float) -> None:
    """Write rows in one commit; those of a table with a key replace the row of the same key.

    Args:
        admin: of the store.
        entity: its name in the store.
        records: JSON objects of its columns.
        timeout: seconds.

    Raises:
        StoreError: store-rejected, nothing is written then; store-unreachable, it may be written yet.
    """
    import pyarrow as pa

    what = f"writing to table {entity}"
    table = admin.loaded(entity, timeout, what)
    if not records:
        return
    documents = [_document(record, table, entity) for record in records]
    names = [one.name for one in table.schema().fields if any(one.name in found for found in documents)]
    shape = described(table)
    required = [c.name for c in shape.columns if c.not_null and not c.filled and c.name not in names]
    if required:
        raise StoreError(
            "store-rejected", f"Table {entity} requires a value of column {', '.join(required)}."
        )
    wanted = arrow_schema(table.schema(), names)
    columns = [_column([found.get(field.name) for found in documents], field, entity) for field in wanted]
    new = pa.Table.from_arrays(columns, schema=wanted)
    mark = uuid.uuid4().hex
    note = {"leatstream.query": "statement", _MARK: mark}
    with admin.catalog(what, timeout, rows=True):
        transaction = table.transaction()
        if shape.primary_key:
            last = last_of_keys(new, shape.primary_key)
            keys = last.select(list(shape.primary_key))
            replace_rows(table, transaction, keys=keys, new=last, note=note)
        else:
            transaction.append(new, snapshot_properties=note)
        _commit(admin, entity, transaction, mark, timeout)


def _commit(admin: IcebergAdmin, entity: str, transaction: Transaction, mark: str, timeout: float) -> None:
    """Commit rows, and find out whether they are there if the answer does not say it."""
    from pyiceberg.exceptions import CommitFailedException

    what = f"writing to table {entity}"
    try:
        transaction.commit_transaction()
    except CommitFailedException:
        raise
    except Exception as error:
        unclear = admin.unclear(what, error, timeout)
        if unclear is None:
            raise
        with contextlib.suppress(StoreError):
            table = admin.loaded(entity, timeout, what)
            if any(one.summary is not None and one.summary.get(_MARK) == mark for one in table.snapshots()):
                return
        raise StoreError(
            unclear.code,
            f"{unclear.faults[0].detail} The rows were not found in the table afterwards.",
            hint="The catalog may still finish it: look at the table before you repeat the statement.",
        ) from None


def _column(values: list[Any], field: Any, entity: str) -> Any:
    import pyarrow as pa

    try:
        found = pa.array([arrow_value(value, field.type) for value in values], field.type)
    except (pa.ArrowException, ValueError, TypeError, ArithmeticError, LookupError):
        raise StoreError(
            "store-rejected",
            f"A value of column {field.name} of table {entity} cannot be read as {field.type}.",
        ) from None
    if not field.nullable and found.null_count:
        raise StoreError("store-rejected", f"Column {field.name} of table {entity} requires a value.")
    return found


def _document(record: NewRecord, table: IcebergTable, entity: str) -> Mapping[str, Any]:
    """The row of a record: its JSON object, whose members are columns of the table."""
    given = json.loads(record.value or b"null")
    if not isinstance(given, dict) or not given:
        raise StoreError("store-rejected", f"A row of table {entity} must be a JSON object of its columns.")
    there = [one.name for one in table.schema().fields]
    unknown = sorted(set(given) - set(there))
    if unknown:
        detail = f"Table {entity} has no column {', '.join(unknown)}."
        raise StoreError("store-rejected", detail, hint=f"It has {', '.join(there)}.")
    return given
