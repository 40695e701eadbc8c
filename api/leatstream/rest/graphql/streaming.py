"""How subscriptions go on: each has a place, a caller, and an end that closes what it opened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar, cast

import anyio
from anyio import to_thread

from leatstream.errors import AccessError
from leatstream.rest.accepted import Watch
from leatstream.rest.graphql.request import Request
from leatstream.rest.loads import UNDERWAY, Underway, stream_threads
from leatstream.services.environment import Principal
from leatstream.services.nouns.audit import in_use, note_refusal

T = TypeVar("T")
_END = object()


@asynccontextmanager
async def opened(request: Request) -> AsyncIterator[Watch]:
    """A place among the streams of the caller; the audit log gets what is denied meanwhile.

    Gives what looks whether the caller may still have the answer.

    Raises:
        AccessError: too-many-requests.
    """
    sign_in = request.scope.get("leatstream.sign_in")
    again = request.scope.get("leatstream.authenticate")

    async def authenticate() -> Principal:
        if sign_in is not None:  # a WebSocket may be older than what its token may do
            await sign_in()
        return await again() if again is not None else request.principal

    watch = Watch(authenticate, await authenticate())
    underway = cast("Underway", UNDERWAY.get())  # the gate has set it
    await underway.quick.aclose()  # quick requests do not wait for the end of streams
    async with underway.loads.streams.place(underway.caller):
        try:
            yield watch
        except AccessError as error:
            if error.code == "permission-denied":
                who = in_use(request.principal, error.refused.role)
                note = partial(note_refusal, request.env, who, "POST", "/graphql", error.code)
                await to_thread.run_sync(note)
            raise


async def in_thread(call: Callable[[], T]) -> T:
    """Run a call that may wait, in the threads of streams."""
    return await to_thread.run_sync(call, limiter=stream_threads())


async def steps(open_items: Callable[[], Iterator[T]], watch: Watch) -> AsyncGenerator[T]:
    """The items of an iterator whose steps wait in threads; it is closed when the reader leaves.

    The next step begins when the reader has taken the item before: a slow reader keeps one item in memory.

    Args:
        open_items: opens it.
        watch: looks whether the caller may still have them.

    Raises:
        LeatstreamError: of the iterator.
    """
    items = await _finished(lambda: in_thread(open_items))
    try:
        while (item := await _finished(lambda: in_thread(partial(next, items, _END)))) is not _END:
            await watch.look()
            yield item
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            with anyio.CancelScope(shield=True):
                await in_thread(close)


async def _finished(call: Callable[[], Any]) -> Any:
    """The result of a call in a thread, which is waited for even if the reader leaves meanwhile.

    A generator that a thread is in cannot be closed.
    """
    task = asyncio.ensure_future(call())
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task])
        _close_late(task)
        raise


def _close_late(task: asyncio.Future[Any]) -> None:
    """Close an iterator that was opened for a reader who has left."""
    if not task.cancelled() and task.exception() is None:
        close = getattr(task.result(), "close", None)
        if close is not None:
            close()
