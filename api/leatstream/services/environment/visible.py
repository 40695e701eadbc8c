"""The catalog as one principal sees it: hidden objects do not exist, forbidden changes are refused.

Every unit of work of a request is opened here, so no service function can forget to ask. What the service
does on its own account, such as to look for dependents, reads ``unit.unfiltered``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from leatstream.errors import AccessError
from leatstream.model.access import (
    CREATE_ON,
    OBJECT_PRIVILEGES,
    ORGANIZATION,
    Privilege,
)
from leatstream.model.names import quote
from leatstream.model.objects import Query
from leatstream.model.registered import Application, Savepoint
from leatstream.ports import OpenUnit, UnitOfWork
from leatstream.services.environment.audit import AuditedUnit
from leatstream.services.environment.desk import NOUNS, Desk, key_of, name_of
from leatstream.services.environment.rights import containers_of

if TYPE_CHECKING:
    from leatstream.services.environment import Principal

_PAGE = 900  # SQLite takes 999 parameters in one statement
# What a query or an application is, as against what happens to it.
_STATE_OF_QUERY = ("meta", "desired_state", "status", "effective", "plan", "job", "code")
_STATE_OF_APPLICATION = ("meta", "desired_state", "status")


class _Rows:
    """A repository as one principal sees it (``ports.Repository``)."""

    def __init__(self, noun: str, base: Any, desk: Desk) -> None:
        self._kind, self._base, self._desk = NOUNS[noun], base, desk

    def key(self, item: Any) -> str:
        return cast("str", self._base.key(item))

    def find(self, key: str) -> Any:
        return self._shown(self._base.find(key))

    def find_by_id(self, object_id: str) -> Any:
        return self._shown(self._base.find_by_id(object_id))

    def page(self, *, prefix: str = "", after: str = "", limit: int = 1000) -> Sequence[Any]:
        found: list[Any] = []
        # Documents are read of what is seen only, where the rows are the catalog's own.
        own = hasattr(self._base, "owners")
        look = partial(self._base.owners, only=self._few()) if own else self._base.page
        while len(found) < limit:
            part = look(prefix=prefix, after=after, limit=max(_PAGE, limit))
            found += [one for one in part if (self._sees_key(*one) if own else self._sees(one))]
            if len(part) < max(_PAGE, limit):
                break
            after = part[-1][0] if own else self.key(part[-1])
        if not own:
            return found[:limit]
        keys = [key for key, _ in found[:limit]]
        parts = [keys[at : at + _PAGE] for at in range(0, len(keys), _PAGE)]
        return [item for some in parts for item in self._base.find_all(some)]

    def add(self, item: Any) -> None:
        name = self._name(item)
        if self._kind == "function_source":
            # Its code runs with the rights of the driver, so no grant gives this.
            raise AccessError(
                "permission-denied",
                f"Role {self._desk.who.role} may not create function sources: their code runs in drivers.",
                hint="Ask a sysadmin to create it, and to grant USAGE on it.",
            )
        within = containers_of(self._kind, name)[-1]
        self._desk.require((CREATE_ON[self._kind], *within, None), *self._desk.path(self._kind, name))
        self._base.add(item)

    def update(self, item: Any) -> None:
        old = self._base.find_by_id(item.meta.id)
        if old is not None and old.meta.generation > 0:
            privilege = self._needed(old, item)
            if privilege is not None:
                self._desk.require((privilege, self._kind, self._name(old), old.meta.owner))
        self._base.update(item)

    def delete(self, object_id: str) -> None:
        old = self._base.find_by_id(object_id)
        if old is not None:
            self.require_ownership(old)
        self._base.delete(object_id)

    def require_ownership(self, item: Any) -> None:
        self._desk.require((Privilege.OWNERSHIP, self._kind, self._name(item), item.meta.owner))

    def _needed(self, old: Any, new: Any) -> Privilege | None:
        if old.meta.owner != new.meta.owner or getattr(new, "deleting", False):
            return Privilege.OWNERSHIP
        if isinstance(old, Query | Application):
            kept = _STATE_OF_QUERY if isinstance(old, Query) else _STATE_OF_APPLICATION
            state = {field: getattr(old, field) for field in kept if hasattr(old, field)}
            return Privilege.OPERATE if replace(new, **state) == old else Privilege.OWNERSHIP
        # What a store answered is noted without a new generation.
        if new.meta.generation == old.meta.generation:
            return None
        modifiable = Privilege.MODIFY in OBJECT_PRIVILEGES[self._kind]
        return Privilege.MODIFY if modifiable else Privilege.OWNERSHIP

    def _name(self, item: Any) -> str:
        return name_of(self._kind, self.key(item))

    def _shown(self, item: Any) -> Any:
        return item if item is not None and self._sees(item) else None

    def _few(self) -> tuple[list[str], list[str]] | None:
        """Keys and owners of what is seen, where they are few enough to ask for; None = look at all."""
        names = self._desk.rights.names(self._kind)
        if names is None or len(names) > _PAGE - 50:
            return None
        return [key_of(self._kind, name) for name in names], sorted(self._desk.rights.roles)

    def _sees(self, item: Any) -> bool:
        # What is only planned is the caller's own.
        return item.meta.generation == 0 or self._sees_key(self.key(item), item.meta.owner)

    def _sees_key(self, key: str, owner: str) -> bool:
        return self._desk.rights.sees(self._kind, name_of(self._kind, key), owner)


class _Savepoints:
    """Savepoints as one principal sees them: its own, and those of queries that it may operate."""

    def __init__(self, base: Any, desk: Desk) -> None:
        self._base, self._desk = base, desk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._base, name)

    def find(self, key: str) -> Any:
        found = self._base.find(key)
        return found if found is not None and self._sees(found) else None

    def page(self, *, prefix: str = "", after: str = "", limit: int = 1000) -> Sequence[Any]:
        return [s for s in self._base.page(prefix=prefix, after=after, limit=limit) if self._sees(s)]

    def _sees(self, item: Savepoint) -> bool:
        rights, owner = self._desk.rights, item.meta.owner
        everywhere = rights.all_in.get(("query", ORGANIZATION, ""), frozenset())
        if owner in rights.roles or Privilege.OPERATE in everywhere:
            return True
        query = self._desk.unit.queries.find(item.query)
        # A later query of this name may be somebody else's, and with it the grants on the name.
        if query is None or (query.meta.id != item.query_id and query.meta.owner != owner):
            return False
        return rights.may(Privilege.OPERATE, "query", quote(item.query), query.meta.owner)


class VisibleUnit:
    """One unit of work as one principal sees it (``ports.UnitOfWork``).

    Attributes:
        unfiltered: the unit as the service itself sees it.
        desk: answers what the principal may do.
    """

    def __init__(self, base: UnitOfWork, who: Principal) -> None:
        self.unfiltered = base
        self.desk = Desk(who, base)
        self._made: dict[str, Any] = {}

    def __getattr__(self, noun: str) -> Any:
        if noun not in self._made:
            base = getattr(self.unfiltered, noun)
            if noun in NOUNS:
                base = _Rows(noun, base, self.desk)
            elif noun == "savepoints":
                base = _Savepoints(base, self.desk)
            self._made[noun] = base
        return self._made[noun]


@dataclass(frozen=True, slots=True)
class UnitsOf:
    """Opens units as a principal sees them, whose changes are written to the audit log (``ports.OpenUnit``).

    Attributes:
        base: opens whole units.
        who: the principal.
    """

    base: OpenUnit
    who: Principal

    def __call__(self, *, write: bool = True) -> AbstractContextManager[UnitOfWork]:
        """A unit; see ``OpenUnit``."""
        return self._open(write)

    @contextmanager
    def _open(self, write: bool) -> Iterator[UnitOfWork]:
        with self.audited()(write=write) as unit:
            yield self.seen(unit)

    def audited(self) -> OpenUnit:
        """Opens whole units, whose changes are written to the audit log."""

        @contextmanager
        def opened(write: bool) -> Iterator[UnitOfWork]:
            with self.base(write=write) as unit:
                yield cast("UnitOfWork", AuditedUnit(unit, self.who)) if write else unit

        def open_unit(*, write: bool = True) -> AbstractContextManager[UnitOfWork]:
            return opened(write)

        return open_unit

    def seen(self, unit: UnitOfWork) -> UnitOfWork:
        """A unit as the principal sees it."""
        rights = self.who.rights
        if rights.everything or (rights.reads and rights.looks_only(self.who.role)):
            return unit
        return cast("UnitOfWork", VisibleUnit(unit, self.who))


def staged_over(open_unit: OpenUnit, over: Callable[[OpenUnit], OpenUnit]) -> OpenUnit:
    """Staged units under the eyes of the principal: what is staged is seen and checked like what is stored.

    Args:
        open_unit: of the environment.
        over: makes staged units of whole ones.
    """
    if not isinstance(open_unit, UnitsOf):
        return over(open_unit)
    who, inner = open_unit, over(open_unit.audited())

    @contextmanager
    def opened(write: bool) -> Iterator[UnitOfWork]:
        with inner(write=write) as unit:
            yield who.seen(unit)

    def visible(*, write: bool = True) -> AbstractContextManager[UnitOfWork]:
        return opened(write)

    return visible


def whole_units(open_unit: OpenUnit) -> OpenUnit:
    """Units that show everything, whose changes are still written to the audit log."""
    return open_unit.audited() if isinstance(open_unit, UnitsOf) else open_unit
