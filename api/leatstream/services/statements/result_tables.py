"""Pieces of the tables that statements give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leatstream.model.objects import Effective

Table = tuple[list[dict[str, str]], list[list[Any]]]
META = ("owner", "created_at", "updated_at")
ORIGINS = ("property", "value", "origin", "from")


def text_columns(*names: str) -> list[dict[str, str]]:
    """Columns of text."""
    return [{"name": n, "type": "VARCHAR"} for n in names]


def meta_cells(item: Any) -> list[str]:
    """What every object has, in the order of ``META``."""
    return [item.meta.owner, item.meta.created_at.isoformat(), item.meta.updated_at.isoformat()]


def pairs(rows: Sequence[tuple[str, Any]]) -> Table:
    """A table of property and value."""
    return text_columns("property", "value"), [[k, v if v is None else str(v)] for k, v in rows]


def with_origins(rows: Sequence[tuple[str, Any]], effective: Mapping[str, Effective]) -> Table:
    """A table of property, value, origin and from: what has no origin first, then the properties in force."""
    plain = [[name, value if value is None else str(value), None, None] for name, value in rows]
    return text_columns(*ORIGINS), [*plain, *_origin_rows(effective)]


def _origin_rows(effective: Mapping[str, Effective]) -> Iterator[list[Any]]:
    for name, one in effective.items():
        yield [name, str(one.value), one.origin.value, one.source]
