"""Rows of a ClickHouse table by key, for ``table_lookup``."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from leatstream.connectors import table_lookup
from leatstream.connectors.clickhouse.admin import engine_of_table
from leatstream.connectors.clickhouse.errors import reported
from leatstream.connectors.clickhouse.names import place, quoted
from leatstream.connectors.clickhouse.records import final
from leatstream.connectors.clickhouse.rows import JSON_SETTINGS, row_reader, selected
from leatstream.connectors.clickhouse.settings import ClickHouseConfig, connect
from leatstream.connectors.clickhouse.types import base_of, column_type
from leatstream.connectors.clickhouse.values import ValueFaultError
from leatstream.connectors.entities import Table
from leatstream.connectors.table_lookup import Key
from leatstream.connectors.writers import Nested
from leatstream.errors import StoreError
from leatstream.model.types import DataType, parse_type
from leatstream.plan.job_spec import LookupSpec

if TYPE_CHECKING:
    import pyarrow as pa
    from clickhouse_connect.driver.client import Client
    from pyspark.sql import Column, DataFrame

_CONNECT, _READ = 10.0, 60.0  # seconds
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")
_YEARS = ("1900", "2299")
"""Between them are the days and times that ClickHouse holds; it would look up the nearest one instead."""
_clients: dict[ClickHouseConfig, Client] = {}  # of this worker, which Spark uses for one task after the other


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column that rows are looked up by.

    Attributes:
        own: the column in the statement, as what it is compared as.
        given: a text in the statement, with ``{}`` for its name, as the same type.
    """

    own: str
    given: str
    kind: str


@dataclass(frozen=True, slots=True)
class Target:
    """What a task needs to know to look rows up.

    Attributes:
        columns: name, the relation's type and the table's of each of the relation's columns.
        final: ``FINAL`` where rows of a key replace each other.
        ttl_ms: how long rows are kept; 0 = they are not.
    """

    store: str
    config: ClickHouseConfig
    entity: str
    columns: tuple[tuple[str, str, str], ...]
    keys: tuple[KeyColumn, ...]
    final: str
    ttl_ms: int

    @property
    def shape(self) -> list[tuple[str, DataType, str]]:
        """The columns with their types read."""
        return [(name, parse_type(kind), native) for name, kind, native in self.columns]


class ClickHouseTableReader:
    """Looks up a table's rows for one query."""

    def __init__(self, store: str, config: ClickHouseConfig, spec: LookupSpec, table: Table) -> None:
        kinds = {column.name: parse_type(column.type) for column in spec.columns}
        natives = {column.name: column.native for column in table.columns}
        self._kinds = [kinds[name] for name in spec.keys]
        self.target = Target(
            store=store,
            config=config,
            entity=spec.entity,
            columns=tuple((column.name, column.type, natives[column.name]) for column in spec.columns),
            keys=tuple(key_column(name, kinds[name], natives[name]) for name in spec.keys),
            final=final(engine_of_table(table)),
            ttl_ms=spec.cache_ttl_ms,
        )

    def texts(self, values: Sequence[Column], nested: Nested) -> list[Column]:
        """The keys' values, of their columns' types, as the texts that ``rows`` takes."""
        from pyspark.sql import functions as F

        return [
            F.hex(value) if kind.kind in ("BYTES", "VARBINARY") else value.cast("string")
            for value, kind in zip(values, self._kinds, strict=True)
        ]

    def rows(self, keys: DataFrame) -> DataFrame:
        """The rows of these keys: ``value``, the JSON text of the relation's columns.

        Args:
            keys: a column of texts for each key column, none of them NULL, in the order of the keys.
        """
        return keys.mapInArrow(functools.partial(look_up, self.target), "value string")


def key_column(name: str, kind: DataType, native: str) -> KeyColumn:
    """How a column's values are compared with given ones: as the relation's type if it differs.

    Args:
        name: the column's.
        kind: the relation's type.
        native: the table's.
    """
    own, base = quoted(name), base_of(native)[0]
    if kind.kind == "VARCHAR":
        return KeyColumn(own if base == "String" else f"toString({own})", "{}", kind.kind)
    if kind.kind in ("BYTES", "VARBINARY"):
        return KeyColumn(own, "unhex({})", kind.kind)
    if kind.kind in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        # To the microsecond, as the relation has it.
        return KeyColumn(f"toDateTime64({own}, 6, 'UTC')", "toDateTime64({}, 6, 'UTC')", kind.kind)
    if kind.kind == "DECIMAL":
        # An array of decimals is nothing that IN takes. Their texts are the same where they are equal.
        return KeyColumn(f"toString({own})", "{}", kind.kind)
    made = column_type(kind)
    same = base == base_of(made)[0]
    return KeyColumn(own if same else f"CAST({own} AS Nullable({made}))", f"CAST({{}} AS {made})", kind.kind)


def look_up(target: Target, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: the rows of the keys of its batches."""
    return table_lookup.look_up(
        target, functools.partial(_able, target), functools.partial(_fetched, target), batches
    )


def _able(target: Target, key: Key) -> bool:
    """Whether a row can have this key."""
    return all(
        column.kind not in _TIMES
        or (len(value.partition("-")[0]) == 4 and _YEARS[0] <= value[:4] <= _YEARS[1])
        for column, value in zip(target.keys, key, strict=True)
    )


def _fetched(target: Target, keys: list[Key], numbered: bool) -> list[tuple[int, bytes]]:
    what = f"looking rows up in table {target.entity}"
    read = row_reader(target.shape)
    with reported(target.store, what, target.config.where, _READ, target.entity):
        text = statement(target)
        columns = zip(target.keys, zip(*keys, strict=True), strict=True)
        given = {f"k{i}": _written(key.kind, values) for i, (key, values) in enumerate(columns)}
        answer = _client(target.config).raw_query(text, given, settings=dict(JSON_SETTINGS))
    found: list[tuple[int, bytes]] = []
    for line in answer.splitlines():
        number, rest = line[1:].split(b",", 1)
        try:
            row = read(b"[" + rest)
        except ValueFaultError as fault:
            raise StoreError("store-rejected", f"Store {target.store}: {what}: {fault.why}.") from None
        found.append((int(number) - 1 if numbered else 0, json.dumps(row, ensure_ascii=False).encode()))
    return found


def _written(kind: str, values: Sequence[str]) -> list[str]:
    """Texts of values as ClickHouse has them: decimals without zeros at their end."""
    if kind != "DECIMAL":
        return list(values)
    plain = (f"{Decimal(value):f}" for value in values)
    return [one.rstrip("0").rstrip(".") if "." in one else one for one in plain]


def statement(target: Target) -> str:
    """The SELECT that takes an array of texts for each key column; first in a row is its key's place."""
    arrays = [
        f"arrayMap(x -> {key.given.format('x')}, {{k{i}:Array(String)}})" for i, key in enumerate(target.keys)
    ]
    own = [key.own for key in target.keys]
    given = arrays[0] if len(own) == 1 else f"arrayZip({', '.join(arrays)})"
    one = own[0] if len(own) == 1 else f"tuple({', '.join(own)})"
    return (
        f"WITH {given} AS leat_keys SELECT indexOf(leat_keys, {one}), {selected(target.shape)}"  # noqa: S608
        f" FROM {place(target.entity, target.config.home)}{target.final} WHERE {one} IN leat_keys"
        " FORMAT JSONCompactEachRow"
    )


def _client(config: ClickHouseConfig) -> Client:
    """The worker's client of this server; its connections are made again where they are lost."""
    if config not in _clients:
        _clients[config] = connect(config, _CONNECT, _READ)
    return _clients[config]
