"""An interactive SELECT: its rows go to the API as they come, as long as somebody reads them there.

The driver lives on, unless it has run users' functions: it works in a session of its own, whose views and
settings go with it.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leatstream.connectors.base import Connector
from leatstream.connectors.registry import open_connector
from leatstream.errors import JobError, LeatstreamError
from leatstream.plan.job_spec import READER_KIND, JobSpec, StoreRef
from leatstream_jobs.attempt import run_query
from leatstream_jobs.attempt.failed_records import with_record_faults
from leatstream_jobs.attempt.failures import Failure, Link, chain_of, classify
from leatstream_jobs.batches.last_batch import stop
from leatstream_jobs.functions.user_functions import register
from leatstream_jobs.runtime.protocol import ApiUnreachable, Fenced, NotKnown, TooLarge, as_sent
from leatstream_jobs.runtime.session import own_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from leatstream_jobs.driver.loop import Driver

_LOG = logging.getLogger("leatstream_jobs")
_BEAT = 1.0  # seconds between words to the API
_LOOK = 0.05
_AWAY = 10.0  # seconds without the API after which nobody can be reading
_ROWS, _BYTES = 500, 256 * 1024  # of one call
_LARGEST = 900 * 1024  # a call's body may have 1 MiB
_TOO_LONG = (
    "A row is longer than 900 KiB as it is sent (JSON in UTF-8, its quotes escaped), too long to be shown:"
    " select fewer columns or a part of the texts, such as left(…, …)."
)


class Stopped(Exception):
    """Nobody wants more rows."""


class Reader:
    """The sink of a SELECT, as a connector's writing half: hands rows over, waits while there is no room."""

    takes_rows = False

    def __init__(self, driver: Driver, spec: JobSpec) -> None:
        self._client = driver.client
        self._select = spec.query_id
        self._changelog = bool(spec.sink.key_columns)
        self._lock = threading.Lock()
        self._sequence = 0
        self._heard = time.monotonic()
        self._told = 0.0
        self.stopped = False
        self.error: BaseException | None = None

    def write_stream(self, frame: DataFrame, sink: Any, *, realtime: bool) -> Any:
        """As a connector's."""
        return frame.writeStream.foreachBatch(self._batch)

    def write_batch(self, frame: DataFrame, *_sink: Any) -> None:
        """As a connector's."""
        self._batch(frame, 0)

    def _batch(self, frame: DataFrame, _batch_id: int) -> None:
        if self.stopped:
            return
        try:
            self._hand_over(frame)
        except BaseException as error:
            # Through Spark it would come back as text.
            self.error = error
            raise

    def _hand_over(self, frame: DataFrame) -> None:
        rows: list[tuple[str, str]] = []
        size = 0
        for op, text in self._told_rows(frame):
            length = len(as_sent(text))
            if length > _LARGEST:
                raise JobError("job-failed", _TOO_LONG)
            if rows and (len(rows) >= _ROWS or size + length > _BYTES):
                self.send(rows)
                rows, size = [], 0
            rows.append((op, text))
            size += length
            if self.stopped:
                return
        if rows:
            self.send(rows)

    def _told_rows(self, frame: DataFrame) -> Iterator[tuple[str, str]]:
        for row in frame.toLocalIterator():
            if row.value is None:
                yield "-D", bytes(row.key).decode()
            else:
                yield "+U" if self._changelog else "+I", _text(row.value)

    def send(self, rows: list[tuple[str, str]], error: Mapping[str, Any] | None = None) -> None:
        """Hand rows over; returns when they have been taken, or nobody wants them."""
        with self._lock:
            self._sequence += 1
            body: dict[str, Any] = {"select": self._select, "sequence": self._sequence, "rows": rows}
            if error is not None:
                body["error"] = error
            while not self.stopped or error is not None:
                if self._deliver(body) or self.stopped:
                    return

    def quit(self) -> None:
        """No more is sent; returns when nothing is on its way."""
        self.stopped = True
        with self._lock:
            return

    def beat(self) -> None:
        """A word now and then, so that the API can answer whether to go on."""
        if time.monotonic() - self._told >= _BEAT and self._lock.acquire(blocking=False):
            try:
                self._deliver({"select": self._select, "sequence": self._sequence, "rows": []})
            finally:
                self._lock.release()

    def _deliver(self, body: Mapping[str, Any]) -> bool:
        try:
            taken, directive = self._client.send_rows(body)
        except (Fenced, NotKnown):
            self.stopped = True
            return True
        except TooLarge:
            detail = "Rows cannot be handed over: the service, or a proxy before it, takes less than 1 MiB."
            raise JobError("job-failed", detail) from None
        except ApiUnreachable:
            if time.monotonic() - self._heard > _AWAY:
                self.stopped = True
            time.sleep(0.25)
            return False
        self._heard = self._told = time.monotonic()
        self.stopped = self.stopped or directive == "stop"
        return taken


