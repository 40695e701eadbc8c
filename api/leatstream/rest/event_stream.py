"""The feed of changes as a stream: server-sent events, or one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
from anyio import to_thread

from leatstream.errors import CatalogAway, LeatstreamError
from leatstream.model.changes import Change
from leatstream.rest.accepted import LOOK_AGAIN
from leatstream.rest.loads import stream_threads
from leatstream.rest.schemas.events import ChangeView
from leatstream.rest.streams import EVENTS, failure
from leatstream.services.environment import Principal
from leatstream.services.environment.signal import Signal
from leatstream.services.nouns.changes import Feed, Look

LONGEST = 3600.0  # seconds, after which the client connects again; a stream that is lost must not stay
_LOOK_AGAIN = 1.0  # seconds; a change by another process may wake nobody here
_PAUSE = 0.2  # seconds between two looks: heartbeats of drivers wake everybody
_IDLE = 15.0  # seconds without a change, after which the client gets its position
_TOKEN = LOOK_AGAIN


class _Writer:
    """Writes the parts of the stream."""

    def __init__(self, media_type: str) -> None:
        self._events = media_type == EVENTS

    def position(self, at: str) -> bytes:
        # An event without data is not dispatched, but the next connection begins behind its id.
        return f": idle\nid: {at}\n\n".encode() if self._events else _line({"position": at})

    def change(self, change: Change) -> bytes:
        body = ChangeView.from_domain(change).model_dump_json(exclude_none=True)
        text = f"id: {change.id}\nevent: change\ndata: {body}\n\n" if self._events else f"{body}\n"
        return text.encode()

    def reset(self, reason: str, at: str) -> bytes:
        if self._events:
            return f"id: {at}\nevent: reset\ndata: {json.dumps({'reason': reason})}\n\n".encode()
        return _line({"reset": {"reason": reason}, "position": at})

    def end(self) -> bytes:
        return b"event: end\ndata: {}\n\n" if self._events else _line({"end": {}})


def _line(body: Any) -> bytes:
    return f"{json.dumps(body, separators=(',', ':'))}\n".encode()


async def follow_changes(
    feed: Feed,
    changed: Signal,
    authenticate: Callable[[], Awaitable[Principal]],
    media_type: str,
    *,
    follow: bool,
) -> AsyncIterator[bytes]:
    """What the reader sees of the feed, until it leaves, its token ends or the time is over.

    A batch is read when the one before it has been sent, so a slow reader holds no more than that.

    Args:
        feed: the reader's place.
        changed: woken at changes.
        authenticate: the reader with its rights of now; raises when its token is not accepted any more.
        media_type: NDJSON or server-sent events.
        follow: whether it waits when there is nothing new.
    """
    write = _Writer(media_type)
    try:
        for part in _parts(write, feed, feed.first):
            yield part
        yield write.position(feed.position)
        async for part in _news(write, feed, changed, authenticate, follow=follow):
            yield part
        yield write.position(feed.position)
        yield write.end()
    except LeatstreamError as error:
        yield failure(error, media_type)


async def _news(
    write: _Writer,
    feed: Feed,
    changed: Signal,
    authenticate: Callable[[], Awaitable[Principal]],
    *,
    follow: bool,
) -> AsyncIterator[bytes]:
    now = anyio.current_time
    end, sent, known = now() + LONGEST, now(), now()
    while True:
        # Read the counter before the feed: a change in between then wakes the wait at once.
        seen, more = changed.value, False
        try:
            if await _in_thread(feed.has_news) or now() >= known + _TOKEN:
                who, known = await authenticate(), now()
                look = await _in_thread(feed.look, who)
                for part in _parts(write, feed, look):
                    sent = now()
                    yield part
                more = look.more
        except CatalogAway as error:
            if not follow:
                raise error.for_caller() from error  # an end would say that nothing is new
            # It will come back, and the reader need not notice.
        if more:
            continue
        if not follow or now() >= end or changed.over:
            return
        if now() >= sent + _IDLE:
            sent = now()
            yield write.position(feed.position)
        await changed.wait_async(seen, _LOOK_AGAIN)
        await anyio.sleep(0 if changed.over else _PAUSE)


def _parts(write: _Writer, feed: Feed, look: Look) -> list[bytes]:
    found = [write.change(change) for change in look.changes]
    return found if look.reset is None else [write.reset(look.reset, feed.position), *found]


async def _in_thread(call: Callable[..., Any], *given: Any) -> Any:
    return await to_thread.run_sync(call, *given, limiter=stream_threads())
