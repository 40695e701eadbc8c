"""Who may hold up whom: slow requests, streams and waits have bounds and threads of their own.

A request that only reads or changes the catalog finds a thread, whatever others wait for. One principal has
a part of the places only, however many tokens it has. Further requests wait a little, holding no thread, and
are then refused until later.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from anyio import CapacityLimiter, Semaphore, WouldBlock, move_on_after, to_thread

from leatstream.errors import AccessError

P = ParamSpec("P")
T = TypeVar("T")
_WAITING = 10  # times as many requests of a principal as have places may wait for one


@dataclass(slots=True)
class _Places:
    free: Semaphore
    wanted: int = 0


class Load:
    """One kind of load.

    Args:
        what: it is, for messages.
        most: of one principal at a time.
        patience: seconds that one more waits for its place.
        threads: that this kind has.
    """

    def __init__(self, what: str, most: int, patience: float, threads: int) -> None:
        self.threads = CapacityLimiter(threads)
        self._what, self._most, self._patience = what, most, patience
        self._places: dict[str, _Places] = {}

    @asynccontextmanager
    async def place(self, caller: str) -> AsyncIterator[None]:
        """A place of this caller's; AccessError too-many-requests if none becomes free in time."""
        places = self._places.setdefault(caller, _Places(Semaphore(self._most)))
        places.wanted += 1
        try:
            await self._take(places)
            try:
                yield
            finally:
                places.free.release()
        finally:
            places.wanted -= 1
            if not places.wanted:
                self._places.pop(caller, None)

    async def _take(self, places: _Places) -> None:
        try:
            places.free.acquire_nowait()
        except WouldBlock:
            if self._patience and places.wanted <= (_WAITING + 1) * self._most:
                with move_on_after(self._patience):
                    await places.free.acquire()
                    return
            raise AccessError(
                "too-many-requests",
                f"This account has {self._most} {self._what} under way, which is the most. "
                "Those of all its tokens count.",
                hint="Wait for some of them to end, or give other work an account of its own.",
            ) from None


@dataclass(slots=True)
class Loads:
    """What the application bounds.

    Attributes:
        quick: requests that need the catalog only, and others until it is known that they need more.
        slow: requests that ask stores, registries and the analyzer, or wait for a job.
        streams: answers that go on for as long as the client listens.
        waits: requests for an object's state that wait for it; they hold no thread.
    """

    quick: Load
    slow: Load
    streams: Load
    waits: Load


@dataclass(slots=True)
class Underway:
    """A request and the places that it gives back at its end.

    Attributes:
        caller: name of the principal; of a driver its id.
        places: of slow requests, streams and waits.
        quick: the place of a request that is none of these.
    """

    loads: Loads
    caller: str
    places: AsyncExitStack = field(default_factory=AsyncExitStack)
    quick: AsyncExitStack = field(default_factory=AsyncExitStack)


# Set by the gate; None outside of a request.
UNDERWAY: ContextVar[Underway | None] = ContextVar("underway", default=None)


async def hold(choose: Callable[[Loads], Load]) -> CapacityLimiter | None:
    """Take a place until the request ends, and give the threads of its kind."""
    request = UNDERWAY.get()
    if request is None:
        return None
    load = choose(request.loads)
    await request.quick.aclose()
    await request.places.enter_async_context(load.place(request.caller))
    return load.threads


def stream_threads() -> CapacityLimiter | None:
    """The threads that make the steps of streams."""
    request = UNDERWAY.get()
    return None if request is None else request.loads.streams.threads


def slow(endpoint: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """Have a route's function wait for its place and run in the threads for slow requests."""

    @functools.wraps(endpoint)
    async def run(*given: P.args, **named: P.kwargs) -> T:
        threads = await hold(lambda loads: loads.slow)
        call: Callable[[], Any] = functools.partial(endpoint, *given, **named)
        return await to_thread.run_sync(call, limiter=threads)

    return run
