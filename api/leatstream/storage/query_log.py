"""The bounded log of each query: what happened to its job, what it reported, and what was written of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec
import sqlalchemy as sa

from leatstream.model.objects import QueryEvent, QueryProgress, QueryVersion
from leatstream.storage.change_log import NotedChanges
from leatstream.storage.codec import look_into
from leatstream.storage.tables import query_log

KEPT = 200
_EVENT, _VERSION, _PROGRESS = "event", "version", "progress"
T = TypeVar("T", QueryEvent, QueryVersion, QueryProgress)
look_into(QueryEvent, QueryVersion, QueryProgress)


class SqlQueryLogRows:
    """Events, versions and progress (``ports.QueryLogRows``); the last 200 of each are kept."""

    def __init__(self, connection: sa.Connection, noted: NotedChanges | None = None) -> None:
        self._connection = connection
        self._noted = noted

    def add_event(self, query_id: str, event: QueryEvent) -> None:
        """Note an event."""
        self._add(query_id, _EVENT, event)
        if self._noted is not None:
            self._noted.note_event(query_id, event)

    def add_version(self, query_id: str, version: QueryVersion) -> None:
        """Note a version."""
        self._add(query_id, _VERSION, version)

    def add_progress(self, query_id: str, progress: QueryProgress) -> None:
        """Note what its job reported."""
        self._add(query_id, _PROGRESS, progress)

    def progress(self, query_id: str, limit: int) -> Sequence[QueryProgress]:
        """The newest, oldest of them first."""
        return self._newest(query_id, _PROGRESS, limit, QueryProgress)

    def events(self, query_id: str, limit: int) -> Sequence[QueryEvent]:
        """The newest, oldest of them first."""
        return self._newest(query_id, _EVENT, limit, QueryEvent)

    def versions(self, query_id: str, limit: int) -> Sequence[QueryVersion]:
        """The newest, oldest of them first."""
        return self._newest(query_id, _VERSION, limit, QueryVersion)

    def add_handed_on(self, query_id: str, heir_id: str) -> None:
        """Let the versions of one query be those of another, which has taken over from it."""
        c = query_log.c
        mine = sa.and_(c.query_id == query_id, c.topic == _VERSION)
        self._connection.execute(sa.update(query_log).where(mine).values(query_id=heir_id))

    def delete_of(self, query_id: str) -> None:
        """Forget all of a query's."""
        self._connection.execute(sa.delete(query_log).where(query_log.c.query_id == query_id))

    def _add(self, query_id: str, topic: str, item: QueryEvent | QueryVersion | QueryProgress) -> None:
        row = {"query_id": query_id, "topic": topic, "document": msgspec.to_builtins(item)}
        self._connection.execute(sa.insert(query_log), row)
        mine = sa.and_(query_log.c.query_id == query_id, query_log.c.topic == topic)
        oldest = sa.select(query_log.c.id).where(mine).order_by(query_log.c.id.desc()).offset(KEPT).limit(1)
        last = self._connection.execute(oldest).scalar()
        if last is not None:
            self._connection.execute(sa.delete(query_log).where(mine, query_log.c.id <= last))

    def _newest(self, query_id: str, topic: str, limit: int, kind: type[T]) -> list[T]:
        c = query_log.c
        mine = sa.select(c.document).where(c.query_id == query_id, c.topic == topic)
        found = self._connection.execute(mine.order_by(c.id.desc()).limit(limit)).scalars()
        return [msgspec.convert(document, kind) for document in found][::-1]
