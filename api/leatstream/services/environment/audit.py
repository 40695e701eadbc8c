"""The audit log of a request: its changes are noted in the transaction that makes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from leatstream.model.access import AuditEvent
from leatstream.model.objects import Query
from leatstream.model.registered import Application
from leatstream.ports import UnitOfWork
from leatstream.services.environment.desk import NOUNS

if TYPE_CHECKING:
    from leatstream.services.environment import Principal

_KINDS = {
    **NOUNS,
    "savepoints": "savepoint",
    "roles": "role",
    "accounts": "account",
    "invitations": "invitation",
    "linked_identities": "identity",
}


def event_of(who: Principal, operation: str, kind: str, name: str, **more: Any) -> AuditEvent:
    """An event of a principal, now.

    Args:
        who: the principal.
        operation: what was done, such as ``create``.
        kind: of the object.
        name: of the object.
        **more: further attributes of the event.
    """
    return AuditEvent(
        at=datetime.now(UTC),
        principal=who.name,
        role=who.role,
        operation=operation,
        kind=kind,
        name=name,
        outcome=more.pop("outcome", "allowed"),
        token=who.token,
        request=who.request,
        address=who.address,
        **more,
    )


class _Rows:
    """A repository whose changes are noted."""

    def __init__(self, kind: str, base: Any, unit: AuditedUnit) -> None:
        self._kind, self._base, self._unit = kind, base, unit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._base, name)

    def add(self, item: Any) -> None:
        self._base.add(item)
        self._unit.note("create", self._kind, self._base.key(item))

    def update(self, item: Any) -> None:
        old = self._base.find_by_id(item.meta.id)
        self._base.update(item)
        # A store's answer is noted without a new generation; a restart of a query is a deed all the same.
        if old is not None and (
            old.meta.generation != item.meta.generation
            or old.meta.owner != item.meta.owner
            or (isinstance(item, Query | Application) and old != item)
        ):
            self._unit.note("update", self._kind, self._base.key(item))

    def delete(self, object_id: str) -> None:
        old = self._base.find_by_id(object_id)
        self._base.delete(object_id)
        if old is not None:
            self._unit.note("delete", self._kind, self._base.key(old))


class AuditedUnit:
    """A unit of work that writes its changes to the audit log when it is committed (``ports.UnitOfWork``)."""

    def __init__(self, base: UnitOfWork, who: Principal) -> None:
        self._base, self._who = base, who
        self._made: dict[str, Any] = {}
        self._noted: dict[tuple[str, str, str], None] = {}

    def __getattr__(self, noun: str) -> Any:
        if noun not in self._made:
            base = getattr(self._base, noun)
            kind = _KINDS.get(noun)
            self._made[noun] = base if kind is None else _Rows(kind, base, self)
        return self._made[noun]

    @property
    def unfiltered(self) -> AuditedUnit:
        """The unit itself, which shows every object."""
        return self

    def note(self, operation: str, kind: str, name: str) -> None:
        """Note a change; one of the same kind to the same object counts once.

        Args:
            operation: what was done, such as ``create``.
            kind: of the object.
            name: of the object.
        """
        self._noted[operation, kind, name] = None

    def commit(self) -> None:
        """Keep the changes and their events, at once."""
        for operation, kind, name in self._noted:
            self._base.audit.add(event_of(self._who, operation, kind, name))
        self._noted.clear()
        self._base.commit()
