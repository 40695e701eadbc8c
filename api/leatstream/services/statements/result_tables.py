"""Pieces of the tables that statements give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from leatstream.services.environment import Page

Table = tuple[list[dict[str, str]], list[list[Any]]]
META = ("owner", "created_at", "updated_at")


def text_columns(*names: str) -> list[dict[str, str]]:
    """Columns of text."""
    return [{"name": n, "type": "VARCHAR"} for n in names]


def all_pages(fetch: Callable[[str | None], Page[Any]]) -> list[Any]:
    """The items of every page."""
    items: list[Any] = []
    token: str | None = None
    while True:
        page = fetch(token)
        items += page.items
        token = page.next_page_token
        if token is None:
            return items


def meta_cells(item: Any) -> list[str]:
    """What every object has, in the order of ``META``."""
    return [item.meta.owner, item.meta.created_at.isoformat(), item.meta.updated_at.isoformat()]


def pairs(rows: Sequence[tuple[str, Any]]) -> Table:
    """A table of property and value."""
    return text_columns("property", "value"), [[k, v if v is None else str(v)] for k, v in rows]