class Selecting:
    """Runs one SELECT to its end."""

    def __init__(self, driver: Driver, spark: SparkSession, document: Mapping[str, Any]) -> None:
        self._driver = driver
        self._spark = own_session(spark)
        self._place = driver.work_dir / str(document["query_id"])
        # Starting workers would hold up the first row.
        own = {"checkpoint": self._place.as_uri(), "json_reader": "expressions"}
        self._spec = JobSpec.model_validate({**document, **own})
        self._secrets: dict[str, str] = {}
        self._reader = Reader(driver, self._spec)

    def run(self) -> None:
        """Run until nobody wants rows any more, or until it fails; nothing stays."""
        query: StreamingQuery | None = None
        try:
            references = sorted({r for store in self._spec.stores() for r in store.references()})
            self._secrets = self._driver.client.resolve_secrets(references)
            digests = sorted({f.digest for f in self._spec.functions})
            texts = self._driver.client.function_sources(digests)
            register(self._spark, self._spec.functions, texts, self._driver.work_dir / "jars")
            started = run_query.start(
                self._spark, self._spec, self._connect, self._driver.slots, self._secrets
            )
            query = started.query
            while query.isActive and not self._reader.stopped and not self._driver.stop_asked:
                self._reader.beat()
                time.sleep(_LOOK)
            self._report_failure(query)
        except (Fenced, NotKnown, ApiUnreachable):
            _LOG.info("a SELECT ended before it began: nobody waits for it")
        except Exception as error:
            self._reader.send([], self._problem(error))
        finally:
            self._clear(query)

    def _report_failure(self, query: StreamingQuery) -> None:
        if self._reader.stopped or query.isActive:
            return
        java: Any = query._jsq.exception()
        if self._reader.error is not None:
            problem = self._problem(self._reader.error)
        elif java.isDefined():
            problem = self._classified(chain_of(java.get()))
        else:
            problem = dict(Failure("job-failed", "The SELECT ended, although nobody stopped it.").as_json())
        self._reader.send([], problem)

    def _problem(self, error: BaseException) -> dict[str, Any]:
        if isinstance(error, LeatstreamError):
            return {"code": error.code, "detail": error.detail}
        return self._classified(chain_of(error))

    def _classified(self, chain: Sequence[Link]) -> dict[str, Any]:
        return with_record_faults(classify(chain, self._spec), self._spec, self._connect).as_json()

    def _clear(self, query: StreamingQuery | None) -> None:
        self._reader.stopped = True
        try:
            if query is not None:
                stop(self._spark, query)
        except Exception as error:
            # What cannot be stopped must not go on under the next one.
            _LOG.warning("a SELECT did not stop in order (%s); the driver ends", type(error).__name__)
            self._driver.stop_asked = True
        self._reader.quit()
        shutil.rmtree(self._place, ignore_errors=True)

    def _connect(self, store: StoreRef) -> Connector:
        if store.kind == READER_KIND:
            reader: Any = self._reader
            return reader  # type: ignore[no-any-return]
        secrets = {path: self._secrets[reference] for path, reference in store.secrets.items()}
        return open_connector(store.kind, store.name, store.config, secrets)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else bytes(value).decode()
