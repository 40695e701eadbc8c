"""The feed of changes: rows that the repositories' writes add to, in the transaction that makes them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from leatstream.model.access import KINDS, Account
from leatstream.model.changes import API_TOKEN, BEGINNING, ROLE, SAVEPOINT, Change, ChangeType
from leatstream.model.objects import Query, QueryEvent, Store
from leatstream.model.registered import Savepoint
from leatstream.storage import tables
from leatstream.storage.codec import NOUNS, Noun

# An id sorts by the time of its change: 48 bits of milliseconds, 64 random bits. Numbers would show everyone
# how much others change.
_TIME = slice(4, 16)
_now = time.time
_LONGEST = 500  # characters of a message
_IDENTIFYING = 16  # characters of the hash of a token's oldest value, which nobody can use


@dataclass(frozen=True, slots=True)
class Seen:
    """What the feed says of an object at one moment."""

    kind: str
    key: str
    owner: str
    generation: int
    state: str | None = None
    message: str | None = None
    error: str | None = None


@dataclass(slots=True)
class _Noted:
    first: Seen | None
    last: Seen | None


class NotedChanges:
    """What one unit of work has changed so far; one that is rolled back leaves no trace."""

    def __init__(self) -> None:
        self._noted: dict[str, _Noted] = {}
        self._events: dict[str, list[QueryEvent]] = {}
        self._tokens: dict[str, Mapping[str, str]] = {}

    def note(self, object_id: str, before: Seen | None, after: Seen | None) -> None:
        """Note a write.

        Args:
            object_id: of the object.
            before: as it was; None = it is new.
            after: as it is now; None = it is deleted.
        """
        noted = self._noted.setdefault(object_id, _Noted(before, after))
        noted.last = after

    def note_event(self, query_id: str, event: QueryEvent) -> None:
        """Note a change of the state of a query."""
        self._events.setdefault(query_id, []).append(event)

    def note_token(self, connection: sa.Connection, name: str) -> None:
        """Note that the values of a token are about to change.

        Args:
            connection: of the unit.
            name: of the token.
        """
        if name not in self._tokens:
            self._tokens[name] = _values(connection, name)

    def write(self, connection: sa.Connection) -> None:
        """Add the rows. Write units exclude each other until they have ended, so ids grow as commits do."""
        queries = [one for one in self._events if one not in self._noted]
        found = _queries(connection, queries) if queries else {}
        rows = [row for one, noted in self._noted.items() for row in self._rows(one, noted)]
        for one, seen in found.items():
            rows += [_row(one, ChangeType.STATE, _at(seen, event)) for event in self._events[one]]
        for name, before in self._tokens.items():
            rows += _token_rows(name, before, _values(connection, name))
        self._noted.clear()
        self._events.clear()
        self._tokens.clear()
        if rows:
            last, now = SqlChangeRows(connection).newest(), _now()
            for row in rows:
                last = _next_id(last, now)
                row["id"], row["at"] = last, datetime.fromtimestamp(now, UTC)
            connection.execute(sa.insert(tables.changes), rows)

    def _rows(self, object_id: str, noted: _Noted) -> list[dict[str, Any]]:
        before, after = noted.first, noted.last
        events = self._events.get(object_id, [])
        if after is None:
            if before is None:
                return []
            gone = Seen(before.kind, before.key, before.owner, before.generation)
            return [_row(object_id, ChangeType.DELETED, gone)]
        if before is None:
            return [_row(object_id, ChangeType.CREATED, _at(after, events[-1]) if events else after)]
        rows = []
        if (before.generation, before.owner, before.key) != (after.generation, after.owner, after.key):
            rows.append(_row(object_id, ChangeType.CHANGED, after))
        rows += [_row(object_id, ChangeType.STATE, _at(after, event)) for event in events]
        if not events and before.kind in ("store", SAVEPOINT) and before.state != after.state:
            rows.append(_row(object_id, ChangeType.STATE, after))
        return rows


def seen(noun: Noun[Any], item: Any) -> Seen:
    """What the feed says of an object."""
    kind = item.kind.value if isinstance(item, Account) else _kind(noun)
    known = kind, noun.key(item), item.meta.owner, item.meta.generation
    if isinstance(item, Query):
        return Seen(*known, item.status.state.value)
    if isinstance(item, Store):
        return Seen(*known, item.state.value, item.message, item.error_code)
    if isinstance(item, Savepoint):
        return Seen(*known, item.state.value, item.message)
    return Seen(*known)


def _kind(noun: Noun[Any]) -> str:
    return noun.word.replace(" ", "_")


def _at(known: Seen, event: QueryEvent) -> Seen:
    generation = max(known.generation, event.generation)
    place = known.kind, known.key, known.owner, generation
    return Seen(*place, event.state.value, event.reason, event.error)


def _row(object_id: str, what: ChangeType, of: Seen) -> dict[str, Any]:
    message = of.message[:_LONGEST] if of.message else None
    return {**asdict(of), "message": message, "type": what.value, "object_id": object_id}


def _values(connection: sa.Connection, name: str) -> dict[str, str]:
    """Hashes of a token's values, each with the account of the token, the oldest first."""
    c = tables.tokens.c
    asked = sa.select(c.hash, c.principal).where(c.name == name).order_by(c.created_at, c.id)
    return {row.hash: row.principal for row in connection.execute(asked)}


