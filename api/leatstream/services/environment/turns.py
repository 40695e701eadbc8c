"""Turns at planning: what a plan waits for must not hold up those who plan nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from leatstream.errors import EngineError

PLANNERS = 8
# The plan of an application reads the catalog twice at a time, and once more to connect to a store.
UNITS_OF_A_PLAN = 3
_PATIENCE_SECONDS = 15.0


class Turns:
    """Lets some threads at a time plan.

    A plan holds connections to the catalog while stores, registries and the analyzer are asked, for a minute
    if one of them hangs. Were there no bound, a burst of plans would take every connection of the catalog,
    and no driver would be heard any more.

    Args:
        count: how many threads.
        patience: seconds that one more waits for its turn.
    """

    def __init__(self, count: int = PLANNERS, patience: float = _PATIENCE_SECONDS) -> None:
        self._free = threading.BoundedSemaphore(count)
        self._patience = patience
        self._mine = threading.local()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """A turn; a thread that already has one keeps it.

        Raises:
            EngineError: engine-unavailable, the others have not ended in time.
        """
        if getattr(self._mine, "taken", False):
            yield
            return
        if not self._free.acquire(timeout=self._patience):
            raise EngineError(
                "engine-unavailable",
                "So many statements are being planned already that this one found no turn.",
                hint="Try again; if it stays so, a store, a schema registry or the analyzer does not answer.",
            )
        self._mine.taken = True
        try:
            yield
        finally:
            self._mine.taken = False
            self._free.release()
