"""Pieces of the tables that statements give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Table = tuple[list[dict[str, str]], list[list[Any]]]
META = ("owner", "created_at", "updated_at")


def text_columns(*names: str) -> list[dict[str, str]]:
    """Columns of text."""
    return [{"name": n, "type": "VARCHAR"} for n in names]


def meta_cells(item: Any) -> list[str]:
    """What every object has, in the order of ``META``."""
    return [item.meta.owner, item.meta.created_at.isoformat(), item.meta.updated_at.isoformat()]


def pairs(rows: Sequence[tuple[str, Any]]) -> Table:
    """A table of property and value."""
    return text_columns("property", "value"), [[k, v if v is None else str(v)] for k, v in rows]
