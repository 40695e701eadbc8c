"""One attempt of one query: start it, watch it, report it, end it."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from leatstream.connectors.base import Connector
from leatstream.connectors.registry import open_connector
from leatstream.errors import LeatstreamError
from leatstream.plan.job_spec import JobSpec, Mode, StoreRef
from leatstream_jobs.attempt import run_query
from leatstream_jobs.attempt.batch_size import BatchSize
from leatstream_jobs.attempt.diagnosis import Diagnosis
from leatstream_jobs.attempt.failures import Failure, chain_of, redacted, refused
from leatstream_jobs.attempt.lag_age import LagAge
from leatstream_jobs.attempt.offset_mirror import OffsetMirror
from leatstream_jobs.attempt.polling import Polling
from leatstream_jobs.attempt.progress import Progress
from leatstream_jobs.attempt.pulse import Pulse
from leatstream_jobs.attempt.running import is_running
from leatstream_jobs.attempt.sink_checks import SinkChecks
from leatstream_jobs.attempt.source_checks import SourceChecks
from leatstream_jobs.attempt.traffic import Traffic
from leatstream_jobs.batches.handing_over import reached
from leatstream_jobs.batches.joint_batches import JointBatches
from leatstream_jobs.batches.last_batch import let_end, stop, works
from leatstream_jobs.functions.user_functions import register
from leatstream_jobs.patterns.batches import PatternBatches
from leatstream_jobs.reading.idle import IdleSources
from leatstream_jobs.runtime.protocol import (
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_FENCED,
    STAY,
    ApiUnreachable,
    EndsWithProcess,
    Fenced,
    NotKnown,
)
from leatstream_jobs.runtime.usage import DRIVER_USE, Usage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from leatstream_jobs.attempt.host import Host

_LOG = logging.getLogger("leatstream_jobs")

# Of a batch that is at work when the query is to stop; within the time the API gives (stop_grace).
LAST_BATCH = 12.0
_FOR_THE_REST = 3.0  # seconds from a batch's end to the process's
_STARTING_LOOK = 0.02
_OVER = (Fenced, NotKnown, EndsWithProcess)  # nothing is left to do, and nothing to tell


class Attempt:
    """Runs the query of one JobSpec to its end.

    Attributes:
        may_stay: the query has ended in order, and the API keeps the driver for another one.
    """

    def __init__(self, driver: Host, spark: SparkSession, document: Mapping[str, Any]) -> None:
        self._driver = driver
        self._contact = driver.client.contact
        self._spark = spark
        self._spec = JobSpec.model_validate(document)
        self._diagnosis = Diagnosis(spark, self._spec, driver, self._connect, self._beat_quietly)
        self._progress = Progress(self._spec.sources)
        # The clock of one that is silent is not to go ahead of that of the query which writes.
        self._idle = IdleSources([] if self._spec.silent else self._spec.sources, self._spec.checkpoint)
        self._size = BatchSize(self._spec)
        self._usage = Usage()
        self._traffic: Traffic | None = None
        self._polling = Polling()
        self._mirror = OffsetMirror(self._spec.query_name)
        self._state = "starting"
        self._failure: Failure | None = None
        self._started: run_query.Started | None = None
        self._secrets: dict[str, str] = {}
        self._pulse = Pulse(self._spec)
        self._lag_age = LagAge(realtime=self._spec.mode is Mode.REALTIME)
        self._sources = SourceChecks(
            spark, self._spec.checkpoint, self._progress.watches, self._pulse.answered
        )
        self._sinks = SinkChecks(self._spec.sinks(), self._pulse.answered)
        self._next_heartbeat = 0.0
        self._directive = "continue"
        self._completed = False
        self._reached: dict[str, Any] | None = None
        self.may_stay = self._is_free = False

    def run(self) -> int:
        """Run until ordered to stop, or until the query fails; returns the exit code."""
        spec = self._spec
        _LOG.info("query %s attempt %d starts in %s mode", spec.query_name, spec.attempt, spec.mode.value)
        try:
            self._beat()
            # It may have been deleted or stopped meanwhile, and be taken apart already.
            started = self._start() if self._directive == "continue" else None
            if started is not None:
                self._watch(started)
            return self._end()
        except (Fenced, NotKnown) as error:
            _LOG.warning("a newer attempt has taken over (%s); the query is cut off", error)
            self._cut_off()
            return EXIT_FENCED
        except EndsWithProcess:
            return EXIT_FAILED
        except Exception:
            # Whatever it is: no query may go on that nobody watches, as it would in a shared driver.
            self._cut_off()
            raise
        finally:
            if self._traffic is not None:
                self._traffic.end()

    def _start(self) -> run_query.Started | None:
        try:
            references = sorted(self._spec.references())
            self._secrets = self._driver.client.resolve_secrets(references)
            digests = sorted({f.digest for f in self._spec.functions})
            texts = self._driver.client.function_sources(digests)
            register(self._spark, self._spec.functions, texts, self._driver.work_dir / "jars")
            gone = self._sources.compare(self._spec.sources, self._connect)
            if gone is not None:
                self._fail(gone)
                return None
            if self._spec.mode is Mode.REALTIME:
                self._progress.begin_live(self._spark)
            self._traffic = Traffic(self._spark, self._spec)
            self._started = run_query.start(
                self._spark, self._spec, self._connect, self._driver.slots, self._secrets
            )
            self._traffic.sinks = self._started.sinks
            if isinstance(self._started.batches, PatternBatches):
                self._progress.figures = self._started.batches
            return self._started
        except ApiUnreachable:
            self._fail(Failure("job-failed", "The API could not be reached for the secrets of the stores."))
        except _OVER:
            raise
        except LeatstreamError as error:
            self._fail(refused(error))
        except Exception as error:
            self._fail(self._diagnosis.of_error(error))
        return None

    def _watch(self, started: run_query.Started) -> None:
        """Look at the query, report, obey; returns when it has ended or has to end."""
        query = started.query
        while self._directive == "continue" and not self._driver.stop_asked:
            try:
                if not query.isActive:
                    self._ended_by_itself(query)
                    return
                self._look(query)
                self._check_sources(started)
                self._check_sinks()
                self._mirror.look(started.scans, self._progress)
            except _OVER:
                raise
            except Exception as error:
                self._fail(self._diagnosis.of_error(error))
                return
            if self._failure is not None:
                return
            if time.monotonic() >= self._next_heartbeat:
                self._feel_pulse(query)  # what came before may have waited for a store
                self._beat()
            if self._contact.is_lost():
                _LOG.warning("the API has not answered for %g s; the query is cut off", self._contact.limit)
                return
            time.sleep(_STARTING_LOOK if self._state == "starting" else self._driver.look_seconds)

    def _look(self, query: StreamingQuery) -> None:
        if self._state == "starting":
            if is_running(self._spark, query, self._spec.mode, self._progress):
                self._state = "running"
                _LOG.info("query %s runs", self._spec.query_name)
                self._beat()
        elif time.monotonic() >= self._next_heartbeat:
            fresh = self._progress.look(query)
            self._look_at_traffic()
            if self._spec.mode is Mode.REALTIME:
                self._look_live()
            self._idle.look(self._spark, query, self._progress, fresh=fresh)
            reports = self._progress.unmeasured()
            self._feel_pulse(query, reports)
            if self._spec.mode is not Mode.REALTIME:
                self._size.look(self._spark, query, reports)
                self._polling.look(query, reports)
                self._progress.batch_limit = self._size.limit

    def _feel_pulse(self, query: StreamingQuery, reports: Sequence[Mapping[str, Any]] = ()) -> None:
        """For people only: an error here must not end a query that works."""
        java: Any = query._jsq
        try:
            status, jvm = java.status(), cast(Any, self._spark._jvm)
            # Spark's loop sets another status each time that it asks the sources, with the same words or not.
            mark = getattr(jvm, "java.lang.System").identityHashCode(status)
            now = json.loads(status.json())
        except Exception as error:
            _LOG.debug("the status could not be read: %s", type(error).__name__)
            return
        live = self._progress.live
        self._pulse.look([mark, live.read if live else None], str(now["message"]), reports)
        self._lag_age.take(reports)
        if not now["isTriggerActive"] and not now["isDataAvailable"]:
            self._lag_age.waits(mark)

    def _look_live(self) -> None:
        """Figures for people only: an error here must not end a query that works."""
        try:
            self._progress.look_live(self._spark)
        except Exception as error:
            _LOG.debug("live counts could not be read: %s", type(error).__name__)

    def _look_at_traffic(self, *, last: bool = False) -> None:
        if self._traffic is not None:
            self._traffic.look(last=last)

    def _ended_by_itself(self, query: StreamingQuery) -> None:
        java: Any = query._jsq.exception()
        self._progress.look(query)
        batches = self._started.batches if self._started is not None else None
        if batches is not None and batches.error is not None:
            at_work = batches.at_work if isinstance(batches, JointBatches) else self._spec
            self._fail(self._diagnosis.of_error(batches.error, at_work))
        elif java.isDefined():
            self._fail(self._diagnosis.of_chain(chain_of(java.get())))
        elif self._spec.available_now and self._started is not None:
            # A run may be over before the sources' turn has come, and the next one compares with this.
            self._state = "running"
            self._check_sources(self._started, at_once=True)
            self._completed = self._failure is None
        else:
            self._fail(Failure("job-failed", "The query ended without an error, although nobody stopped it."))

    def _check_sources(self, started: run_query.Started, *, at_once: bool = False) -> None:
        if self._state == "running":
            failure = self._sources.look(started.scans, at_once=at_once)
            if failure is not None:
                self._fail(failure)

    def _check_sinks(self) -> None:
        if self._state == "running":
            failure = self._sinks.look(self._connect)
            if failure is not None:
                self._fail(failure)

    def _end(self) -> int:
        failed = self._failure is not None
        if self._state == "running" and not failed and not self._completed:
            self._state = "stopping"
            if not self._contact.is_lost():  # an API that is silent would keep it from stopping in time
                self._beat_quietly()
        if self._contact.is_lost():
            self._cut_off()  # another may have its place by the time that it had stopped in order
        elif self._started is not None:
            self._stop_query(self._started.query)
        elif failed and self._spec.operator is None:
            self._reached = self._how_far(in_order=False)
        if not failed:
            self._is_free = self._look_whether_free()
            self._state = "completed" if self._completed else "stopped"
            _LOG.info("query %s has %s", self._spec.query_name, self._state)
        self._report_until_heard()
        return EXIT_FAILED if failed else EXIT_DONE

    def _look_whether_free(self) -> bool:
        try:
            if self._driver.stop_asked or self._contact.is_lost():
                return False
            return self._driver.is_free(self._spark)
        except Exception as error:
            _LOG.warning("the driver cannot be used again: %s", type(error).__name__)
            return False

    def _stop_query(self, query: StreamingQuery) -> None:
        """Stop in order; a JVM that does not obey is ended: nothing is written after the last report."""
        try:
            in_order = self._finish_batch(query)
            stop(self._spark, query)
            self._reached = self._how_far(in_order=in_order)
            self._progress.look(query)
            self._look_at_traffic(last=True)
            if self._started is not None:
                self._mirror.look(self._started.scans, self._progress, last=True)
        except _OVER:
            raise
        except Exception as error:
            _LOG.warning("the query did not stop in order (%s); it is cut off", type(error).__name__)
            self._cut_off()

    def _how_far(self, *, in_order: bool) -> dict[str, Any] | None:
        """Where the query has ended, which matters to one that takes over from it; None where none can."""
        if self._spec.sink.view is not None or self._spec.mode is Mode.REALTIME:
            return None  # far checkpoints are not asked for nothing
        try:
            batches = self._started.batches if self._started is not None else None
            pattern = batches.last_watermark(self._spark) if isinstance(batches, PatternBatches) else None
            begun = batches.begun if batches is not None else None
            return reached(self._spark, self._spec, pattern, begun, in_order=in_order)
        except Exception as error:
            _LOG.warning("how far the query has come is unknown: %s", type(error).__name__)
            return None

    def _finish_batch(self, query: StreamingQuery) -> bool:
        """Let the batch at work end, so that the next attempt repeats none of it; whether it has.

        Not one of a driver that has lost its API: another may take its place when its time is over.
        """
        if self._failure is not None or self._completed or self._contact.is_lost():
            return False
        seconds = self._driver.stop_seconds - _FOR_THE_REST if self._driver.stop_asked else LAST_BATCH
        if self._spec.mode is Mode.REALTIME:
            # Such a batch lasts for its full time; a user who stops a query does not wait for that.
            long_enough = seconds >= self._spec.realtime_batch_ms / 1000
            if not (self._driver.stop_asked and long_enough):
                return False
        end = time.monotonic() + seconds
        batches = self._started.batches if self._started is not None else None
        if batches is not None:
            batches.close()
        let_end(self._spark, query, batches)
        while works(query) and time.monotonic() < end and not self._contact.is_lost():
            if time.monotonic() >= self._next_heartbeat:
                self._beat()
            time.sleep(_STARTING_LOOK)
        return not works(query) and not self._has_broken_off(query)

    def _has_broken_off(self, query: StreamingQuery) -> bool:
        """Whether the last batch has failed, so that a part of it may be written."""
        batches = self._started.batches if self._started is not None else None
        java: Any = query._jsq.exception()
        if batches is not None and batches.error is not None:
            links = type(batches.error).__name__
        elif java.isDefined():
            links = " < ".join(link.name.rpartition(".")[2] for link in chain_of(java.get()))
        else:
            return False
        _LOG.warning("the last batch failed (%s); the next attempt repeats it", links)
        return True

    def _report_until_heard(self) -> None:
        """The final state must arrive; without any answer the driver ends after the orphan limit.

        One that a signal ends has no time for that, and its end is seen.
        """
        while True:
            try:
                self.may_stay = self._send() == STAY
                return
            except Fenced:
                # The first answer may have been lost, and the driver been given to another query by now.
                self.may_stay = self._is_free
                return
            except NotKnown:
                return
            except ApiUnreachable:
                if self._contact.is_lost() or self._driver.stop_asked:
                    return
                time.sleep(0.25)

    def _beat(self) -> None:
        """One heartbeat; an unreachable API changes nothing for the query."""
        self._next_heartbeat = time.monotonic() + self._driver.heartbeat_seconds
        try:
            directive = self._send()
        except ApiUnreachable:
            return
        self._directive = directive

    def _beat_quietly(self) -> None:
        with contextlib.suppress(ApiUnreachable):
            self._send()

    def _send(self) -> str:
        lines = self._driver.tail.take()
        try:
            directive = self._driver.client.heartbeat(self._body(lines))
        except ApiUnreachable:
            self._driver.tail.give_back(lines)
            raise
        self._mirror.rename(self._driver.client.query_name)
        return directive

    def _body(self, lines: list[str]) -> dict[str, Any]:
        body: dict[str, Any] = {
            "query_id": self._spec.query_id,
            "attempt": self._spec.attempt,
            "fencing_token": self._spec.fencing_token,
            "state": self._state,
            "log": [redacted(line) for line in lines],
        }
        if self._failure is not None:
            body["error"] = self._failure.as_json()
        if self._is_free:
            body["free"] = True
        if self._reached is not None:
            body["reached"] = self._reached
        if self._state == "starting" and self._pulse.first_batch:
            body["first_batch"] = True
        if self._state == "running":
            body["pulse"] = self._pulse.as_json() | {"lag_age_seconds": self._lag_age.seconds()}
            body["use"] = DRIVER_USE.as_json(self._spark)
        progress = self._progress.as_json()
        if progress is not None and self._traffic is not None:
            traffic = self._traffic.as_json(self._progress)
            body["progress"] = progress | traffic | self._usage.as_json()
        return body

    def _connect(self, store: StoreRef) -> Connector:
        secrets = {path: self._secrets[reference] for path, reference in store.secrets.items()}
        return self._driver.connector(store, secrets, open_connector)

    def _fail(self, failure: Failure) -> None:
        self._failure = failure
        self._state = "failed"
        _LOG.error("query %s failed: %s: %s", self._spec.query_name, failure.code, redacted(failure.detail))

    def _cut_off(self) -> None:
        """No further write."""
        self._driver.cut_off(self._spark, self._started.query if self._started is not None else None)
