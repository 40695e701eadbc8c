"""What columns a set of JSON records has: the types of their fields, merged record by record.

Truth values are BOOLEAN, whole numbers BIGINT, other numbers DOUBLE, texts VARCHAR, lists ARRAY, objects
STRUCT; null fits every type. BIGINT and DOUBLE make DOUBLE; any other two make VARCHAR, which reads every
JSON value as its text. So do whole numbers beyond BIGINT, objects without fields, and what is only ever null.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from leatstream.model.names import MAX_LENGTH
from leatstream.model.objects import HIDDEN_PREFIX, Column
from leatstream.model.types import DataType

_VARCHAR, _BIGINT, _DOUBLE = DataType("VARCHAR"), DataType("BIGINT"), DataType("DOUBLE")
_NULL = DataType("NULL")
_BIGINT_LIMIT = 1 << 63
_DEEPEST = 16
_MOST_COLUMNS = 1_000


@dataclass(frozen=True, slots=True)
class Sample:
    """What a set of records showed.

    Attributes:
        columns: in the order in which the fields were first seen.
        records: records that were JSON objects.
        skipped: other records.
        nulls: column name to the number of records in which it was null or absent.
    """

    columns: tuple[Column, ...]
    records: int
    skipped: int
    nulls: Mapping[str, int]


def sample_columns(values: Iterable[bytes | None]) -> Sample:
    """Infer columns from record values.

    Fields that no column can be named after are left out: empty names, control characters, reserved names,
    names that differ only in case from one before.
    """
    records: list[dict[str, Any]] = []
    skipped = 0
    for value in values:
        document = _document(value)
        if document is None:
            skipped += 1
        else:
            records.append(document)
    whole = _NULL
    for document in records:
        whole = merged(whole, type_of(document))
    names = whole.fields[:_MOST_COLUMNS]
    columns = tuple(Column(n, _settled(t)) for n, t in zip(names, whole.arguments, strict=False))
    nulls = {n: sum(document.get(n) is None for document in records) for n in names}
    return Sample(columns, len(records), skipped, nulls)


def type_of(value: Any, depth: int = 0) -> DataType:
    """The type of one JSON value; ``NULL``, a type of this module only, for null."""
    if value is None:
        return _NULL
    if isinstance(value, bool):
        return DataType("BOOLEAN")
    if isinstance(value, int):
        return _BIGINT if -_BIGINT_LIMIT <= value < _BIGINT_LIMIT else _VARCHAR
    if isinstance(value, float):
        return _DOUBLE
    if isinstance(value, str) or depth >= _DEEPEST:
        return _VARCHAR
    if isinstance(value, list):
        element = _NULL
        for item in value:
            element = merged(element, type_of(item, depth + 1))
        return DataType("ARRAY", arguments=(element,))
    return _struct({name: type_of(item, depth + 1) for name, item in value.items()})


def merged(left: DataType, right: DataType) -> DataType:
    """The narrowest type that holds both."""
    if left == right or right == _NULL:
        return left
    if left == _NULL:
        return right
    if {left.kind, right.kind} == {"BIGINT", "DOUBLE"}:
        return _DOUBLE
    if left.kind == right.kind == "ARRAY":
        return DataType("ARRAY", arguments=(merged(left.arguments[0], right.arguments[0]),))
    if left.kind == right.kind == "STRUCT":
        fields = dict(zip(left.fields, left.arguments, strict=True))
        for name, kind in zip(right.fields, right.arguments, strict=True):
            fields[name] = merged(fields.get(name, _NULL), kind)
        return _struct(fields)
    return _VARCHAR


def _struct(fields: Mapping[str, DataType]) -> DataType:
    kept: dict[str, DataType] = {}
    folded: set[str] = set()
    for name, kind in fields.items():
        if _nameable(name) and name.lower() not in folded:
            folded.add(name.lower())
            kept[name] = kind
    return DataType("STRUCT", arguments=tuple(kept.values()), fields=tuple(kept))


def _settled(kind: DataType) -> DataType:
    """The type with VARCHAR where nothing was seen that shows a type."""
    if kind == _NULL or (kind.kind == "STRUCT" and not kind.fields):
        return _VARCHAR
    arguments = tuple(map(_settled, kind.arguments))
    return DataType(kind.kind, arguments=arguments, fields=kind.fields)


def _nameable(name: str) -> bool:
    return (
        0 < len(name) <= MAX_LENGTH
        and not name.startswith(HIDDEN_PREFIX)
        and "${" not in name
        and not any(ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 for c in name)
    )


def _document(value: bytes | None) -> dict[str, Any] | None:
    try:
        found = json.loads(value or b"")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
