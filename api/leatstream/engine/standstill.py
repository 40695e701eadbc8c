"""Reports when the reconciler stands still: nothing else would, as requests are answered all the same."""

from __future__ import annotations

import logging
import os
import threading

from leatstream.services.environment import STILL_SECONDS, Passes

_log = logging.getLogger(__name__)
_LOOK_SECONDS = 10.0


class StandstillWatch:
    """Looks at the passes from a thread of its own, and warns once when they stop."""

    def __init__(self, passes: Passes) -> None:
        self._passes = passes
        self._told = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="standstill watch", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> None:
        """Warn if they stand still and no warning was given; one may follow again once they continue."""
        still = self._passes.stand_still()
        if still and not self._told:
            _log.warning(
                "no pass of the reconciler has ended for %d s: queries are neither started nor stopped; "
                "`kill -USR1 %d` writes what each thread does",
                STILL_SECONDS,
                os.getpid(),
            )
        self._told = still

    def _run(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            self.look()
