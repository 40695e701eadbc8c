"""Rows of an Oracle table by key, for ``table_lookup``."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from leatstream.connectors import table_lookup
from leatstream.connectors.entities import Table
from leatstream.connectors.oracle.errors import Place
from leatstream.connectors.oracle.names import table_name
from leatstream.connectors.oracle.session import transaction
from leatstream.connectors.oracle.settings import OracleConfig
from leatstream.connectors.oracle.types import LOBS, NESTED, TEXTS, base_of
from leatstream.connectors.oracle.values import row_writer, selected
from leatstream.connectors.table_lookup import Key
from leatstream.connectors.upper_names import quoted
from leatstream.connectors.writers import Nested
from leatstream.errors import StoreError
from leatstream.model.types import DataType, parse_type
from leatstream.plan.job_spec import LookupSpec

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

_TIMEOUT = 60.0  # seconds
# Statements of few shapes, which Oracle parses once: keys are asked for in so many places.
_PLACES = (1, 10, 100, 1000)


@dataclass(frozen=True, slots=True)
class Target:
    """What a task needs to know to look rows up.

    Attributes:
        columns: names, types of the relation and of the table.
        keys: names and the table's types of those that are asked for.
        ttl_ms: how long rows are kept; 0 = they are not.
    """

    store: str
    config: OracleConfig
    entity: str
    columns: tuple[tuple[str, str, str], ...]
    keys: tuple[tuple[str, str], ...]
    ttl_ms: int


class OracleTableReader:
    """Looks up a table's rows for one query.

    Raises:
        StoreError: rows cannot be found by such a column.
    """

    def __init__(self, store: str, config: OracleConfig, spec: LookupSpec, table: Table) -> None:
        natives = {column.name: column.native for column in table.columns}
        self._kinds = {column.name: parse_type(column.type) for column in spec.columns}
        self._keys = list(spec.keys)
        for name in spec.keys:
            if not _comparable(self._kinds[name], natives[name]):
                detail = (
                    f"Rows of table {spec.entity} of store {store} cannot be looked up by {name}: "
                    f"a {natives[name]} is not compared with values of {self._kinds[name]}."
                )
                raise StoreError("store-rejected", detail, hint="Look them up by a column of the same type.")
        self.target = Target(
            store=store,
            config=config,
            entity=spec.entity,
            columns=tuple((column.name, column.type, natives[column.name]) for column in spec.columns),
            keys=tuple((name, natives[name]) for name in spec.keys),
            ttl_ms=spec.cache_ttl_ms,
        )

    def texts(self, values: Sequence[Column], nested: Nested) -> list[Column]:
        """The keys' values as they are; 0 and 1 of BOOLEAN."""
        found = []
        for value, name in zip(values, self._keys, strict=True):
            found.append(value.cast("int") if self._kinds[name].kind == "BOOLEAN" else value)
        return found

    def rows(self, keys: DataFrame) -> DataFrame:
        """The rows of these keys; see ``TableReader``."""
        return keys.mapInArrow(functools.partial(look_up, self.target), "value string")


def _comparable(kind: DataType, native: str) -> bool:
    """Whether a column is compared with values of a declared type as it is, without a conversion."""
    base, _ = base_of(native)
    if base in LOBS or kind.kind in NESTED:
        return False
    return kind.kind not in ("VARCHAR", "TIME") or base in TEXTS


def look_up(target: Target, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: the rows of the keys of its batches."""
    return table_lookup.look_up(target, _able, functools.partial(_fetched, target), batches)


def _able(key: Key) -> bool:
    """Whether a row can have this key: Oracle has no empty text."""
    return all(value not in ("", b"") for value in key)


def _fetched(target: Target, keys: list[Key], numbered: bool) -> list[tuple[int, bytes]]:
    columns = [(name, parse_type(kind)) for name, kind, _ in target.columns]
    write = row_writer(columns, target.entity)
    numbers = {_same(key): i for i, key in enumerate(keys)}
    size = next(places for places in _PLACES if len(keys) <= places)
    text = statement(target, size)
    given = [_bound(value) for key in [*keys, *[keys[-1]] * (size - len(keys))] for value in key]
    place = Place(target.store, target.config.where, f"looking rows up in table {target.entity}")
    with transaction(place, target.config, _TIMEOUT) as connection, connection.cursor() as cursor:
        cursor.arraysize = 1000
        cursor.execute(text, given, fetch_lobs=False, fetch_decimals=True)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    first, found = len(target.keys), []
    for row in rows:
        # One that Oracle alone holds for equal is none of these keys: the join would not take it.
        number = numbers.get(_same(row[:first])) if numbered else 0
        if number is not None:
            found.append((number, write(row[first:])))
    return found


def statement(target: Target, places: int) -> str:
    """The SELECT of the rows of so many keys, each with the values of its key before it."""
    names = [selected(name, native) for name, native in target.keys]
    names += [selected(name, native) for name, _, native in target.columns]
    keys = [f"T.{quoted(name)}" for name, _ in target.keys]
    width = len(keys)
    rows = ["(" + ", ".join(f":{row * width + i + 1}" for i in range(width)) + ")" for row in range(places)]
    where = f"({', '.join(keys)}) IN ({', '.join(rows)})"
    return f"SELECT {', '.join(names)} FROM {table_name(target.config, target.entity)} T WHERE {where}"  # noqa: S608


def _bound(value: Any) -> Any:
    """A key's value for Oracle; a time with a zone as that of UTC, which is the session's."""
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def _same(key: Sequence[Any]) -> tuple[Any, ...]:
    """One form of equal values, of a key and of a row."""
    return tuple(_one(value) for value in key)


def _one(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else value
