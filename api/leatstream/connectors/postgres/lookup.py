"""Rows of a PostgreSQL table by key, for ``table_lookup``.

The rows come as PostgreSQL's texts, which ``cdc_values`` writes as JSON.
"""

from __future__ import annotations

import functools
import math
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leatstream.connectors import table_lookup
from leatstream.connectors.entities import Table
from leatstream.connectors.postgres.admin import beside_values, identifier
from leatstream.connectors.postgres.cdc_values import declared, row_writer
from leatstream.connectors.postgres.errors import told
from leatstream.connectors.postgres.settings import PostgresConfig
from leatstream.connectors.postgres.sink import text
from leatstream.connectors.postgres.types import base_of, column_type
from leatstream.connectors.postgres.workers import kept_connection
from leatstream.connectors.table_lookup import Key
from leatstream.connectors.writers import Nested
from leatstream.errors import StoreError
from leatstream.model.types import DataType, parse_type
from leatstream.plan.job_spec import LookupSpec

if TYPE_CHECKING:
    import pyarrow as pa
    from psycopg import sql
    from pyspark.sql import Column, DataFrame

_TIMEOUT, _LOCK = 60.0, 60.0  # seconds
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column that rows are looked up by.

    Attributes:
        cast: the type that the texts of its values are read as.
        as_text: whether the column is compared as a text: its values are read as texts, and some texts are
            no values of its own type.
        kind: the relation's type.
        length: of every value, with its blanks; None where they differ.
    """

    name: str
    cast: str
    as_text: bool
    kind: str
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """What a task needs to know to look rows up.

    Attributes:
        columns: names and types of the relation's columns.
        ttl_ms: how long rows are kept; 0 = they are not.
    """

    store: str
    config: PostgresConfig
    entity: str
    columns: tuple[tuple[str, str], ...]
    keys: tuple[KeyColumn, ...]
    ttl_ms: int


class PostgresTableReader:
    """Looks up a table's rows for one query."""

    def __init__(self, store: str, config: PostgresConfig, spec: LookupSpec, table: Table) -> None:
        kinds = {column.name: parse_type(column.type) for column in spec.columns}
        natives = {column.name: column.native for column in table.columns}
        self._keys = [(name, kinds[name], natives[name]) for name in spec.keys]
        self.target = Target(
            store=store,
            config=config,
            entity=spec.entity,
            columns=tuple((column.name, column.type) for column in spec.columns),
            keys=tuple(key_column(*key) for key in self._keys),
            ttl_ms=spec.cache_ttl_ms,
        )

    def texts(self, values: Sequence[Column], nested: Nested) -> list[Column]:
        """The keys' values, of their columns' types, as the texts that ``rows`` takes."""
        return [
            text(value, kind, name, native, nested)
            for value, (name, kind, native) in zip(values, self._keys, strict=True)
        ]

    def rows(self, keys: DataFrame) -> DataFrame:
        """The rows of these keys: ``value``, the JSON text of the relation's columns.

        Args:
            keys: a column of texts for each key column, none of them NULL, in the order of the keys.
        """
        return keys.mapInArrow(functools.partial(look_up, self.target), "value string")


def key_column(name: str, kind: DataType, native: str) -> KeyColumn:
    """How a column's values are compared with given ones, by an index wherever the types allow it."""
    base, numbers = base_of(native)
    if base == "real" and kind.kind in ("FLOAT", "DOUBLE"):
        # As a double 0.1 is another number than the same digits of a real, which a row's text shows.
        return KeyColumn(name, "real", as_text=False, kind=kind.kind)
    if kind.kind not in ("VARCHAR", "TIME"):
        return KeyColumn(name, column_type(kind), as_text=False, kind=kind.kind)
    plain = {"text": "text", "character varying": "text", "character": "bpchar", "uuid": "uuid"}
    known = plain.get(base) if kind.kind == "VARCHAR" and "." not in native else None
    length = (*numbers, 1)[0] if known == "bpchar" else None
    return KeyColumn(name, known or "text", as_text=known is None, kind=kind.kind, length=length)