def _token_rows(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[dict[str, Any]]:
    """What has become of a token; a use, or a value that expires, is no change."""
    if not after.keys() - before.keys() and (after or not before):
        return []
    what = ChangeType.CREATED if not before else ChangeType.CHANGED if after else ChangeType.DELETED
    first, account = next(iter((before or after).items()))
    return [_row(f"tok_{first[:_IDENTIFYING]}", what, Seen(API_TOKEN, name, account, 1))]


def _queries(connection: sa.Connection, ids: Sequence[str]) -> dict[str, Seen]:
    c = tables.queries.c
    asked = sa.select(c.id, c.key, c.owner, c.generation).where(c.id.in_(ids))
    return {row.id: Seen("query", row.key, row.owner, row.generation) for row in connection.execute(asked)}


def _next_id(last: str, now: float) -> str:
    """Greater than the last one, even where the clock of another server is ahead of this one's."""
    time_of_last = int(last[_TIME], 16)
    return f"evt_{max(int(now * 1000), time_of_last + 1):012x}{os.urandom(8).hex()}"


class SqlChangeRows:
    """Changes over one open connection (``ports.ChangeRows``)."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def newest(self) -> str:
        """Id of the last change; of an empty feed the place before all."""
        found = self._connection.execute(sa.select(sa.func.max(tables.changes.c.id))).scalar()
        return found or BEGINNING

    def has(self, change_id: str) -> bool:
        """Whether the change is kept."""
        c = tables.changes.c
        return self._connection.execute(sa.select(c.id).where(c.id == change_id)).first() is not None

    def after(self, change_id: str, limit: int) -> Sequence[Change]:
        """Changes after one, oldest first."""
        c = tables.changes.c
        return self._read(sa.select(tables.changes).where(c.id > change_id).order_by(c.id).limit(limit))

    def before(self, change_id: str | None, limit: int) -> Sequence[Change]:
        """Changes before one, or the newest; newest first."""
        c = tables.changes.c
        asked = sa.select(tables.changes).order_by(c.id.desc()).limit(limit)
        return self._read(asked if change_id is None else asked.where(c.id < change_id))

    def last_of_roles(self, roles: Sequence[str]) -> str:
        """Id of the last change of one of these roles; the place before all where none is kept."""
        c = tables.changes.c
        asked = sa.select(sa.func.max(c.id)).where(c.kind == ROLE, c.key.in_(roles))
        return self._connection.execute(asked).scalar() or BEGINNING

    def present(self, changes: Sequence[Change]) -> Mapping[str, tuple[str, str]]:
        """Key and owner, by id, of the objects of these changes that still exist."""
        found: dict[str, tuple[str, str]] = {}
        for kind in {change.kind for change in changes} & _TABLES.keys():
            c = _TABLES[kind].c
            ids = {change.object_id for change in changes if change.kind == kind}
            rows = self._connection.execute(sa.select(c.id, c.key, c.owner).where(c.id.in_(ids)))
            found |= {row.id: (row.key, row.owner) for row in rows}
        return found

    def delete_old(self, until: datetime, most: int) -> int:
        """Delete what is older than a moment or exceeds a number; the newest one stays.

        Args:
            until: the moment.
            most: changes that are kept.
        """
        table, c = tables.changes, tables.changes.c
        old = self._connection.execute(sa.select(sa.func.max(c.id)).where(c.at < until)).scalar()
        # Up to one place: a position that is kept has all that follow, although clocks of servers differ.
        bound = max(old or BEGINNING, self._beyond(most) or BEGINNING)
        statement = sa.delete(table).where(c.id <= bound, c.id < self.newest())
        return int(self._connection.execute(statement).rowcount)

    def exceeds(self, most: int) -> bool:
        """Whether more changes than this are kept."""
        return self._beyond(most) is not None

    def _beyond(self, most: int) -> str | None:
        c = tables.changes.c
        beyond = sa.select(c.id).order_by(c.id.desc()).offset(most).limit(1)
        return self._connection.execute(beyond).scalar()

    def oldest(self) -> datetime | None:
        """When the oldest change was."""
        c = tables.changes.c
        return self._connection.execute(sa.select(c.at).order_by(c.id).limit(1)).scalar()

    def _read(self, statement: sa.Select[Any]) -> list[Change]:
        rows = self._connection.execute(statement).mappings()
        return [Change(**{**row, "type": ChangeType(row["type"])}) for row in rows]


# Of what can be granted on; whether a role or an account is there changes nothing for who sees its changes.
_TABLES = {kind: noun.table for noun in NOUNS if (kind := _kind(noun)) in KINDS}
