"""The audit log: rows that are only added to, each with a hash over the one before."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa

from leatstream.model.access import ANY_EVENT, AuditEvent, AuditFilter
from leatstream.storage import tables

_COLUMNS = ("number", "hash", "at", "principal")
_ROW = ("id", "at", "principal", "document", "hash")


class SqlAuditRows:
    """Events over one open connection (``ports.AuditRows``)."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def add(self, event: AuditEvent) -> None:
        """Append an event. Write units exclude each other, so the last row is the one before."""
        c = tables.audit_events.c
        last = self._connection.execute(sa.select(c.hash).order_by(c.id.desc()).limit(1)).scalar()
        document = _document(event)
        row = {
            "at": event.at,
            "principal": event.principal,
            "document": document,
            "hash": _hash(last or "", event.at, event.principal, document),
        }
        self._connection.execute(sa.insert(tables.audit_events), row)

    def page(
        self,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 100,
        only: AuditFilter = ANY_EVENT,
    ) -> Sequence[AuditEvent]:
        """Events, newest first; with ``after`` oldest first.

        Args:
            before: only events with a smaller number.
            after: only events with a larger number.
            limit: the most events.
            only: which of them.
        """
        c = tables.audit_events.c
        order = c.id.desc() if after is None else c.id
        statement = sa.select(*(c[name] for name in _ROW)).order_by(order).limit(limit)
        if before is not None:
            statement = statement.where(c.id < before)
        if after is not None:
            statement = statement.where(c.id > after)
        statement = statement.where(*_wanted(only))
        return [_event(dict(row)) for row in self._connection.execute(statement).mappings()]

    def broken(self) -> int | None:
        """Number of the first event whose hash does not fit; the oldest one that is kept counts as true."""
        before: str | None = None
        c = tables.audit_events.c
        rows = self._connection.execute(sa.select(*(c[name] for name in _ROW)).order_by(c.id))
        for row in rows.mappings():
            if before is not None and row["hash"] != _hash(
                before, row["at"], row["principal"], row["document"]
            ):
                return int(row["id"])
            before = row["hash"]
        return None

    def oldest(self) -> datetime | None:
        """When the oldest event was."""
        c = tables.audit_events.c
        return self._connection.execute(sa.select(c.at).order_by(c.id).limit(1)).scalar()

    def delete_until(self, at: datetime) -> int:
        """Delete the events before a moment; the newest one stays, as the next one's hash covers it."""
        c = tables.audit_events.c
        last = self._connection.execute(sa.select(sa.func.max(c.id))).scalar()
        statement = sa.delete(tables.audit_events).where(c.at < at, c.id < (last or 0))
        return int(self._connection.execute(statement).rowcount)


def _wanted(only: AuditFilter) -> Iterator[sa.ColumnElement[bool]]:
    c = tables.audit_events.c
    exact = {
        c.principal: only.account,
        c.operation: only.operation,
        c.kind: only.kind,
        c.outcome: only.outcome,
    }
    for column, value in exact.items():
        if value is not None:
            yield column == value
    if only.q is not None:
        yield c.name.icontains(only.q, autoescape=True)
    if only.since is not None:
        yield c.at >= only.since
    if only.until is not None:
        yield c.at < only.until


def _document(event: AuditEvent) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(event)
    return {name: value for name, value in found.items() if name not in _COLUMNS and value is not None}


def _hash(before: str, at: datetime, principal: str, document: Mapping[str, Any]) -> str:
    text = msgspec.json.encode([before, at.isoformat(), principal, dict(document)], order="sorted")
    return hashlib.sha256(text).hexdigest()


def _event(row: Mapping[str, Any]) -> AuditEvent:
    return AuditEvent(
        number=row["id"], hash=row["hash"], at=row["at"], principal=row["principal"], **row["document"]
    )
