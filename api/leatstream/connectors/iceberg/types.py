"""Column types of Iceberg and of relations: each way, and which fits into which; see docs/iceberg.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from leatstream.connectors.table_fit import TableTypes
from leatstream.model.names import quote
from leatstream.model.objects import Column
from leatstream.model.types import DataType

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType

_READ = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP_LTZ",
    "string": "VARCHAR",
    "binary": "BYTES",
}
_WRITTEN = {
    "BOOLEAN": "boolean",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INTEGER": "int",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamptz",
    "VARCHAR": "string",
    "BYTES": "binary",
    "VARBINARY": "binary",
}
_WIDER = {
    "TINYINT": ("int", "long", "float", "double"),
    "SMALLINT": ("int", "long", "float", "double"),
    "INTEGER": ("int", "long", "double"),
    "FLOAT": ("float", "double"),
    "TIME": ("time", "string"),
}
_READABLE = {
    "int": ("INTEGER", "BIGINT", "DECIMAL", "DOUBLE"),
    "long": ("BIGINT", "DECIMAL"),
    "float": ("FLOAT", "DOUBLE"),
    "decimal": ("DECIMAL", "DOUBLE"),
    "binary": ("BYTES", "VARBINARY"),
    "fixed": ("BYTES", "VARBINARY"),
}
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19}
NO_KEYS = ("FLOAT", "DOUBLE", "ARRAY", "MAP", "STRUCT")
"""Types that no identifier field can have."""
_NESTED = ("ARRAY", "MAP", "STRUCT")
# Types that are read as text or bytes and cannot be written as those: inside others they keep rows out.
_FOREIGN = re.compile(r"\b(uuid|fixed|timestamp_ns|timestamptz_ns|unknown|variant|geometry|geography)\b(?!:)")


def base_of(native: str) -> str:
    """A type's name without its numbers and parts: ``decimal(10, 2)`` gives decimal."""
    return re.split(r"[(<\[]", native, maxsplit=1)[0].strip()


def native_text(kind: IcebergType) -> str:
    """A type of Iceberg as SQL engines write it, without the ids of its fields."""
    from pyiceberg.types import ListType, MapType, StructType

    if isinstance(kind, ListType):
        return f"list<{native_text(kind.element_type)}>"
    if isinstance(kind, MapType):
        return f"map<{native_text(kind.key_type)}, {native_text(kind.value_type)}>"
    if isinstance(kind, StructType):
        parts = ", ".join(f"{quote(one.name)}: {native_text(one.field_type)}" for one in kind.fields)
        return f"struct<{parts}>"
    return str(kind)


def read_type(kind: IcebergType) -> DataType:
    """The relation's type of a table's column; what has no counterpart comes as its text."""
    from pyiceberg.types import DecimalType, FixedType, ListType, MapType, StructType

    if isinstance(kind, ListType):
        return DataType("ARRAY", arguments=(read_type(kind.element_type),))
    if isinstance(kind, MapType):
        return DataType("MAP", arguments=(read_type(kind.key_type), read_type(kind.value_type)))
    if isinstance(kind, StructType):
        return DataType(
            "STRUCT",
            arguments=tuple(read_type(one.field_type) for one in kind.fields),
            fields=tuple(one.name for one in kind.fields),
        )
    if isinstance(kind, DecimalType):
        return DataType("DECIMAL", (kind.precision, kind.scale))
    if isinstance(kind, FixedType):
        return DataType("BYTES")
    return DataType(_READ.get(str(kind), "VARCHAR"))


def column_type(kind: DataType) -> str:
    """How a column of this type is declared in a new table, as ``native_text`` writes it."""
    if kind.kind == "DECIMAL":
        precision, scale = _decimal(kind)
        return f"decimal({precision}, {scale})"
    if kind.kind == "ARRAY":
        return f"list<{column_type(kind.arguments[0])}>"
    if kind.kind == "MAP":
        return f"map<{column_type(kind.arguments[0])}, {column_type(kind.arguments[1])}>"
    if kind.kind == "STRUCT":
        pairs = zip(kind.fields, kind.arguments, strict=True)
        return f"struct<{', '.join(f'{quote(name)}: {column_type(part)}' for name, part in pairs)}>"
    return _WRITTEN[kind.kind]


def kept_type(kind: DataType) -> DataType:
    """The type that a new column of this type is read back with."""
    if kind.kind == "DECIMAL":
        return DataType("DECIMAL", _decimal(kind))
    if kind.arguments:
        return DataType(kind.kind, arguments=tuple(map(kept_type, kind.arguments)), fields=kind.fields)
    return DataType(_READ[_WRITTEN[kind.kind]])


