"""What records of a table's rows look like: of a changelog the row, of a stream an envelope.

Of a changelog each record is the row afterwards behind its key, or nothing where the row has gone. Of a
stream it is an envelope: ``op`` (``c`` made, ``u`` changed, ``d`` deleted, ``r`` read at the start, ``t``
table emptied), ``ts_ms``, ``before``, ``after``, and ``source`` (also ``system``): database, schema, table
and place in the log.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from leatstream.connectors.postgres.cdc_position import Key, Mark
from leatstream.connectors.postgres.cdc_table import SourceTable
from leatstream.connectors.postgres.cdc_values import declared, key_writer, row_writer
from leatstream.connectors.postgres.pgoutput import UNCHANGED, Change, Unchanged, Values
from leatstream.connectors.postgres.types import read_type
from leatstream.errors import StoreError
from leatstream.model.types import DataType

BEFORE, AFTER = "before", "after"
ORIGINS = ("source", "system")


class Record(NamedTuple):
    """A record: JSON or nothing behind a key; when it was committed (epoch microseconds) and where.

    What was read at the start stands at 0: a change that it lacks may have been written before, and be
    committed after.
    """

    key: bytes | None
    value: bytes | None
    at: int
    lsn: int


@dataclass(frozen=True, slots=True)
class Form:
    """What records look like.

    Attributes:
        columns: of the relation: names and types.
        key: columns of a changelog's primary key; empty for a stream.
        primitive: whether the record key is one plain value.
        truncates: whether a changelog passes over the emptying of its table.
    """

    database: str
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...] = ()
    primitive: bool = False
    truncates: bool = False

    def images(self) -> list[tuple[str, DataType]]:
        """The columns of the table's rows that are asked for, with their types."""
        columns = declared(self.columns)
        if self.key:
            return columns
        found: dict[str, DataType] = {}
        for name, kind in columns:
            if name in (BEFORE, AFTER):
                found |= dict(zip(kind.fields, kind.arguments, strict=True))
        return list(found.items())


class Shaper:
    """Makes records of the rows of a table that has these columns, in this order.

    ``lacking``: of how many columns, the last ones, the log has no values.
    """

    def __init__(
        self, form: Form, table: SourceTable, shape: Sequence[tuple[str, int]], lacking: int = 0
    ) -> None:
        self.lacking = lacking
        # The log names domains, whose values are written as those of their own types.
        bases = {column.oid: column.base for column in table.columns}
        shape = [(name, bases.get(oid, oid)) for name, oid in shape]
        images, oids = form.images(), dict(shape)
        names = [name for name, _ in shape]
        missing = [c.name for c in table.key if c.name not in oids]
        if missing:
            raise StoreError(
                "store-rejected", f"Table {table.schema}.{table.name} has lost its key column {missing[0]}."
            )
        self.key_places = [names.index(c.name) for c in table.key]
        self.wanted = [(names.index(name), name) for name, _ in images if name in oids]
        keys = form.key or tuple(c.name for c in table.key)
        kinds = {c.name: read_type(c.type) for c in table.key} | dict(images)
        typed = [(name, kinds[name]) for name in keys]
        self._keyed = bool(form.key)
        self._key = key_writer(typed, shape, form.primitive)
        if self._keyed:
            self._row = row_writer(images, shape)
            return
        columns = dict(declared(form.columns))
        sides = {
            side: row_writer(list(zip(columns[side].fields, columns[side].arguments, strict=True)), shape)
            for side in (BEFORE, AFTER)
            if side in columns
        }
        self._before, self._after = sides.get(BEFORE), sides.get(AFTER)
        origin = json.dumps(
            {"db": form.database, "schema": table.schema, "table": table.name}, ensure_ascii=False
        ).encode()[:-1]
        self._origins = [json.dumps(name).encode() + b":" + origin for name in ORIGINS if name in columns]

    def completed(self, change: Change) -> Change:
        """A change of the log with places for the columns that the log lacks."""
        old, key = (values and values + [None] * self.lacking for values in (change.old, change.key))
        new = change.new and change.new + [UNCHANGED] * self.lacking
        return change._replace(old=old, key=key, new=new)

    def key_of(self, values: Values) -> Key:
        """The primary key as text."""
        return tuple(
            value.decode() if isinstance(value, bytes) else ""
            for value in (values[i] for i in self.key_places)
        )

    def key(self, values: Values) -> bytes:
        """The record key of a row."""
        return self._key(values)

    def upsert(self, key: bytes, values: Values, at: int, lsn: int) -> Record:
        """A changelog's row."""
        return Record(key, self._row(values), at, lsn)

    def envelope(
        self, op: bytes, key: bytes | None, before: Values | None, after: Values | None, at: int, lsn: int
    ) -> Record:
        """A stream's event."""
        old = self._before(before) if before is not None and self._before else b"null"
        new = self._after(after) if after is not None and self._after else b"null"
        value = b'{"op":"%b","ts_ms":%d,"before":%b,"after":%b' % (op, at // 1000, old, new)
        for origin in self._origins:
            value += b',%b,"lsn":%d}' % (origin, lsn)
        return Record(key, value + b"}", at, lsn)

    def first(self, values: Values, at: int, lsn: int) -> Record:
        """A row that was read at the start; ``lsn``: where the log ended then, for an envelope."""
        key = self._key(values)
        if self._keyed:
            return self.upsert(key, values, at, 0)
        return self.envelope(b"r", key, None, values, at, lsn)._replace(lsn=0)


def first_rows(shaper: Shaper, rows: Sequence[Sequence[bytes | None]], at: int, seen: Mark) -> list[Record]:
    """Records of rows that were read at the start."""
    return [shaper.first(list[bytes | Unchanged | None](row), at, seen.lsn) for row in rows]