def look_up(target: Target, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: the rows of the keys of its batches."""
    return table_lookup.look_up(
        target, functools.partial(_able, target), functools.partial(_fetched, target), batches
    )


def _able(target: Target, key: Key) -> bool:
    """Whether a row can have this key: PostgreSQL refuses to read some texts as values."""
    for column, value in zip(target.keys, key, strict=True):
        if "\x00" in value or (column.cast == "uuid" and _UUID.match(value) is None):
            return False
        # There is no year 0 there.
        if column.kind in _TIMES and (value[:1] in "+-" or value[:4] == "0000"):
            return False
        if column.cast == "real" and not _real(value, double=column.kind == "DOUBLE"):
            return False
        # Blanks at the end count here, but not there: the same row would be found by several keys.
        if column.length is not None and len(value) != column.length:
            return False
    return True


def _real(text: str, *, double: bool) -> bool:
    """Whether a row's real can be this number: PostgreSQL refuses those that are too large or too small.

    A double has to be what the fewest digits of its real say: those a row shows.
    """
    number = float(text)
    packed = _packed(number)
    if packed is None:
        return False
    (real,) = struct.unpack("<f", packed)
    if real == 0 or not math.isfinite(real) or not double:
        return bool(real) or number == 0
    shown = (float(f"{real:.{digits}g}") for digits in range(1, 10))
    return next(one for one in shown if _packed(one) == packed) == number


def _packed(number: float) -> bytes | None:
    try:
        return struct.pack("<f", number)
    except OverflowError:
        return None


def _fetched(target: Target, keys: list[Key], numbered: bool) -> list[tuple[int, bytes]]:
    import psycopg

    what = f"looking rows up in table {target.entity}"
    with told(target.store, what, target.config.where, _TIMEOUT):
        connection = kept_connection(target.config, _TIMEOUT, _LOCK, by_index=True)
        arrays = [list(values) for values in zip(*keys, strict=True)]
        try:
            cursor = connection.execute(statement(target, numbered=numbered), arrays)
        except psycopg.DataError as error:
            # PostgreSQL's own sentence would quote the value.
            why = f"a value cannot be read as one of its column ({error.sqlstate})."
            raise StoreError("store-rejected", f"Store {target.store}: {what}: {why}.") from None
        result = cursor.pgresult
        if result is None:
            return []
        first = 1 if numbered else 0
        shape = [(name, result.ftype(first + i)) for i, (name, _) in enumerate(target.columns)]
        write = row_writer(declared(target.columns), shape)
        columns = range(first, first + len(shape))
        return [
            (
                int(result.get_value(row, 0) or 0) - 1 if numbered else 0,
                write([result.get_value(row, column) for column in columns]),
            )
            for row in range(result.ntuples)
        ]


def statement(target: Target, *, numbered: bool) -> sql.Composed:
    """The SELECT that takes an array for each key column; ``numbered``: with the place of the row's key."""
    from psycopg import sql

    columns = sql.SQL(", ").join(sql.SQL("t.{}").format(_name(name)) for name, _ in target.columns)
    table = beside_values(identifier(target.entity))
    # concat writes a value as the row's texts do; a cast writes some types, such as inet, in another way.
    text = "CASE WHEN t.{0} IS NOT NULL THEN concat(t.{0}) END"
    own = [sql.SQL(text if key.as_text else "t.{0}").format(_name(key.name)) for key in target.keys]
    arrays = [sql.SQL("%s::text[]::" + key.cast + "[]") for key in target.keys]
    if numbered:
        names = [sql.Identifier(f"k{i}") for i in range(len(own))]
        same = sql.SQL(" AND ").join(
            sql.SQL("{} = k.{}").format(mine, name) for mine, name in zip(own, names, strict=True)
        )
        return sql.SQL("SELECT k.n, {} FROM unnest({}) WITH ORDINALITY AS k({}, n) JOIN {} t ON {}").format(
            columns, sql.SQL(", ").join(arrays), sql.SQL(", ").join(names), table, same
        )
    if len(own) == 1:
        return sql.SQL("SELECT {} FROM {} t WHERE {} = ANY({})").format(columns, table, own[0], arrays[0])
    return sql.SQL("SELECT {} FROM {} t WHERE ({}) IN (SELECT * FROM unnest({}))").format(
        columns, table, sql.SQL(", ").join(own), sql.SQL(", ").join(arrays)
    )


def _name(column: str) -> sql.SQL:
    from psycopg import sql

    return beside_values(sql.Identifier(column))
