"""A driver that runs many queries at once, each in a session and a thread of its own.

A fault of one query ends its attempt only. Two things end the process, and with it all attempts,
which start again elsewhere: the JVM's death, and a query that does not stop when it must, as nothing less
makes sure that it writes no more.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from leatstream.connectors.base import Connector
from leatstream.plan.job_spec import StoreRef
from leatstream_jobs.batches.last_batch import stop
from leatstream_jobs.driver.loop import Driver, LogTail
from leatstream_jobs.runtime.protocol import (
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_FENCED,
    Client,
    EndsWithProcess,
    NotKnown,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from leatstream_jobs.attempt.host import Open

_LOG = logging.getLogger("leatstream_jobs")
_WATCH, _LOOK = 0.2, 0.02  # seconds
_BEATS_PER_SECOND = 10  # of all queries together: what a small API takes easily
_SLOWEST_BEAT = 8.0
_LAST_WORDS = 5.0  # seconds; the query that ended the JVM may be about to say so
_PAUSE = 1.0  # seconds before a query that has just ended here may be asked for again


class ThreadTail(LogTail):
    """Log lines of one thread, and those that name its query (``query_id``): batches' threads serve all."""

    def __init__(self, query_id: str) -> None:
        super().__init__()
        self._thread = threading.get_ident()
        self._query_id = query_id

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line of its own."""
        if record.thread == self._thread or getattr(record, "query_id", None) == self._query_id:
            super().emit(record)


class Seat:
    """What an attempt has of a shared driver (``attempt.Host``). Made in the attempt's own thread."""

    look_seconds = 0.25

    def __init__(self, driver: SharedDriver, query_id: str) -> None:
        self._driver = driver
        self.client: Client = driver.client.another(query_id)
        self.work_dir = driver.work_dir
        self.tail: LogTail = ThreadTail(query_id)
        self.slots = driver.slots
        self.stop_seconds = driver.stop_seconds

    @property
    def stop_asked(self) -> bool:
        """Whether the process is to end."""
        return self._driver.stop_asked

    @property
    def heartbeat_seconds(self) -> float:
        """The more queries, the rarer each one's word."""
        return min(max(1.0, len(self._driver.running) / _BEATS_PER_SECOND), _SLOWEST_BEAT)

    def connector(self, store: StoreRef, secrets: Mapping[str, str], make: Open) -> Connector:
        """One for all queries that reach a store in the same way."""
        return self._driver.shared_connector(self, store, secrets, make)

    def is_free(self, _spark: SparkSession) -> bool:
        """The others are still there."""
        return False

    def cut_off(self, spark: SparkSession, query: StreamingQuery | None) -> None:
        """Stop this query; where it does not stop, everything does."""
        try:
            if query is not None:
                stop(spark, query)
        except Exception as error:
            if not self._driver.jvm_has_ended(_LAST_WORDS):
                self._driver.end_all(f"a query did not stop ({type(error).__name__})")

    def jvm_lost(self) -> None:
        """No attempt outlives the JVM; the API sees that the process has ended."""
        if not self._driver.jvm_has_ended(0):
            self._driver.end_all("Spark has stopped")
        raise EndsWithProcess


