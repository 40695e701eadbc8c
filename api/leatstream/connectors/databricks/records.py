"""A table's rows for people: read from its files, or by the warehouse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from leatstream.connectors.databricks.errors import file_errors
from leatstream.connectors.databricks.files import opened
from leatstream.connectors.databricks.names import quoted
from leatstream.connectors.databricks.settings import DatabricksFiles
from leatstream.connectors.databricks.statements import Warehouse
from leatstream.connectors.entities import Record

_BATCH = 500
_READS = 300.0  # seconds, with the start of the warehouse


def rows(
    store: str, files: DatabricksFiles, entity: str, location: str, keys: tuple[str, ...], limit: int | None
) -> Iterator[Record | None]:
    """The rows of the table's newest version, as JSON objects, in no order.

    Args:
        store: the store's name.
        files: of the bucket.
        entity: the table.
        location: of its files.
        keys: names of its key's columns.
        limit: end after so many rows; None = no limit.
    """
    yield None
    number = 0
    with file_errors(store, entity):
        table = opened(location, files)
        for batch in table.to_pyarrow_dataset().to_batches(batch_size=_BATCH):
            for row in batch.to_pylist():
                if limit is not None and number >= limit:
                    return
                key = _json({name: row[name] for name in keys}) if keys else None
                yield Record(key, _json(row), partition=0, offset=number, timestamp=None)
                number += 1


def selected_rows(
    warehouse: Warehouse, entity: str, name: str, keys: tuple[str, ...], limit: int | None
) -> Iterator[Record | None]:
    """The rows of a table as JSON objects, in no order; the warehouse refuses more than 25 MiB.

    Args:
        warehouse: that reads them.
        entity: the table.
        name: the table, as statements write it.
        keys: names of its key's columns.
        limit: end after so many rows; None = no limit.
    """
    yield None
    nulls = "map('ignoreNullFields', 'false')"
    own = f"to_json(struct({', '.join(quoted(key) for key in keys)}), {nulls})" if keys else "NULL"
    text = f"SELECT {own}, to_json(struct(*), {nulls}) FROM {name}"  # noqa: S608 - our own names
    text += f" LIMIT {int(limit)}" if limit is not None else ""
    for number, (key, value) in enumerate(warehouse.run(text, f"reading table {entity}", _READS)):
        of_key = None if key is None else str(key).encode()
        yield Record(of_key, str(value).encode(), partition=0, offset=number, timestamp=None)


def _json(row: dict[str, Any]) -> bytes:
    import msgspec

    return msgspec.json.Encoder(decimal_format="number").encode({k: _plain(v) for k, v in row.items()})


def _plain(value: Any) -> Any:
    """Pairs of a map as an object, and what JSON has no number for as a text."""
    if (isinstance(value, float) and value != value) or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if isinstance(value, list) and value and all(isinstance(one, tuple) for one in value):
        return {str(name): _plain(one) for name, one in value}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value
