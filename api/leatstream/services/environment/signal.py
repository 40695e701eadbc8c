"""A counter that threads and coroutines can wait on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable


class Signal:
    """Counts notifications; waiting returns as soon as the count passes what the waiter has seen.

    Attributes:
        tell: passes a notification made here on to other servers.
        over: whether this process is about to end, so that nobody should wait.
    """

    def __init__(self) -> None:
        self.tell: Callable[[], None] | None = None
        self.over = False
        self._condition = threading.Condition()
        self._value = 0
        self._waiters: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    @property
    def value(self) -> int:
        """Notifications so far."""
        return self._value

    def notify(self) -> None:
        """Wake every waiter, here and at other servers."""
        self.wake()
        if self.tell is not None:
            self.tell()

    def wake(self) -> None:
        """Wake every waiter of this process."""
        with self._condition:
            self._value += 1
            self._condition.notify_all()
            waiters = list(self._waiters)
        for loop, event in waiters:
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:  # that loop has been closed: nobody waits there any more
                self._waiters.discard((loop, event))

    def end(self) -> None:
        """End the waits of streams, which would hold up the end of the server."""
        self.over = True
        self.wake()

    def wait(self, seen: int, timeout: float) -> int:
        """Block until the count is above ``seen`` or ``timeout`` seconds are over; the count then."""
        deadline = time.monotonic() + timeout
        with self._condition:
            while self._value <= seen:
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._condition.wait(left)
            return self._value

    async def wait_async(self, seen: int, timeout: float) -> int:
        """As ``wait``, for coroutines; holds no thread."""
        entry = (asyncio.get_running_loop(), asyncio.Event())
        with self._condition:
            if self._value > seen:
                return self._value
            self._waiters.add(entry)
        try:
            await asyncio.wait_for(entry[1].wait(), timeout)
        except TimeoutError:
            pass
        finally:
            with self._condition:
                self._waiters.discard(entry)
        return self._value
