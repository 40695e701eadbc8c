"""Rows of a Snowflake table by key, for ``table_lookup``: a statement for a thousand keys at a time."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leatstream.connectors import table_lookup
from leatstream.connectors.entities import Table
from leatstream.connectors.snowflake.admin import SnowflakeAdmin
from leatstream.connectors.snowflake.entity import Place
from leatstream.connectors.snowflake.errors import as_store_errors
from leatstream.connectors.snowflake.session import drop_session, kept_session, run
from leatstream.connectors.snowflake.settings import SnowflakeConfig
from leatstream.connectors.snowflake.sink import text
from leatstream.connectors.snowflake.staging import value_of
from leatstream.connectors.snowflake.types import base_of, column_type, read_type
from leatstream.connectors.snowflake.values import double, reading, row_writer
from leatstream.connectors.table_lookup import Key
from leatstream.connectors.upper_names import quoted
from leatstream.connectors.writers import Nested
from leatstream.errors import StoreError
from leatstream.model.types import DataType, parse_type
from leatstream.plan.job_spec import LookupSpec

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

_TIMEOUT = 120.0  # seconds: a warehouse may have to start
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")
_CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?\Z")
_OTHER_FORMS = ("BOOLEAN", "TIME", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "TIMESTAMP_TZ")


@dataclass(frozen=True, slots=True)
class Target:
    """What a task needs to know to look rows up.

    Attributes:
        columns: names and types of the relation's columns, and the types of the table's.
        keys: names of those that rows are looked up by.
        ttl_ms: how long rows are kept; 0 = they are not.
    """

    store: str
    config: SnowflakeConfig
    entity: str
    place: Place
    columns: tuple[tuple[str, str, str], ...]
    keys: tuple[str, ...]
    ttl_ms: int

    def column(self, name: str) -> tuple[DataType, str]:
        """A column's declared type, and its type in the table."""
        kind, native = next(one[1:] for one in self.columns if one[0] == name)
        return parse_type(kind), native


class SnowflakeTableReader:
    """Looks up a table's rows for one query."""

    def __init__(self, store: str, config: SnowflakeConfig, spec: LookupSpec, table: Table) -> None:
        natives = {column.name: column.native for column in table.columns}
        self.target = Target(
            store=store,
            config=config,
            entity=spec.entity,
            place=SnowflakeAdmin(store, config).place(spec.entity),
            columns=tuple((c.name, c.type, natives[c.name]) for c in spec.columns),
            keys=tuple(spec.keys),
            ttl_ms=spec.cache_ttl_ms,
        )
        for name in spec.keys:
            kind, native = self.target.column(name)
            if kind.kind == "VARCHAR" and base_of(native)[0] in _OTHER_FORMS:
                raise StoreError(
                    "store-rejected",
                    f"Rows of table {spec.entity} of store {store} cannot be looked up by {name} as VARCHAR: "
                    f"the column is {native}, whose texts have several forms.",
                    hint=f"Declare {name} as {read_type(native)}.",
                )

    def texts(self, values: Sequence[Column], nested: Nested) -> list[Column]:
        """The keys' values, of their columns' types, as the texts that ``rows`` takes."""
        return [
            text(value, self.target.column(name)[0], name, nested)
            for value, name in zip(values, self.target.keys, strict=True)
        ]

    def rows(self, keys: DataFrame) -> DataFrame:
        """The rows of these keys: ``value``, the JSON text of the relation's columns.

        Args:
            keys: a column of texts for each key column, none of them NULL, in the order of the keys.
        """
        return keys.mapInArrow(functools.partial(look_up, self.target), "value string")


def look_up(target: Target, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: the rows of the keys of its batches."""
    return table_lookup.look_up(
        target, functools.partial(able, target), functools.partial(_fetched, target), batches
    )


def able(target: Target, key: Key) -> bool:
    """Whether a row can have this key: Snowflake refuses to read some texts as values."""
    for name, value in zip(target.keys, key, strict=True):
        kind, native = target.column(name)
        # Years from 1 to 9999 are what it has.
        if kind.kind in _TIMES and (value[:1] in "+-" or value[:4] == "0000"):
            return False
        if kind.kind == "TIME" and _CLOCK.match(value) is None:
            return False
        if kind.kind == "VARCHAR" and base_of(native)[0] == "FLOAT" and not _shows_double(value):
            return False
    return True


def _shows_double(value: str) -> bool:
    """Whether a row's FLOAT can be read as this text."""
    try:
        return double(float(value)).strip('"') == value
    except ValueError:
        return False


def _compared(target: Target, name: str) -> tuple[str, str]:
    """A key column as it is compared, and the type that given texts are read as."""
    kind, native = target.column(name)
    base, _ = base_of(native)
    if kind.kind != "VARCHAR":
        return f"t.{quoted(name)}", "TIME" if kind.kind == "TIME" else column_type(kind)
    # As the rows' texts are: other types are compared as what a row shows of them.
    return (f"t.{quoted(name)}", "FLOAT") if base == "FLOAT" else (reading(name, native), "VARCHAR")


def statement(target: Target, *, numbered: bool) -> str:
    """The SELECT that takes keys, arrays of texts; ``numbered``: with the place of a row's key."""
    read = ", ".join(reading(name, native) for name, _, native in target.columns)
    own = [_compared(target, name) for name in target.keys]
    given = [value_of(f"f.value[{i}]::VARCHAR", kind) for i, (_, kind) in enumerate(own)]
    keys = ", ".join(f"{value} AS K{i}" for i, value in enumerate(given))
    same = " AND ".join(f"{mine} = k.K{i}" for i, (mine, _) in enumerate(own))
    source = "TABLE(FLATTEN(INPUT => PARSE_JSON(?))) f"
    head = "k.N, " if numbered else ""
    number = "f.index AS N, " if numbered else ""
    # Keys are given once each, so no row comes twice.
    return (
        f"SELECT {head}{read} FROM (SELECT {number}{keys} FROM {source}) k"  # noqa: S608 - our own names
        f" JOIN {target.place.statement} t ON {same}"
    )


def _fetched(target: Target, keys: list[Key], numbered: bool) -> list[tuple[int, bytes]]:
    what = f"looking rows up in table {target.entity}"
    write = row_writer(
        [(name, parse_type(kind)) for name, kind, _ in target.columns], [n for *_, n in target.columns]
    )
    place = target.place
    with as_store_errors(target.store, what, target.config, _TIMEOUT, target.entity):
        connection = kept_session(target.config, place.database, place.schema, _TIMEOUT)
        try:
            document = json.dumps(keys)
            rows = run(connection, statement(target, numbered=numbered), (document,))
        except BaseException:
            drop_session(connection)
            raise
    if numbered:
        return [(int(number), write(values).encode()) for number, *values in rows]
    return [(0, write(values).encode()) for values in rows]
