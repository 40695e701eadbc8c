"""Rows of an Iceberg table by key, for ``table_lookup``.

A task asks the present snapshot for the rows of up to a thousand keys. Its cost hangs on how many files
can hold them: their statistics are compared with the keys, and the others are not read.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leatstream.connectors import table_lookup
from leatstream.connectors.entities import Table
from leatstream.connectors.iceberg.admin import IcebergAdmin
from leatstream.connectors.iceberg.catalogs import opener_of
from leatstream.connectors.iceberg.keyed import key_filter
from leatstream.connectors.iceberg.rows import arrow_schema
from leatstream.connectors.iceberg.settings import IcebergGlueConfig, IcebergRestConfig
from leatstream.connectors.iceberg.values import json_rows
from leatstream.connectors.table_lookup import Key
from leatstream.connectors.writers import Nested
from leatstream.errors import StoreError
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import LookupSpec

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

_TIMEOUT = 60.0
_TEXTS = ("string",)


@dataclass(frozen=True, slots=True)
class Target:
    """What a task needs to know to look rows up.

    Attributes:
        columns: names and types of the relation's columns.
        keys: columns that rows are looked up by.
        ttl_ms: how long rows are kept; 0 = they are not.
    """

    store: str
    config: IcebergRestConfig | IcebergGlueConfig
    entity: str
    columns: tuple[tuple[str, str], ...]
    keys: tuple[str, ...]
    ttl_ms: int


class IcebergTableReader:
    """Looks up a table's rows for one query."""

    def __init__(
        self, store: str, config: IcebergRestConfig | IcebergGlueConfig, spec: LookupSpec, table: Table
    ) -> None:
        natives = {column.name: column.native for column in table.columns}
        kinds = {column.name: parse_type(column.type).kind for column in spec.columns}
        for name in spec.keys:
            if kinds[name] == "VARCHAR" and natives[name] not in _TEXTS:
                raise StoreError(
                    "store-rejected",
                    f"Rows of table {spec.entity} cannot be looked up by the text of column {name}: it is "
                    f"{natives[name]} in the table.",
                    hint=f"Declare {name} in the relation with its own type.",
                )
        self.target = Target(
            store=store,
            config=config,
            entity=spec.entity,
            columns=tuple((column.name, column.type) for column in spec.columns),
            keys=tuple(spec.keys),
            ttl_ms=spec.cache_ttl_ms,
        )

    def texts(self, values: Sequence[Column], nested: Nested) -> list[Column]:
        """The keys' values as they are: Arrow holds them all."""
        return list(values)

    def rows(self, keys: DataFrame) -> DataFrame:
        """The rows of these keys: ``value``, the JSON text of the relation's columns."""
        return keys.mapInArrow(functools.partial(look_up, self.target), "value string")


def look_up(target: Target, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: the rows of the keys of its batches."""
    return table_lookup.look_up(target, lambda _: True, functools.partial(_fetched, target), batches)


@functools.lru_cache(maxsize=16)
def kept_admin(store: str, config: IcebergRestConfig | IcebergGlueConfig) -> IcebergAdmin:
    """A catalog of this process, which Spark's Python workers use for one task after the other."""
    return IcebergAdmin(store, config.where, opener_of(config))


def _fetched(target: Target, keys: list[Key], numbered: bool) -> list[tuple[int, bytes]]:
    import pyarrow as pa

    what = f"looking rows up in table {target.entity}"
    admin = kept_admin(target.store, target.config)
    with admin.catalog(what, _TIMEOUT, rows=True):
        table = admin.loaded(target.entity, _TIMEOUT, what)
        wanted = arrow_schema(table.schema(), target.keys)
        places = _places(keys, wanted)
        if not places:
            return []
        columns = zip(*places, strict=True)
        typed = [pa.array(one, field.type) for one, field in zip(columns, wanted, strict=True)]
        condition = key_filter(table, pa.Table.from_arrays(typed, names=wanted.names))
        names = [name for name, _ in target.columns]
        fields = tuple(dict.fromkeys((*names, *target.keys)))
        found = table.scan(row_filter=condition, selected_fields=fields).to_arrow()
        of_keys = zip(*(found.column(name).to_pylist() for name in target.keys), strict=True)
        kinds = {name: parse_type(kind) for name, kind in target.columns}
        rows = zip(of_keys, json_rows(found.select(names), kinds), strict=True)
        # Of several columns the condition holds for all combinations of their values.
        return [(places[key] if numbered else 0, row) for key, row in rows if key in places]


def _places(keys: list[Key], wanted: pa.Schema) -> dict[tuple[Any, ...], int]:
    """Keys as the table's own values, to their places; those that no row can have are left out."""
    import pyarrow as pa

    found: dict[tuple[Any, ...], int] = {}
    for place, key in enumerate(keys):
        try:
            parts = zip(key, wanted, strict=True)
            value = tuple(pa.scalar(one).cast(field.type).as_py() for one, field in parts)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        found.setdefault(value, place)
    return found
