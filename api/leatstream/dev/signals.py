"""Turns the signals that ask for the end into an exception, at moments where that does no harm."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(BaseException):
    """A signal asks for the end; not an Exception, so that nothing on the way takes it for a failure.

    Attributes:
        number: the signal's.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Signals:
    """While entered, the first ending signal raises ``Ended`` in the main thread; later ones are ignored.

    A signal that the process was started to ignore (``nohup``, a background job) stays ignored.
    """

    def __init__(self) -> None:
        self._before: dict[int, Callable[[int, FrameType | None], Any] | int | None] = {}
        self._done = False
        self._held = False
        self._pending: int | None = None

    def __enter__(self) -> Self:
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def ignore(self) -> None:
        """From now on ending signals do nothing: the end is under way."""
        self._done = True

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Signals that come while the body runs take effect after it."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._pending is not None and not self._done:
            self._done = True
            raise Ended(self._pending)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self._done:
            return
        if self._held:
            self._pending = number
            return
        self._done = True
        raise Ended(number)
