"""The thread that keeps bringing jobs and drivers to what is wanted."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime

from leatstream.engine.driver_pool import DriverPool
from leatstream.engine.errands import Errands
from leatstream.errors import CatalogAway
from leatstream.services.environment import Environment
from leatstream.services.nouns.audit import forget_old_events, note_waiting_sign_ins
from leatstream.services.nouns.changes import forget_old_changes
from leatstream.services.nouns.sessions import forget_ended_sessions
from leatstream.services.queries.checkpoints.copies import copy_what_waits
from leatstream.services.queries.checkpoints.sweep import sweep_checkpoints
from leatstream.services.queries.reconcile.reconciler import reconcile_all, release_strays
from leatstream.services.selects.interactive import sweep

_log = logging.getLogger(__name__)
_PASS_SECONDS = 1.0
_GAP_SECONDS = 5.0
_STEP_SECONDS = 1.0
_HALF_DONE_SECONDS = 5.0
_SWEEP_SECONDS = 600.0


class ReconcileLoop:
    """Runs a pass at every change, and once a second."""

    def __init__(self, env: Environment, pool: DriverPool) -> None:
        self._env = env
        self._pool = pool
        self._stop = threading.Event()
        self._last = time.monotonic()
        self._seen_at: datetime | None = None
        self._mine: frozenset[str] | None = frozenset()
        self._seen_mine = threading.Event()
        self._away: set[Callable[[], None]] = set()
        self._thread = threading.Thread(target=self._run, name="reconciler", daemon=True)
        # Copies take long: nobody but those who asked for them shall wait.
        self._copier = threading.Thread(target=self._copy, name="checkpoint copies", daemon=True)
        # So do unreachable stores, and nodes that are lost.
        self._errands = Errands(env)

    def start(self) -> None:
        """Begin."""
        self._thread.start()
        self._copier.start()

    def stop(self) -> None:
        """End after the present pass."""
        self._stop.set()
        self._seen_mine.set()
        self._env.changed.notify()
        self._thread.join(timeout=30)
        # The next server repeats what is half done; drivers must not wait for it to end in order.
        end = time.monotonic() + _HALF_DONE_SECONDS
        self._errands.stop(_HALF_DONE_SECONDS)
        self._copier.join(max(0.0, end - time.monotonic()))

    def _reconcile(self) -> None:
        now = time.monotonic()
        if self._has_missed_some() or self._away:
            # This process slept or was slow, or no heartbeat could be taken down: they are still to be heard.
            self._env.listening_since = self._seen_at
        sweep(self._env)
        release_strays(self._env, self._errands)
        self._mine = reconcile_all(self._env, self._errands)
        self._env.passes.seconds += time.monotonic() - now
        self._env.passes.count += 1
        self._seen_mine.set()

    def _has_missed_some(self) -> bool:
        """Whether silence since the last pass says nothing: nobody listened, or the clock is another one."""
        last, before = self._last, self._seen_at
        self._last, self._seen_at = self._machine_time(), self._env.clock.now()
        gap = self._last - last
        # The machine's own time stands still while it is suspended, and knows of no step of the clock.
        elapsed = gap if before is None else (self._seen_at - before).total_seconds()
        return gap > _GAP_SECONDS or abs(elapsed - gap) > _STEP_SECONDS

    @staticmethod
    def _machine_time() -> float:
        return time.monotonic()

    def _copy(self) -> None:
        self._seen_mine.wait()
        seen, due = self._env.changed.value, self._machine_time()
        while not self._stop.is_set():
            try:
                copy_what_waits(self._env, self._mine)
                note_waiting_sign_ins(self._env)
                if self._machine_time() >= due:
                    due = self._machine_time() + _SWEEP_SECONDS
                    forget_old_events(self._env)
                    forget_old_changes(self._env)
                    forget_ended_sessions(self._env)
                    sweep_checkpoints(self._env, self._mine)
            except CatalogAway:  # the other thread reports it
                self._stop.wait(_PASS_SECONDS)
            except Exception:  # the next pass sees the same state again
                _log.exception("a pass over checkpoints to copy failed")
                self._stop.wait(_PASS_SECONDS)
            seen = self._env.changed.wait(seen, _PASS_SECONDS)

    def _run(self) -> None:
        seen = self._env.changed.value
        while not self._stop.is_set():
            for step in (self._reconcile, self._pool.maintain, self._pool.note):
                self._try(step)
            self._env.passes.ended = time.monotonic()
            seen = self._env.changed.wait(seen, _PASS_SECONDS)

    def _try(self, step: Callable[[], None]) -> None:
        """One step; whatever it meets, the loop must live, and the next pass sees the same state again."""
        try:
            step()
            self._away.discard(step)
            return
        except CatalogAway as error:
            # Nothing is wrong here, and it may last: said once, until the step has succeeded again.
            if step not in self._away:
                why = " ".join(str(error).split())
                _log.warning("the catalog does not answer (%s); looking again every second", why)
            self._away.add(step)
        except Exception:
            _log.exception("a reconcile pass failed")
        self._stop.wait(_PASS_SECONDS)
