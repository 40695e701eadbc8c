"""Streams that last longer than a token of ``leat login``: opened again with the next one, where they ended.

No line is lost or comes twice, as far as the store's places and the kept lines of a log allow.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from leatstream.cli.client import Client, ProblemAnswer, StreamEnded
from leatstream.model.bounds import LOG_LINES
from leatstream.model.log_tails import unseen


def records(client: Client, entity: str, params: Mapping[str, Any]) -> Iterator[str]:
    """Records of an entity as ``Client.records`` gives them.

    Args:
        client: of the service.
        entity: its REST path.
        params: of the request.
    """
    place, ended = _Place(params), None
    while True:
        try:
            for line in client.records(entity, place.params(), opened=place.note_opened):
                if client.connection.renew is None or place.takes(json.loads(line)):
                    yield line
            return
        except StreamEnded as error:
            if not _goes_on(client, error):
                raise
            if place.left == 0:
                return
            place.resumed, ended = True, error
        except ProblemAnswer as refusal:
            if ended is not None and refusal.problem.get("code") == "unsupported":
                raise ended from None  # rows of a table have no places to continue from
            raise


def rows(client: Client, path: str, *, waits: bool) -> Generator[str]:
    """Rows of a SELECT as ``Client.rows`` gives them; the service keeps it meanwhile.

    Args:
        client: of the service.
        path: where they come.
        waits: whether lines between them say what is waited for.
    """
    while True:
        try:
            yield from client.rows(path, waits=waits)
            return
        except StreamEnded as error:
            if not _goes_on(client, error):
                raise


def log_lines(client: Client, query: str, tail: int) -> Iterator[str]:
    """Log lines of a query's job as they come, until the query is deleted.

    Args:
        client: of the service.
        query: its REST path.
        tail: how many of the existing ones.
    """
    if client.connection.renew is None:
        yield from (line for line in client.log_lines(query, tail) if line is not None)
        return
    seen: deque[str] | None = None  # as many as the service keeps: what it has later begins within them
    while True:
        existing: list[str] = []
        live = False
        try:
            for line in client.log_lines(query, LOG_LINES):
                if line is None:
                    fresh = existing[-tail:] if seen is None else unseen([*seen], existing)
                    seen, live = deque(existing, LOG_LINES), True
                    yield from fresh
                elif live and seen is not None:
                    seen.append(line)
                    yield line
                else:
                    existing.append(line)
            return
        except StreamEnded as error:
            if not _goes_on(client, error):
                raise


def _goes_on(client: Client, ended: StreamEnded) -> bool:
    """Whether a stream ended as its token did: the next request has another one, or is refused at once."""
    return client.connection.renew is not None and ended.problem.get("code") == "unauthenticated"


class _Place:
    """How far the records of one request have come.

    Attributes:
        left: how many are still wanted; None = no bound.
        resumed: whether they come again, some of them perhaps twice.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._params = dict(params)
        self.left: int | None = params.get("limit")
        self.resumed = False
        # Behind which record each partition, shard or file continues.
        self._last = dict(one.split(":") for one in str(params.get("after") or "").split(",") if one)
        self._opened: datetime | None = None

    def note_opened(self, headers: Mapping[str, str]) -> None:
        """The moment of the first answer, by the server's clock: what came later is new."""
        if self._opened is None:
            date = headers.get("Date")
            self._opened = parsedate_to_datetime(date) if date else datetime.now(UTC)

    def params(self) -> dict[str, Any]:
        """Of the next request."""
        if self._opened is None:
            return self._params
        found = {**self._params, "limit": self.left}
        if found.get("from") == "latest" and all(found.get(one) is None for one in ("since", "offset")):
            # A partition without a record so far begins where it began.
            found["since"] = self._opened.isoformat()
        if self._last and all(f"{key}{value}".isdecimal() for key, value in self._last.items()):
            found["after"] = ",".join(f"{key}:{value}" for key, value in self._last.items())
            if found.get("partition") in self._last:
                found["offset"] = None
        return found

    def takes(self, record: Mapping[str, Any]) -> bool:
        """Note a record; False where it came before."""
        partition, offset = str(record["partition"]), str(record["offset"])
        last = self._last.get(partition)
        if self.resumed and last is not None and _parts(offset) <= _parts(last):
            return False
        self._last[partition] = offset
        if self.left is not None:
            self.left -= 1
        return True


def _parts(offset: str) -> tuple[int, ...]:
    """An offset as it is ordered in its partition; of a record in a Kinesis aggregate it has two parts."""
    return tuple(int(part) for part in offset.split(".") if part.isdecimal())