def table_schema(columns: Sequence[Column], primary_key: Sequence[str]) -> Schema:
    """The schema of a new table. Only columns that are declared NOT NULL, and keys, are required."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField

    ids = iter(range(1, 1_000_000))
    own = [next(ids) for _ in columns]
    fields = [
        NestedField(
            field_id=number,
            name=column.name,
            field_type=_iceberg(column.type, ids),
            required=column.not_null or column.name in primary_key,
        )
        for number, column in zip(own, columns, strict=True)
    ]
    keys = [number for number, column in zip(own, columns, strict=True) if column.name in primary_key]
    return Schema(*fields, identifier_field_ids=keys)


def _iceberg(kind: DataType, ids: Iterator[int]) -> Any:
    from pyiceberg import types
    from pyiceberg.types import DecimalType, ListType, MapType, NestedField, StructType

    if kind.kind == "DECIMAL":
        return DecimalType(*_decimal(kind))
    if kind.kind == "ARRAY":
        number = next(ids)
        return ListType(number, _iceberg(kind.arguments[0], ids), element_required=False)
    if kind.kind == "MAP":
        key, value = next(ids), next(ids)
        parts = [_iceberg(part, ids) for part in kind.arguments]
        return MapType(key, parts[0], value, parts[1], value_required=False)
    if kind.kind == "STRUCT":
        numbers = [next(ids) for _ in kind.fields]
        parts = [_iceberg(part, ids) for part in kind.arguments]
        fields = zip(numbers, kind.fields, parts, strict=True)
        return StructType(*(NestedField(number, name, part, required=False) for number, name, part in fields))
    word = _WRITTEN[kind.kind]
    return getattr(types, f"{'Integer' if word == 'int' else word.capitalize()}Type")()


def fits(kind: DataType, native: str, target: DataType) -> bool:
    """Whether values of a relation's type can stand in a column.

    Args:
        kind: the relation's type.
        native: the column's, as ``native_text`` writes it.
        target: the column's as ``read_type`` gives it.
    """
    if kind.kind in _NESTED:
        return kind.kind == target.kind and not _is_foreign(native) and _fits_inside(kind, target)
    return _fits_plain(kind, native)


def _fits_inside(kind: DataType, target: DataType) -> bool:
    if kind.kind not in _NESTED:
        return target.kind not in _NESTED and _fits_plain(kind, column_type(target))
    return (
        kind.kind == target.kind
        and kind.fields == target.fields
        and all(_fits_inside(*pair) for pair in zip(kind.arguments, target.arguments, strict=True))
    )


def _fits_plain(kind: DataType, native: str) -> bool:
    base = base_of(native)
    if base == "decimal" and (kind.kind == "DECIMAL" or kind.kind in _DIGITS):
        precision, scale = (int(number) for number in re.findall(r"\d+", native))
        digits, places = (_DIGITS[kind.kind], 0) if kind.kind in _DIGITS else _decimal(kind)
        return scale >= places and precision - scale >= digits - places
    return base in _WIDER.get(kind.kind, (_WRITTEN.get(kind.kind, ""),))


def readable(kind: DataType, native: str, source: DataType) -> bool:
    """Whether values of a table's column can be read as this type; plain ones all can as text.

    Args:
        kind: the relation's type.
        native: the column's, as ``native_text`` writes it.
        source: the column's as ``read_type`` gives it.
    """
    if kind.kind in _NESTED:
        return (
            kind.kind == source.kind
            and kind.fields == source.fields
            and all(
                readable(part, column_type(inner), inner)
                for part, inner in zip(kind.arguments, source.arguments, strict=True)
            )
        )
    if source.kind in _NESTED:
        return False
    if kind.kind == "VARCHAR":
        return True
    base = base_of(native)
    return kind.kind in _READABLE.get(base, (_READ.get(base, ""),))


def _is_foreign(native: str) -> bool:
    return _FOREIGN.search(re.sub(r'"(?:[^"]|"")*"', "", native)) is not None


def _decimal(kind: DataType) -> tuple[int, int]:
    precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)
    return precision, scale


ICEBERG_TYPES = TableTypes(
    server="Iceberg",
    alter="ALTER TABLE … ALTER COLUMN {} SET NOT NULL",
    column_type=column_type,
    fits=lambda kind, column: fits(kind, column.native, column.type),
    readable=lambda kind, column: readable(kind, column.native, column.type),
)
"""Iceberg's side of ``table_fit``."""
