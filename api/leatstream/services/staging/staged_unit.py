"""All or nothing: statements run on a catalog of their own; what they changed is kept at once or not at all.

Nothing is locked meanwhile. What was read is compared again when it is kept; if someone else has changed it,
the statements may run again, because they have had no effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

from leatstream.connectors.base import Connector
from leatstream.connectors.registry import with_secrets
from leatstream.errors import CatalogError, RequestError, already_exists
from leatstream.model.objects import Query, Store
from leatstream.ports import OpenUnit, UnitOfWork
from leatstream.services.environment import Environment
from leatstream.services.environment.visible import staged_over, whole_units
from leatstream.services.nouns.stores import resolve_store_secrets
from leatstream.services.staging.catalog_view import CatalogView

_EFFECTS = {
    "create_entity": "makes",
    "update_entity": "changes",
    "drop_entity": "drops",
    "write_records": "writes records to",
}
# What heartbeats write, once a second, of a job that runs on.
_REPORTED = ("heartbeat_at", "metrics", "log_tail", "progress_at")
# Notes on all entities, of which those that matter are asked for by key as well.
_NOT_COMPARED = ("entity_drops", "page")
_Change = tuple[str, str, tuple[Any, ...]]


@dataclass(slots=True)
class Staging:
    """What has been changed so far, and what has been read of the catalog itself.

    Attributes:
        changes: noun, method and arguments of every write, in order.
        items: noun to key to the object as it is now; None for a deleted one.
        values: reference to envelope of a secret; None for a deleted one.
        read: what a look into the catalog gave, to be compared at the end.
        exact: noun and key to the object that a change was made from, its status included.
    """

    changes: list[_Change] = field(default_factory=list)
    items: dict[str, dict[str, Any]] = field(default_factory=dict)
    values: dict[str, bytes | None] = field(default_factory=dict)
    read: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    exact: dict[tuple[str, str], Any] = field(default_factory=dict)

    def copy(self) -> Staging:
        """For one unit of work; what it read counts even if it is given up."""
        items = {noun: dict(found) for noun, found in self.items.items()}
        return Staging(list(self.changes), items, dict(self.values), self.read, self.exact)


class _Rows:
    """A repository over the catalog and what was changed since (``ports.Repository``)."""

    def __init__(self, noun: str, base: Any, staging: Staging, planned: CatalogView | None) -> None:
        self._noun, self._base, self._staging, self._planned = noun, base, staging, planned
        self._items = staging.items.setdefault(noun, {})

    def key(self, item: Any) -> str:
        return cast("str", self._base.key(item))

    def find(self, key: str) -> Any:
        if key in self._items:
            return self._items[key]
        planned = self._planned.find_planned(self._noun, key) if self._planned is not None else None
        return planned if planned is not None else self._look("find", key)

    def find_by_id(self, object_id: str) -> Any:
        for item in self._items.values():
            if item is not None and item.meta.id == object_id:
                return item
        found = self._look("find_by_id", object_id)
        return None if found is None or self.key(found) in self._items else found

    def add(self, item: Any) -> None:
        key = self.key(item)
        if self.find(key) is not None:
            raise already_exists(_singular(self._noun), key)
        self._write("add", key, item, item)

    def update(self, item: Any) -> None:
        key = self.key(item)
        if key not in self._items:
            self._staging.exact.setdefault((self._noun, key), self._base.find(key))
        self._write("update", key, item, item)

    def delete(self, object_id: str) -> None:
        found = self.find_by_id(object_id)
        if found is not None:
            self._write("delete", self.key(found), None, object_id)

    def page(self, *, prefix: str = "", after: str = "", limit: int = 1000) -> Sequence[Any]:
        more = limit + len(self._items)
        there = look(self._base, "page", (prefix, after, more))
        # One look for all that gave the same, whatever was staged meanwhile: each is taken again at the end.
        self._saw("page", (prefix, after, limit if len(there) < limit else more), there)
        kept = {self.key(item): item for item in there if self.key(item) not in self._items}
        last = self.key(there[-1]) if len(there) == more else None
        for key, item in self._items.items():
            if item is not None and key.startswith(prefix) and key > after and (last is None or key <= last):
                kept[key] = item
        return [kept[key] for key in sorted(kept)][:limit]

    def _look(self, how: str, *what: Any) -> Any:
        found = look(self._base, how, what)
        self._saw(how, what, found)
        return found

    def _saw(self, how: str, what: tuple[Any, ...], found: Any) -> None:
        if (self._noun, how) != _NOT_COMPARED:
            self._staging.read.setdefault((self._noun, how, *what), _seen(found))

    def _write(self, how: str, key: str, item: Any, argument: Any) -> None:
        self._items[key] = item
        self._staging.changes.append((self._noun, how, (argument,)))


class _SecretRows:
    """Enveloped secret values over those of the catalog (``ports.SecretRows``)."""

    def __init__(self, base: Any, staging: Staging) -> None:
        self._base, self._staging = base, staging

    def put(self, reference: str, envelope: bytes) -> None:
        self._staging.values[reference] = envelope
        self._staging.changes.append(("secrets", "put", (reference, envelope)))

    def find(self, reference: str) -> bytes | None:
        if reference in self._staging.values:
            return self._staging.values[reference]
        return cast("bytes | None", self._base.find(reference))

    def delete(self, reference: str) -> None:
        self._staging.values[reference] = None
        self._staging.changes.append(("secrets", "delete", (reference,)))


class _Noted:
    """Rows that are only added to: writes wait, reads see the catalog."""

    def __init__(self, noun: str, base: Any, staging: Staging) -> None:
        self._noun, self._base, self._staging = noun, base, staging

    def __getattr__(self, name: str) -> Any:
        if not name.startswith(("add", "put", "delete", "update", "mark")):
            return getattr(self._base, name)
        return lambda *arguments: self._staging.changes.append((self._noun, name, arguments))


class StagedUnit:
    """One unit of work on the staging (``ports.UnitOfWork``).

    Attributes:
        planned: objects that count as stored, in a dry run.
    """

    def __init__(self, base: UnitOfWork, staging: Staging, planned: CatalogView | None = None) -> None:
        self._base, self._shared, self.planned = base, staging, planned
        self._staging = staging.copy()
        self._made: dict[str, Any] = {}

    def __getattr__(self, noun: str) -> Any:
        if noun not in self._made:
            base = getattr(self._base, noun)
            if noun == "secrets":
                self._made[noun] = _SecretRows(base, self._staging)
            elif callable(base):
                return base
            elif all(hasattr(base, name) for name in ("key", "find_by_id", "page")):
                self._made[noun] = _Rows(noun, base, self._staging, self.planned)
            else:
                self._made[noun] = _Noted(noun, base, self._staging)
        return self._made[noun]

    @property
    def unfiltered(self) -> StagedUnit:
        """The unit itself, which shows every object."""
        return self

    def commit(self) -> None:
        """Keep what this unit did for those after it."""
        self._shared.changes = self._staging.changes
        self._shared.items, self._shared.values = self._staging.items, self._staging.values
        self._staging = self._shared.copy()
        self._made.clear()


class _Reading:
    """A connector that only looks: what cannot be undone is refused."""

    def __init__(self, connector: Connector, store: str) -> None:
        self._connector, self._store = connector, store

    def __getattr__(self, name: str) -> Any:
        if name not in _EFFECTS:
            return getattr(self._connector, name)

        def refused(entity: str, *_: Any, **__: Any) -> None:
            raise RequestError(
                "unsupported",
                f"The statement {_EFFECTS[name]} entity '{entity}' in store {self._store}, which cannot be "
                "undone if a statement after it fails.",
                hint="Run it on its own, before or after the atomic text.",
            )

        return refused


def staged(env: Environment, planned: CatalogView | None = None) -> tuple[Environment, Staging]:
    """An environment whose changes of the catalog wait for ``keep``, and which leaves stores alone.

    Args:
        env: the environment.
        planned: objects that count as stored; what is made with them must be given up.
    """
    staging = Staging()

    def over(whole: OpenUnit) -> OpenUnit:
        @contextmanager
        def units() -> Iterator[UnitOfWork]:
            with whole(write=False) as base:
                yield cast("UnitOfWork", StagedUnit(base, staging, planned))

        return lambda *, write=True: units()

    open_unit = staged_over(env.open_unit, over)

    def connect(store: Store) -> Connector:
        if store.meta.generation and any(reference in staging.values for reference in store.secrets.values()):
            with open_unit(write=False) as unit:
                config = with_secrets(store.config, resolve_store_secrets(env, unit, store))
            # Generation 0: as a planned store, whose connection is not kept for others.
            store = replace(store, meta=replace(store.meta, generation=0), config=config, secrets={})
        return cast("Connector", _Reading(env.connect(store), store.name))

    return replace(env, open_unit=open_unit, connect=connect, staged=True), staging


def keep(env: Environment, staging: Staging) -> None:
    """Make every change lasting, in one transaction.

    Raises:
        CatalogError: stale, if something that was read has been changed meanwhile; nothing is kept then.
    """
    # What was staged has been checked; what was read is compared with what is there, hidden or not.
    with whole_units(env.open_unit)() as unit:
        moved = any(
            _seen(look(getattr(unit, noun), how, tuple(what))) != seen
            for (noun, how, *what), seen in staging.read.items()
        )
        now = {(noun, key): getattr(unit, noun).find(key) for noun, key in staging.exact}
        if moved or any(not _still(was, now[which]) for which, was in staging.exact.items()):
            raise CatalogError(
                "stale",
                "The catalog was changed by someone else while the statements ran; nothing was kept.",
                hint="Send them again.",
            )
        for noun, how, arguments in staging.changes:
            if noun == "queries" and how == "update":
                arguments = (_reported(arguments[0], now.get((noun, arguments[0].name))),)
            getattr(getattr(unit, noun), how)(*arguments)
        unit.commit()
    env.changed.notify()


def _reported(query: Query, now: Query | None) -> Query:
    """The query with the figures that its job has reported meanwhile."""
    if now is None:
        return query
    reported = {name: getattr(now.status, name) for name in _REPORTED}
    return replace(query, status=replace(query.status, **reported))


def _still(was: Any, now: Any) -> bool:
    """Whether an object is as it was; of a query that runs, the figures of its job do not count."""
    if isinstance(was, Query) and isinstance(now, Query):
        return _reported(now, was) == was
    return bool(was == now)


def look(rows: Any, how: str, what: tuple[Any, ...]) -> Any:
    """One way of reading a repository.

    Args:
        rows: the repository.
        how: name of its method.
        what: arguments.
    """
    if how == "page":
        prefix, after, limit = what
        return list(rows.page(prefix=prefix, after=after, limit=limit))
    return getattr(rows, how)(*what)


def _seen(found: Any) -> Any:
    """What must still be so: the versions of objects, not what heartbeats write of them."""
    if isinstance(found, list):
        return [_seen(item) for item in found]
    return None if found is None else (found.meta.id, found.meta.generation)


def _singular(nouns: str) -> str:
    return nouns.removesuffix("ies") + "y" if nouns.endswith("ies") else nouns.removesuffix("s")
