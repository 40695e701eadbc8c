"""The driver's life: warm up, ask for work, run a query (or analyze for ever), report, ask again or end."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leatstream_jobs.runtime.protocol import EXIT_DONE, EXIT_FENCED, ApiUnreachable, Client, Fenced, NotKnown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from leatstream.connectors.base import Connector
    from leatstream.plan.job_spec import StoreRef
    from leatstream_jobs.attempt.host import Open

_LOG = logging.getLogger("leatstream_jobs")


class LogTail(logging.Handler):
    """Keeps the driver's own lines until a heartbeat sends them."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: deque[str] = deque(maxlen=500)
        formatter = logging.Formatter("%(asctime)sZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")
        formatter.converter = time.gmtime
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line."""
        self._lines.append(self.format(record))

    def take(self) -> list[str]:
        """Every line not taken yet."""
        lines = list(self._lines)
        self._lines.clear()
        return lines

    def give_back(self, lines: list[str]) -> None:
        """Put lines back that could not be delivered."""
        self._lines.extendleft(reversed(lines))


class Driver:
    """One driver process.

    Attributes:
        client: the API.
        role: ``dedicated``, ``shared`` or ``analyzer``.
        stop_asked: set by SIGTERM; the query is then stopped in order.
        stop_seconds: how long a query may take for that, until the driver is killed.
        heartbeat_seconds, look_seconds: between two words to the API, and between two looks at Spark.
    """

    heartbeat_seconds = 1.0
    look_seconds = 0.25

    def __init__(
        self,
        client: Client,
        *,
        role: str,
        slots: int,
        work_dir: Path,
        warm_up_kafka: str | None,
        stop_seconds: float = 0.0,
    ) -> None:
        self.client = client
        self.role = role
        self.slots = slots
        self.work_dir = work_dir
        self.warm_up_kafka = warm_up_kafka
        self.stop_seconds = stop_seconds
        self.stop_asked = False
        self._working = False
        self._spark: SparkSession | None = None
        self.tail = LogTail()

    def run(self) -> int:
        """Live; returns the process's exit code."""
        _LOG.addHandler(self.tail)
        signal.signal(signal.SIGTERM, self._on_term)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._spark = self._warm()
            return self._serve(self._spark)
        except NotKnown:
            _LOG.info("the API does not know this driver any more; it ends")
            return EXIT_DONE

    def _serve(self, spark: SparkSession) -> int:
        while not self.stop_asked:
            work = self._ask("idle")
            if work is None:
                continue
            kind = work.get("kind")
            self._working = True
            if kind == "exit":
                return EXIT_DONE
            if kind == "analyze":
                self._analyze(spark, work)
            elif kind == "select":
                from leatstream_jobs.driver.selecting import Selecting

                Selecting(self, spark, work["spec"]).run()
                if has_run_users_code():
                    return EXIT_DONE
            elif kind == "run":
                code = self._run(spark, work["spec"])
                if code is not None:
                    return code
            else:
                _LOG.warning("unknown kind of work %r is passed over", kind)
            self._working = False
        return EXIT_DONE

    def _run(self, spark: SparkSession, document: Mapping[str, Any]) -> int | None:
        """Run a query to its end; None if another one may follow, else the exit code."""
        from leatstream_jobs.attempt.attempt import Attempt
        from leatstream_jobs.runtime.session import collect_garbage, own_session
        from leatstream_jobs.runtime.usage import LOOKS

        LOOKS.expire()  # the processor time of what was before is not this query's
        attempt = Attempt(self, own_session(spark), document)
        code, stays = attempt.run(), attempt.may_stay
        if not stays:
            return code
        del attempt  # it holds the session, sinks and secrets
        collect_garbage(spark)
        self.tail.take()  # lines that came after its last word
        return None

    def connector(self, store: StoreRef, secrets: Mapping[str, str], make: Open) -> Connector:
        """The connector of a store, ``secrets`` by field path; a new one each time."""
        return make(store.kind, store.name, store.config, secrets)

    def is_free(self, spark: SparkSession) -> bool:
        """Whether nothing is left of the query that has stopped."""
        from leatstream_jobs.runtime.session import free_of_queries

        return not has_run_users_code() and free_of_queries(spark)

    def cut_off(self, spark: SparkSession, _query: StreamingQuery | None) -> None:
        """No further write: the JVM is killed, not asked."""
        from leatstream_jobs.runtime.session import jvm_process

        process = jvm_process(spark)
        if process is None:
            os._exit(EXIT_FENCED)
        if process.poll() is None:
            process.kill()
            process.wait(10)

    def jvm_lost(self) -> None:
        """The attempt itself says so."""

    def _warm(self) -> SparkSession:
        from leatstream_jobs.runtime.session import start_session

        self._tell("starting Spark")
        spark = start_session(self.work_dir, self.slots, shared=self.role == "shared")
        if self.role == "analyzer":
            self._tell("warming the analyzer")
            warm_analyzer(spark)
            return spark
        if self.role == "shared":
            return spark  # it was started because queries wait for it: the first of them warms it
        from leatstream_jobs.driver.warmup import warm_up

        try:
            warm_up(spark, self.warm_up_kafka, self.work_dir, self._tell)
        except NotKnown:
            raise
        except Exception as error:
            # A cold driver still works, only slower; the query's own start will say what is really wrong.
            _LOG.warning("warming up did not finish: %s", type(error).__name__)
        return spark

    def _tell(self, message: str) -> None:
        """Report a step of warming up. Nobody waits for the answer's content."""
        with contextlib.suppress(ApiUnreachable, Fenced):
            self.client.poll(self._report("warming") | {"message": message})

    def _ask(self, state: str) -> dict[str, Any] | None:
        try:
            work = self.client.poll(self._report(state))
        except Fenced:
            raise NotKnown from None
        except ApiUnreachable:
            if self.client.contact.is_lost():
                raise NotKnown from None
            time.sleep(0.25)
            return None
        return work

    def _analyze(self, spark: SparkSession, work: dict[str, Any]) -> None:
        from leatstream_jobs.analysis.analyze import analyze

        answer = analyze(
            spark, work["views"], work["sql"], work.get("functions") or (), work.get("places") or ()
        )
        try:
            self.client.send_analysis(work["id"], answer)
        except (ApiUnreachable, Fenced, NotKnown) as error:
            # The client has disconnected; the next poll says whether this driver is still wanted.
            _LOG.info("an analysis could not be handed over: %s", error)

    def _report(self, state: str) -> dict[str, Any]:
        report = {"pid": os.getpid(), "role": self.role, "state": state}
        if self._spark is None:
            return report
        from leatstream_jobs.runtime.usage import DRIVER_USE

        return {**report, "use": DRIVER_USE.as_json(self._spark)}

    def _on_term(self, _signal: int, _frame: Any) -> None:
        self.stop_asked = True
        if not self._working:
            # Nothing is to be brought to an end: neither a Spark that starts nor a long poll is waited for.
            raise NotKnown("asked to end")