class SharedDriver(Driver):
    """One driver process with many queries.

    Attributes:
        running: the queries it has, each with its attempt and thread; only the main thread adds to them.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.running: dict[str, tuple[int, threading.Thread]] = {}
        self._connectors: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[Connector, set[Seat]]] = {}
        self._opening = threading.Lock()
        self._jvm: Any = None

    def shared_connector(
        self, seat: Seat, store: StoreRef, secrets: Mapping[str, str], make: Open
    ) -> Connector:
        """One for all queries that reach a store in the same way; clients of stores have threads."""
        key = (store.model_dump_json(), tuple(sorted(secrets.items())))
        with self._opening:
            if key not in self._connectors:
                self._connectors[key] = make(store.kind, store.name, store.config, secrets), set()
            found, seats = self._connectors[key]
            seats.add(seat)
            return found

    def let_go(self, seat: Seat) -> None:
        """Forget the connectors, and the secrets, that nobody else has a use for."""
        with self._opening:
            for key, (_, seats) in list(self._connectors.items()):
                seats.discard(seat)
                if not seats:
                    del self._connectors[key]

    def end_all(self, why: str) -> None:
        """End the process, and the JVM with it; does not return."""
        if self._jvm is not None:
            self._jvm.kill()  # else it would write on until it notices
        _LOG.error("this driver ends with all of its %d queries: %s", len(self.running), why)
        logging.shutdown()
        os._exit(EXIT_FAILED)

    def jvm_has_ended(self, seconds: float) -> bool:
        """Whether the JVM has ended, or ends within so many seconds."""
        end = time.monotonic() + seconds
        while self._jvm is not None and self._jvm.poll() is None:
            if time.monotonic() >= end:
                return False
            time.sleep(_LOOK)
        return self._jvm is not None

    def _serve(self, spark: SparkSession) -> int:
        from pyspark import java_gateway

        from leatstream_jobs.runtime.session import jvm_process

        self._jvm = jvm_process(spark)
        # Two queries that start at the same time would both make one.
        gateway: Any = java_gateway
        gateway.ensure_callback_server_started(spark.sparkContext._gateway)
        threading.Thread(target=self._watch, name="watch", daemon=True).start()
        try:
            while not self.stop_asked:
                work = self._ask("idle")
                if work is None:
                    continue
                if work.get("kind") == "exit":
                    self.stop_asked = True
                elif work.get("kind") == "run":
                    self._begin(spark, work["spec"])
                else:
                    _LOG.warning("unknown kind of work %r is passed over", work.get("kind"))
        except NotKnown:
            # Its attempts hear so themselves, or stop as orphans.
            _LOG.info("the API does not know this driver any more")
        for _, thread in list(self.running.values()):
            thread.join()
        return EXIT_DONE

    def _begin(self, spark: SparkSession, document: Mapping[str, Any]) -> None:
        from pyspark import InheritableThread

        query_id, attempt = str(document["query_id"]), int(document["attempt"])
        number, before = self.running.get(query_id, (0, None))
        if number >= attempt:
            return
        # Its JVM thread ends with it, which a plain thread's would not.
        thread = InheritableThread(target=self._attempt, args=(spark, document, before), daemon=True)
        thread.name = f"query {query_id}"
        self.running[query_id] = attempt, thread
        thread.start()

    def _attempt(
        self, spark: SparkSession, document: Mapping[str, Any], before: threading.Thread | None
    ) -> None:
        from leatstream_jobs.attempt.attempt import Attempt
        from leatstream_jobs.runtime.session import own_session

        query_id = str(document["query_id"])
        if before is not None:
            before.join()  # it has reported its end, or will hear that it is over
        seat = Seat(self, query_id)
        _LOG.addHandler(seat.tail)
        try:
            # Views, functions and settings are a session's; the pool has queries take turns.
            session = own_session(spark)
            session.sparkContext.setLocalProperty("spark.scheduler.pool", query_id)
            code = Attempt(seat, session, document).run()
            # The API hands it out again, such as a query whose secrets it refuses.
            time.sleep(_PAUSE if code == EXIT_FENCED else 0)
        except Exception:
            _LOG.exception("an attempt ended without a word")
            time.sleep(_PAUSE)
        finally:
            _LOG.removeHandler(seat.tail)
            self.let_go(seat)
            seat.client.close()
            if self.running[query_id][0] == document["attempt"]:
                del self.running[query_id]

    def _on_term(self, _signal: int, _frame: Any) -> None:
        self.stop_asked = True
        if not self.running:
            raise NotKnown("asked to end")

    def _report(self, state: str) -> dict[str, Any]:
        running = {query: attempt for query, (attempt, _) in list(self.running.items())}
        return {**super()._report(state), "running": running}

    def _watch(self) -> None:
        """The main thread may wait for work for long; what ends the process must not wait with it."""
        while self._jvm is None or self._jvm.poll() is None:
            if self.stop_asked and not self.running:
                os._exit(EXIT_DONE)
            time.sleep(_WATCH)
        end = time.monotonic() + _LAST_WORDS
        for _, thread in list(self.running.values()):
            thread.join(max(0.0, end - time.monotonic()))
        self.end_all("the JVM has ended")
