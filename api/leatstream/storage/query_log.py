"""The bounded log of each query: what happened to its job, what it reported, and what was written of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec
import sqlalchemy as sa

from leatstream.model.objects import QueryEvent, QueryProgress, QueryVersion
from leatstream.model.progress import known_lag
from leatstream.storage.change_log import NotedChanges
from leatstream.storage.codec import look_into
from leatstream.storage.tables import query_log

KEPT = 200
# Of progress, the last hour as it was reported, and one moment of each five minutes of the last day.
KEPT_PROGRESS, KEPT_COARSE = 240, 288
COARSE, _FINE_IN_COARSE = timedelta(minutes=5), 24
_EVENT, _VERSION, _PROGRESS, _COARSE = "event", "version", "progress", "progress_coarse"
_KEPT = {_EVENT: KEPT, _VERSION: KEPT, _PROGRESS: KEPT_PROGRESS, _COARSE: KEPT_COARSE}
T = TypeVar("T", QueryEvent, QueryVersion, QueryProgress)
look_into(QueryEvent, QueryVersion, QueryProgress)


class SqlQueryLogRows:
    """Events, versions and progress (``ports.QueryLogRows``), each of which has a ring of its own."""

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
        last = self._newest(query_id, _COARSE, 1, QueryProgress)
        if last and progress.at - last[0].at < COARSE:
            return
        fine = self._newest(query_id, _PROGRESS, _FINE_IN_COARSE, QueryProgress)
        since = [one for one in fine if not last or one.at > last[0].at]
        # The worst moment: an average would hide the peak that somebody looks for the next morning.
        worst = max(since or [progress], key=lambda one: (known_lag(one.metrics) or 0, one.at))
        self._add(query_id, _COARSE, worst)

    def progress(self, query_id: str, limit: int, since: datetime | None = None) -> Sequence[QueryProgress]:
        """The newest, oldest of them first: each moment of the last hour, before it one each five minutes.

        Args:
            query_id: of the query.
            limit: the most moments.
            since: only moments after this one; None = as far back as they are kept.
        """
        found = self._newest(query_id, _PROGRESS, min(limit, KEPT_PROGRESS), QueryProgress)
        if len(found) < limit and (since is None or not found or found[0].at > since):
            coarse = self._newest(query_id, _COARSE, KEPT_COARSE, QueryProgress)
            found = [one for one in coarse if not found or one.at < found[0].at] + found
        return [one for one in found if since is None or one.at > since][-limit:]

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
        oldest = (
            sa.select(query_log.c.id)
            .where(mine)
            .order_by(query_log.c.id.desc())
            .offset(_KEPT[topic])
            .limit(1)
        )
        last = self._connection.execute(oldest).scalar()
        if last is not None:
            self._connection.execute(sa.delete(query_log).where(mine, query_log.c.id <= last))

    def _newest(self, query_id: str, topic: str, limit: int, kind: type[T]) -> list[T]:
        c = query_log.c
        mine = sa.select(c.document).where(c.query_id == query_id, c.topic == topic)
        found = self._connection.execute(mine.order_by(c.id.desc()).limit(limit)).scalars()
        return [msgspec.convert(document, kind) for document in found][::-1]