def has_run_users_code() -> bool:
    """Whether the next query would meet what such code has set: a decimal context, a module, a Java class."""
    from leatstream_jobs.functions.user_functions import has_run

    return has_run()


def warm_analyzer(spark: SparkSession) -> None:
    """Analyze the usual constructs twenty times: the first analysis takes a second, later ones 20 ms."""
    from leatstream_jobs.analysis.analyze import analyze

    ddl = "id BIGINT, name STRING, at TIMESTAMP, __leat_rowtime TIMESTAMP, __leat_rowkey BINARY"
    views = [{"name": "leat_src_0", "ddl": ddl}, {"name": "leat_src_1", "ddl": ddl}]
    statements = (
        "SELECT a.id, upper(a.name) AS name, CASE WHEN b.id > 1 THEN 'x' ELSE coalesce(b.name, '-') END AS c,"
        " CAST(a.id AS STRING) AS d, a.__leat_rowkey, a.__leat_rowtime FROM leat_src_0 a"
        " LEFT JOIN leat_src_1 b ON a.id = b.id"
        " AND b.__leat_rowtime BETWEEN a.__leat_rowtime - INTERVAL 5 MINUTES AND a.__leat_rowtime",
        "SELECT id FROM leat_src_0 WHERE name LIKE 'a%' UNION ALL SELECT length(name) FROM leat_src_1",
        "SELECT nme FROM leat_src_0",
        "SELECT id + FROM leat_src_0",
        "SELECT upper(id, 2) FROM leat_src_0",
    )
    for _ in range(4):
        for statement in statements:
            analyze(spark, views, statement)
