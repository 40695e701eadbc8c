"""The queue between services that ask Spark's analyzer and the driver that answers."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence

from leatstream.errors import EngineError
from leatstream.plan.logical import AnalysisFailure, AnalyzedColumn, FunctionShape, ViewSchema
from leatstream.ports import AnalysisRequest

_REMEMBERED = 512
_RESEND_SECONDS = 15.0
_PASSING = ("INTERNAL_ERROR", "UNKNOWN", "")  # the driver's own trouble, which says nothing of the text

Result = list[AnalyzedColumn] | AnalysisFailure
_Key = tuple[tuple[ViewSchema, ...], str, tuple[FunctionShape, ...]]


class AnalysisQueue:
    """Requests wait for a driver to pull them; answers are kept, as the same text always analyzes alike."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._condition = threading.Condition()
        self._waiting: deque[AnalysisRequest] = deque()
        self._taken: dict[str, tuple[AnalysisRequest, float, str]] = {}
        self._done: dict[str, Result] = {}
        self._wanted: set[str] = set()
        self._known: OrderedDict[_Key, Result] = OrderedDict()

    def analyze(
        self,
        views: Sequence[ViewSchema],
        sql: str,
        timeout: float,
        functions: Sequence[FunctionShape] = (),
    ) -> Result:
        """Analyze SQL over empty views.

        Raises:
            EngineError: ``engine-unavailable`` if no driver answers within ``timeout`` seconds.
        """
        key = (tuple(views), sql, tuple(functions))
        deadline = time.monotonic() + timeout
        with self._condition:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
            request = AnalysisRequest(secrets.token_urlsafe(16), tuple(views), sql, tuple(functions))
            self._waiting.append(request)
            self._wanted.add(request.id)
        self._wake()
        with self._condition:
            try:
                return self._await(request, key, deadline)
            finally:
                self._wanted.discard(request.id)
                self._taken.pop(request.id, None)
                self._done.pop(request.id, None)

    def _await(self, request: AnalysisRequest, key: _Key, deadline: float) -> Result:
        while request.id not in self._done:
            left = deadline - time.monotonic()
            if left <= 0 or not self._condition.wait(left):
                raise EngineError(
                    "engine-unavailable",
                    "No Spark driver answered, so the statement could not be checked.",
                    hint="Wait until the analyzer is warm (`leat doctor`, /readyz), then try again.",
                )
        result = self._done[request.id]
        if isinstance(result, AnalysisFailure) and result.condition in _PASSING:
            return result
        self._known[key] = result
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return result

    def take(self, driver_id: str) -> AnalysisRequest | None:
        """The next request; one taken by a driver that died is handed out again after a while."""
        now = time.monotonic()
        with self._condition:
            for request, since, _ in list(self._taken.values()):
                if now - since > _RESEND_SECONDS:
                    self._taken[request.id] = (request, now, driver_id)
                    return request
            while self._waiting:
                request = self._waiting.popleft()
                if request.id in self._wanted:
                    self._taken[request.id] = (request, now, driver_id)
                    return request
        return None

    def complete(self, driver_id: str, request_id: str, result: Result) -> None:
        """Take an answer; ignored if another driver was given the request, or nobody waits for it."""
        with self._condition:
            _, _, taker = self._taken.get(request_id, (None, 0.0, None))
            if taker == driver_id and request_id in self._wanted:
                self._done[request_id] = result
                self._condition.notify_all()
