"""Names of the server's catalog for completion, asked for when they are needed and kept for some seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from leatstream.cli.client import Client, ProblemAnswer, Unreachable, segment
from leatstream.cli.completion import Relation
from leatstream.cli.nouns import NOUNS
from leatstream.model.names import quote, split

_FRESH = 10.0  # seconds
_MOST = 1_000  # names of a kind: nobody reads more, and the server is not asked for more than a page
# Nouns that stand below nothing else, as SQL writes them, to their lists.
_LISTS = {noun.name.replace("-", "_"): noun.list_path("") for noun in NOUNS if noun.parent is None}


class ServerNames:
    """Names as the server reports them; none while it does not answer."""

    def __init__(self, client: Client, context: Callable[[], dict[str, Any]]) -> None:
        """Prepare.

        Args:
            client: of the server.
            context: gives the database, schema and store of the moment.
        """
        self._client = client
        self._context = context
        self._kept: dict[str, tuple[float, list[dict[str, Any]]]] = {}

    def forget(self) -> None:
        """Ask again next time: a statement may have changed the catalog."""
        self._kept.clear()

    def of(self, noun: str) -> Iterable[str]:
        """Names of one noun, as SQL writes them."""
        context = self._context()
        if noun == "schema":
            database = context.get("database")
            return self._names(f"/v1/databases/{segment(quote(database))}/schemas") if database else []
        if noun == "entity":
            store = context.get("store")
            return self._names(f"/v1/stores/{segment(quote(store))}/entities") if store else []
        return self._names(_LISTS[noun]) if noun in _LISTS else []

    def relations(self) -> Iterable[Relation]:
        """The relations: those of the context by their own name, and all by their full name."""
        context = self._context()
        place = (context.get("database"), context.get("schema"))
        found: list[Relation] = []
        for item in self._items("/v1/relations"):
            columns = tuple(quote(str(column["name"])) for column in item.get("columns") or [])
            fqn, kind = str(item["fqn"]), str(item["kind"])
            *where, name = split(fqn)
            if tuple(where) == place:
                found.append(Relation(quote(name), kind, columns))
            found.append(Relation(fqn, kind, columns))
        return sorted(found, key=lambda one: (one.fqn.count("."), one.fqn))

    def _names(self, path: str) -> list[str]:
        return [quote(str(item["name"])) for item in self._items(path)]

    def _items(self, path: str) -> list[dict[str, Any]]:
        at, items = self._kept.get(path, (float("-inf"), []))
        if time.monotonic() - at > _FRESH:
            try:
                items = self._client.call("GET", path, params={"page_size": _MOST})["items"]
            except (ProblemAnswer, Unreachable):
                items = []
            self._kept[path] = (time.monotonic(), items)
        return items
