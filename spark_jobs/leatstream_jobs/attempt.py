"""One attempt of one query: start it, watch it, report it, end it."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from leatstream.connectors.base import Connector
from leatstream.connectors.registry import open_connector
from leatstream.errors import JobError, LeatstreamError, StoreError
from leatstream.plan.job_spec import JobSpec, Mode, StoreRef
from leatstream_jobs import run_query
from leatstream_jobs.failures import Failure, chain_of, classify, redacted, source_gone
from leatstream_jobs.idle import IdleSources
from leatstream_jobs.offset_mirror import OffsetMirror
from leatstream_jobs.pattern_batches import PatternBatches
from leatstream_jobs.progress import Progress
from leatstream_jobs.protocol import ApiUnreachable, Fenced, NotKnown
from leatstream_jobs.running import is_running
from leatstream_jobs.session import jvm_process
from leatstream_jobs.source_identities import SourceIdentities
from leatstream_jobs.user_functions import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from leatstream_jobs.driver import Driver

_LOG = logging.getLogger("leatstream_jobs")

HEARTBEAT = 1.0  # seconds
SOURCE_CHECK = 5.0
_STARTING_LOOK, _RUNNING_LOOK = 0.02, 0.1
EXIT_DONE, EXIT_FAILED, EXIT_FENCED = 0, 1, 3


class Attempt:
    """Runs the query of one JobSpec to its end."""

    def __init__(self, driver: Driver, spark: SparkSession, document: Mapping[str, Any]) -> None:
        self._driver = driver
        self._spark = spark
        self._spec = JobSpec.model_validate(document)
        self._progress = Progress(self._spec.sources)
        self._idle = IdleSources(self._spec.sources, self._spec.checkpoint)
        self._mirror = OffsetMirror(self._spec.query_name)
        self._state = "starting"
        self._failure: Failure | None = None
        self._started: run_query.Started | None = None
        self._secrets: dict[str, str] = {}
        self._known = SourceIdentities(spark, self._spec.checkpoint)
        self._identities: dict[str, str] = {}
        self._kept = False
        self._next_heartbeat = 0.0
        self._next_check = 0.0
        self._directive = "continue"
        self._completed = False

    def run(self) -> int:
        """Run until told to stop, or until the query fails; returns the exit code."""
        spec = self._spec
        _LOG.info("query %s attempt %d starts in %s mode", spec.query_name, spec.attempt, spec.mode.value)
        try:
            self._beat()
            started = self._start()
            if started is not None:
                self._watch(started)
            return self._end()
        except (Fenced, NotKnown) as error:
            _LOG.warning("a newer attempt has taken over (%s); the query is cut off", error)
            self._cut_off()
            return EXIT_FENCED

    def _start(self) -> run_query.Started | None:
        try:
            references = sorted(self._references())
            self._secrets = self._driver.client.resolve_secrets(references)
            digests = sorted({f.digest for f in self._spec.functions})
            register(self._spark, self._spec.functions, self._driver.client.function_sources(digests))
            self._compare_sources()
            if self._failure is not None:
                return None
            self._started = run_query.start(
                self._spark, self._spec, self._connect, self._driver.slots, self._secrets
            )
            if isinstance(self._started.batches, PatternBatches):
                self._progress.figures = self._started.batches
            return self._started
        except ApiUnreachable:
            self._fail(Failure("job-failed", "The API could not be reached for the secrets of the stores."))
        except (Fenced, NotKnown):
            raise
        except JobError as error:
            self._fail(Failure(error.code, error.detail))
        except StoreError as error:
            gone = error.code == "entity-not-found"
            retry = error.retryable
            self._fail(
                Failure(
                    "source-gone" if gone else "job-failed", error.detail, error.code, None if gone else retry
                )
            )
        except LeatstreamError as error:
            self._fail(Failure("job-rejected", error.detail, error.code))
        except Exception as error:
            self._fail(self._explain(error))
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
            except (Fenced, NotKnown):
                raise
            except Exception as error:
                self._fail(self._explain(error))
                return
            if self._failure is None:
                self._check_sources(started)
                self._mirror.look(started.scans, self._progress)
            if self._failure is not None:
                return
            if time.monotonic() >= self._next_heartbeat:
                self._beat()
            if self._driver.is_orphan():
                _LOG.warning(
                    "the API has not answered for %g s; the query stops", self._driver.orphan_seconds
                )
                return
            time.sleep(_STARTING_LOOK if self._state == "starting" else _RUNNING_LOOK)

    def _look(self, query: StreamingQuery) -> None:
        if self._state == "starting":
            if is_running(self._spark, query, self._spec.mode, self._progress):
                self._state = "running"
                _LOG.info("query %s runs", self._spec.query_name)
                self._beat()
        elif time.monotonic() >= self._next_heartbeat:
            fresh = self._progress.look(query)
            if self._spec.mode is Mode.REALTIME:
                self._look_live()
            self._idle.look(self._spark, query, self._progress, fresh=fresh)

    def _look_live(self) -> None:
        """Figures for people only: an error here must not end a query that works."""
        try:
            self._progress.look_live(self._spark)
        except Exception as error:
            _LOG.debug("live counts could not be read: %s", type(error).__name__)

    def _ended_by_itself(self, query: StreamingQuery) -> None:
        java: Any = query._jsq.exception()
        self._progress.look(query)
        batches = self._started.batches if self._started is not None else None
        if batches is not None and batches.error is not None:
            self._fail(self._explain(batches.error))
        elif java.isDefined():
            self._fail(classify(chain_of(java.get()), self._spec))
        elif self._spec.available_now and self._started is not None:
            # A run may be over before the sources' turn has come, and the next one compares with this.
            self._state, self._next_check = "running", 0.0
            self._check_sources(self._started)
            self._completed = self._failure is None
        else:
            self._fail(Failure("job-failed", "The query ended without an error, although nobody stopped it."))

    def _check_sources(self, started: run_query.Started) -> None:
        """Notice a source's entity that is gone or was made anew; Spark itself may wait for it for ever."""
        if self._state != "running" or time.monotonic() < self._next_check:
            return
        self._next_check = time.monotonic() + SOURCE_CHECK
        for scan in started.scans:
            try:
                now = scan.connector.incarnation(scan.source.entity, timeout=3.0)
                self._progress.watches[scan.source.view] = scan.connector.watch_source(scan.source)
            except StoreError as error:
                # A store that is away for a while is no reason to fail: Spark's own clients wait for it too.
                _LOG.warning("source %s could not be checked: %s", scan.source.relation, error.detail)
                continue
            before = self._identities.setdefault(scan.source.view, now or "")
            if now is None or now != before:
                self._fail(source_gone(scan.source, recreated=now is not None))
                return
        if not self._kept and len(self._identities) == len(started.scans):
            self._keep_identities()

    def _keep_identities(self) -> None:
        """Write them down for later attempts; a fault that lasts ends the job itself, and is told then."""
        try:
            self._known.write(self._identities)
            self._kept = True
        except Exception as error:
            _LOG.warning("the sources' identities were not kept (%s); trying again", type(error).__name__)

    def _compare_sources(self) -> None:
        """See that the sources are those that the checkpoint's offsets are of; StoreError if one is away."""
        self._identities = self._known.read()
        self._kept = bool(self._identities)
        for source in self._spec.sources if self._kept else ():
            before = self._identities.get(source.view)
            now = self._connect(source.store).incarnation(source.entity)
            if now is None or before not in (None, now):
                self._fail(source_gone(source, recreated=now is not None))
                return

    def _end(self) -> int:
        failed = self._failure is not None
        if self._state == "running" and not failed and not self._completed:
            self._state = "stopping"
            self._beat_quietly()
        if self._started is not None:
            self._stop_query(self._started.query)
        if not failed:
            self._state = "completed" if self._completed else "stopped"
            _LOG.info("query %s has %s", self._spec.query_name, self._state)
        self._report_until_heard()
        return EXIT_FAILED if failed else EXIT_DONE

    def _stop_query(self, query: StreamingQuery) -> None:
        """Stop in order; a JVM that does not obey is ended: nothing is written after the last report."""
        try:
            query.stop()
            self._progress.look(query)
            if self._started is not None:
                self._mirror.look(self._started.scans, self._progress, last=True)
        except Exception as error:
            _LOG.warning("the query did not stop in order (%s); its JVM is ended", type(error).__name__)
            self._cut_off()

    def _report_until_heard(self) -> None:
        """The final state must arrive; without any answer the driver ends after the orphan limit."""
        while True:
            try:
                self._send()
                return
            except (Fenced, NotKnown):
                return
            except ApiUnreachable:
                if self._driver.is_orphan():
                    return
                time.sleep(0.25)

    def _beat(self) -> None:
        """One heartbeat; an API that is away changes nothing for the query."""
        self._next_heartbeat = time.monotonic() + HEARTBEAT
        try:
            directive = self._send()
        except ApiUnreachable:
            return
        if directive == "die":
            raise Fenced("told to die")
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
        self._driver.reached()
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
        progress = self._progress.as_json()
        return body | ({"progress": progress} if progress else {})

    def _connect(self, store: StoreRef) -> Connector:
        secrets = {path: self._secrets[reference] for path, reference in store.secrets.items()}
        return open_connector(store.kind, store.name, store.config, secrets)

    def _references(self) -> set[str]:
        view = self._spec.sink.view
        own = view.database.secret if view is not None and view.database is not None else None
        found = {r for store in self._spec.stores() for r in store.references()}
        return found | ({own} if own else set())

    def _explain(self, error: BaseException) -> Failure:
        if self._jvm_is_gone():
            return Failure("driver-lost", "The job's JVM ended by itself (killed, or out of memory).")
        try:
            return classify(chain_of(error), self._spec)
        except Exception:  # the JVM may go while it is being asked
            return Failure("driver-lost", "The job's JVM ended by itself (killed, or out of memory).")

    def _fail(self, failure: Failure) -> None:
        self._failure = failure
        self._state = "failed"
        _LOG.error("query %s failed: %s: %s", self._spec.query_name, failure.code, redacted(failure.detail))

    def _jvm_is_gone(self) -> bool:
        process = jvm_process(self._spark)
        if process is None:
            return False
        end = time.monotonic() + 1.0
        while process.poll() is None and time.monotonic() < end:
            if self._answers():
                return False
            time.sleep(0.05)
        return True

    def _answers(self) -> bool:
        try:
            return bool(self._spark.sparkContext._jsc.sc().applicationId())
        except Exception:
            return False

    def _cut_off(self) -> None:
        """No further write: the JVM is killed, not asked."""
        process = jvm_process(self._spark)
        if process is None:
            os._exit(EXIT_FENCED)
        if process.poll() is None:
            process.kill()
            process.wait(10)
