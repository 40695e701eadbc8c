"""Threads for what passes have done aside: one for each place that may be unreachable."""

from __future__ import annotations

import logging
import threading
import time

from leatstream.errors import CatalogAway, EngineError, LeatstreamError
from leatstream.services.environment import Environment
from leatstream.services.queries.reconcile.store_steps import Errand, Place

_log = logging.getLogger(__name__)
# Of a kind: a server that meets more places at once than these comes back to the others in a later pass.
_MOST_PLACES = 16


class Errands:
    """Does errands (``reconcile.store_steps.Aside``): those of one place one after another, as they came.

    A small common pool would end up waiting for the unreachable store. A place has its thread for as long as
    there is something to do. Whether a place turns out to be reachable holds for all that wait there by
    then; a later caller asks again.
    """

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._lock = threading.Lock()
        self._places: dict[Place, dict[str, Errand]] = {}
        self._threads: set[threading.Thread] = set()
        self._over = False

    def __call__(self, place: Place, query_id: str, errand: Errand) -> bool:
        """Take an errand, unless the query has one at this place already; it is not done by now."""
        with self._lock:
            waiting = self._places.get(place)
            if waiting is not None:
                waiting.setdefault(query_id, errand)
            elif not self._over and sum(known[0] == place[0] for known in self._places) < _MOST_PLACES:
                thread = threading.Thread(target=self._work, args=(place,), name=" ".join(place), daemon=True)
                thread.start()
                self._threads.add(thread)
                self._places[place] = {query_id: errand}
        return False

    def stop(self, timeout: float) -> None:
        """Begin no other errand, and wait a while for those that run; the next server repeats them."""
        with self._lock:
            self._over = True
            threads = list(self._threads)
        deadline = time.monotonic() + timeout
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self, place: Place) -> None:
        outage: LeatstreamError | None = None
        informed: set[str] = set()
        while (found := self._next(place)) is not None:
            query_id, errand = found
            outcome = self._do(errand, outage if query_id in informed else None)
            with self._lock:
                waiting = self._places[place]
                del waiting[query_id]  # only now: until here a pass must not hand on the same again
                if query_id in informed:
                    informed.discard(query_id)
                else:
                    outage, informed = outcome, set(waiting if outcome else ())

    def _next(self, place: Place) -> tuple[str, Errand] | None:
        """The errand that has waited for longest; None, and the place is given up, if there is none."""
        with self._lock:
            waiting = self._places[place]
            if waiting and not self._over:
                return next(iter(waiting.items()))
            del self._places[place]
            self._threads.discard(threading.current_thread())
            return None

    def _do(self, errand: Errand, outage: LeatstreamError | None) -> LeatstreamError | None:
        """One errand; whatever it meets, the others are done, and the next pass sees the same state again."""
        try:
            return errand(outage)
        except EngineError as error:  # such as a pod on a lost node
            _log.warning("a driver could not be ended: %s", error.detail)
        except CatalogAway:  # which the passes tell
            self._env.listening_since = self._env.clock.now()
        except Exception:
            _log.exception("what a query needs could not be done")
        return None
