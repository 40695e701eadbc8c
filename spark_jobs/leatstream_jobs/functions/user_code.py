"""Runs users' functions inside Spark's Python workers: one value per row, in time, with typed results.

Nothing here runs in the API, nor in the driver's own process: Spark sends these objects to its workers, and
only there the source text is executed.
"""

from __future__ import annotations

import json
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from leatstream_jobs.functions.user_values import BadResult, incoming, outgoing

MARK = "LEAT_FUNCTION"
_RUN = 10_000  # rows that go into one accumulator before it is merged with the others
_AGAIN = 0.1  # seconds between two alarms


class Overtime(BaseException):
    """The time-out has passed. No Exception, so that ``except Exception`` does not swallow it."""


class UserCodeError(RuntimeError):
    """What Spark reports to the driver; ``marked_faults.py`` reads it back."""


class Code:
    """A function's source and what of it is called.

    Args:
        function: its name in SQL.
        file: the source's file name.
        source: the source text.
        handler: the function or class in it.
        arguments: SQL types.
        returns: SQL type.
        timeout: seconds for all calls of one task, which is one partition of one batch.
    """

    def __init__(
        self,
        function: str,
        file: str,
        source: str,
        handler: str,
        arguments: Sequence[str],
        returns: str,
        timeout: float,
    ) -> None:
        self.function, self.file, self.source, self.handler = function, file, source, handler
        self.arguments, self.returns, self.timeout = list(arguments), returns, timeout
        self._task: object = None
        self._spent = 0.0
        self._loaded: Any = None
        self._into: list[Callable[[Any], Any] | None] = []
        self._out: Callable[[Any], Any] = lambda value: value

    def __getstate__(self) -> dict[str, Any]:
        kept = ("function", "file", "source", "handler", "arguments", "returns", "timeout")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def run(self, work: Callable[[Any], Any]) -> Any:
        """``work`` on the loaded handler, within the time left, its errors raised with their line."""
        self._new_task()
        started = time.monotonic()
        try:
            # Again and again: what catches everything would swallow a single alarm.
            signal.setitimer(signal.ITIMER_REAL, max(self.timeout - self._spent, 0.001), _AGAIN)
            try:
                if self._loaded is None:
                    self._load()
                return self._out(work(self._loaded))
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Overtime:
            raise self._told("time-out", f"{self.timeout:g} s") from None
        except BaseException as error:
            raise self._told(type(error).__name__, error=error) from None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)  # once more: an alarm may have come just before the other
            self._spent += time.monotonic() - started

    def values(self, given: Sequence[Any]) -> list[Any]:
        """SQL's values as the user's code gets them."""
        return [v if f is None or v is None else f(v) for f, v in zip(self._into, given, strict=True)]

    def _new_task(self) -> None:
        from pyspark import TaskContext

        context = TaskContext.get()
        task = context.taskAttemptId() if context is not None else None
        if task != self._task:
            self._task, self._spent = task, 0.0
            signal.signal(signal.SIGALRM, _alarm)

    def _load(self) -> None:
        space: dict[str, Any] = {"__name__": "leatstream_function", "__file__": self.file}
        exec(compile(self.source, self.file, "exec"), space)  # noqa: S102 - the very purpose
        self._into = [incoming(kind) for kind in self.arguments]
        self._out = outgoing(self.returns)
        handler = space[self.handler]
        self._loaded = handler() if isinstance(handler, type) else handler

    def _told(self, kind: str, text: str = "", error: BaseException | None = None) -> UserCodeError:
        """The place in the user's file; never the error's own message, which may quote a record."""
        frames = traceback.extract_tb(error.__traceback__) if error is not None else []
        lines = [f.lineno for f in frames if f.filename == self.file]
        line = lines[-1] if lines else getattr(error, "lineno", None)
        if isinstance(error, BadResult):
            text = str(error)
        report = {"function": self.function, "file": self.file, "error": kind, "line": line, "text": text}
        return UserCodeError(f"{MARK} {json.dumps(report)} {MARK}_END")


class Scalar:
    """A function of one row's values."""

    def __init__(self, code: Code) -> None:
        self.code = code

    def __call__(self, *given: Any) -> Any:
        """The value for one row."""
        code = self.code
        return code.run(lambda function: function(*code.values(given)))


class Aggregate:
    """A class of the user's over all rows of a group, given as an array of structs."""

    def __init__(self, code: Code) -> None:
        self.code = code

    def __call__(self, rows: Sequence[Any]) -> Any:
        """The value for one group."""
        return self.code.run(lambda user: user.finish(self._total(user, rows or ())))

    def _total(self, user: Any, rows: Sequence[Any]) -> Any:
        total = self._part(user, rows[:_RUN])
        for start in range(_RUN, len(rows), _RUN):
            total = user.merge(total, self._part(user, rows[start : start + _RUN]))
        return total

    def _part(self, user: Any, rows: Sequence[Any]) -> Any:
        part = user.create()
        for row in rows:
            part = user.accumulate(part, *self.code.values(tuple(row)))
        return part


def _alarm(_number: int, _frame: Any) -> None:
    raise Overtime
