"""In which part of a record the columns of a relation are: its value, its key alone, or its headers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from leatstream.errors import Faults
from leatstream.formats.primitive import VALUE_TYPES
from leatstream.model.names import quote, split
from leatstream.model.objects import Column, Effective, Origin, Relation
from leatstream.sql.relation_properties import RelationProperties

KEYS, EXCLUDED, HEADERS = "key.columns", "value.columns.exclude", "headers.column"
_HEADER_VALUES = ("VARCHAR", "BYTES", "VARBINARY")
_NAME = re.compile(r'"(?:[^"]|"")*"|[^,\s]+')
Where = Callable[[str], dict[str, Any]]


def record_places(
    given: RelationProperties,
    columns: Sequence[Column],
    keys: Sequence[str],
    formats: tuple[str, str | None],
    faults: Faults,
    where: Where,
) -> dict[str, Effective]:
    """The columns that are not in the value, as properties in force: those in the key alone, and the headers.

    Args:
        given: properties of the relation.
        columns: of the relation.
        keys: names of the columns that make the key.
        formats: of values and of keys.
        faults: takes what is wrong.
        where: position or pointer of a property.
    """
    value, key = formats
    if not columns:
        return {}
    headers = _headers(given, columns, keys, faults, where)
    found = {HEADERS: Effective(headers.name, Origin.EXPLICIT)} if headers is not None else {}
    columns = [column for column in columns if column != headers]
    if not columns:
        faults.add("invalid-property", f"No column is left beside that of '{HEADERS}'.", **where(HEADERS))
        return found
    if key == "primitive" and not _plain_key(columns, keys, faults, where):
        return found
    excluded, origin = _excluded(given, columns, keys, faults, where), Origin.EXPLICIT
    inside = [column for column in columns if column.name not in excluded]
    if value == "primitive" and not excluded and len(columns) > 1:
        excluded, origin = list(keys), Origin.DEFAULT
        inside = [column for column in columns if column.name not in keys]
    if value == "primitive":
        _check_plain_value(columns, inside, faults, where)
    elif not inside:
        also = f" and '{HEADERS}'" if headers is not None else ""
        detail = f"No column is left for the value beside those of '{EXCLUDED}'{also}."
        faults.add("invalid-property", detail, **where(EXCLUDED))
    if excluded:
        found[EXCLUDED] = Effective(", ".join(map(quote, excluded)), origin)
    return found


def _headers(
    given: RelationProperties, columns: Sequence[Column], keys: Sequence[str], faults: Faults, where: Where
) -> Column | None:
    """The column that is the record's headers; what is wrong is noted."""
    if given.headers_column is None:
        return None
    column, at = column_named(columns, given.headers_column), where(HEADERS)
    if column is None:
        shown = ", ".join(quote(one.name) for one in columns)
        detail = f"{quote(given.headers_column)} of '{HEADERS}' is not a column."
        faults.add("unknown-column", detail, hint=f"Available: {shown}.", **at)
        return None
    kinds = [part.kind for part in column.type.arguments] if column.type.kind == "MAP" else []
    if kinds[:1] != ["VARCHAR"] or kinds[1] not in _HEADER_VALUES:
        detail = f"Column {quote(column.name)} is {column.type}; headers are a MAP<VARCHAR, BYTES>."
        hint = "Make it that, or a MAP<VARCHAR, VARCHAR> of texts in UTF-8."
        faults.add("type-mismatch", detail, hint=hint, **at)
    elif column.name in keys:
        detail = f"Column {quote(column.name)} is in the record's key, so it cannot be its headers."
        faults.add("invalid-property", detail, hint="Choose another column.", **at)
    return column


def _plain_key(columns: Sequence[Column], keys: Sequence[str], faults: Faults, where: Where) -> bool:
    """Whether the key's column can be a primitive key; what is wrong is noted."""
    found = [column for column in columns if column.name in keys]
    wrong = [column for column in found if column.type.kind not in VALUE_TYPES]
    for column in wrong:
        known = ", ".join(VALUE_TYPES)
        detail = f"Column {quote(column.name)} is {column.type}; a primitive key is one of {known}."
        faults.add("type-mismatch", detail, hint="Choose another 'key.format'.", **where(KEYS))
    return not wrong


def _excluded(
    given: RelationProperties, columns: Sequence[Column], keys: Sequence[str], faults: Faults, where: Where
) -> list[str]:
    found: list[str] = []
    for name in given.value_columns_exclude:
        column = column_named(columns, name)
        if column is None or column.name not in keys:
            detail = f"{name} of 'value.columns.exclude' is no column of the key, so it would be nowhere."
            shown = ", ".join(map(quote, keys)) or "none"
            faults.add("invalid-property", detail, hint=f"The key's columns: {shown}.", **where(EXCLUDED))
        else:
            found.append(column.name)
    return found


def _check_plain_value(
    columns: Sequence[Column], inside: Sequence[Column], faults: Faults, where: Where
) -> None:
    names = ", ".join(quote(column.name) for column in inside)
    if len(inside) != 1:
        reason = f"{len(inside)} are left: {names}" if inside else "all are in the key"
        faults.add(
            "invalid-property",
            f"With 'value.format' = 'primitive' exactly one column is in the value, and {reason}.",
            hint="Choose another 'value.format', or name the other columns in 'key.columns'."
            if len(columns) > 1
            else None,
            **where("value.format"),
        )
    elif inside[0].type.kind not in VALUE_TYPES:
        detail = f"Column {names} is {inside[0].type}; a primitive value is one of {', '.join(VALUE_TYPES)}."
        faults.add("type-mismatch", detail, hint="Choose another 'value.format'.", **where("value.format"))


def column_named(columns: Sequence[Column], name: str) -> Column | None:
    """The column of exactly this name, else the one that SQL would mean by it."""
    found = next((c for c in columns if c.name == name), None)
    if found is not None:
        return found
    try:
        (folded,) = split(name.strip())
    except ValueError:
        return None
    return next((c for c in columns if c.name == folded), None)


def key_columns(relation: Relation) -> list[Column]:
    """The columns that make the record key: the primary key's, or those of 'key.columns'."""
    if relation.primary_key:
        return [c for name in relation.primary_key if (c := relation.find_column(name)) is not None]
    text = str(relation.find_property(KEYS) or "")
    if relation.key_format is None or not text:
        return []
    whole = relation.find_column(text)
    names = [text] if whole is not None else _NAME.findall(text)
    found = [c for name in names if (c := column_named(relation.columns, name)) is not None]
    return found if len(found) == len(names) else []


def key_only(relation: Relation) -> list[str]:
    """Names of the columns that are in the record's key and not in its value."""
    given = relation.effective.get(EXCLUDED)
    written = _NAME.findall(str(given.value)) if given is not None else []
    return [column.name for column in relation.columns if quote(column.name) in written]


def headers_column(relation: Relation) -> str | None:
    """Name of the column that is the record's headers and not in its value."""
    given = relation.effective.get(HEADERS)
    return str(given.value) if given is not None else None


def value_columns(relation: Relation) -> list[Column]:
    """The columns that are in the record's value."""
    elsewhere = (*key_only(relation), headers_column(relation))
    return [column for column in relation.columns if column.name not in elsewhere]
