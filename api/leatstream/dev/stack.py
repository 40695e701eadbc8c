"""The embedded stack, whole: libraries, Kafka, catalog and API, a warm Spark driver, sample data.

What the API is made of is not known here (this package lies below ``bootstrap``): the caller hands in a
function that builds it. ``DevStack.run`` starts the parts in order, shows each, and ends them in the
opposite order, whenever the end comes.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from leatstream.dev import jars, ports
from leatstream.dev.api_server import ApiServer, listen
from leatstream.dev.broker import Broker, serves_metadata
from leatstream.dev.closing_words import closing_words
from leatstream.dev.display import Display
from leatstream.dev.java import Java, find_java
from leatstream.dev.kinesis_samples import KinesisOutlet
from leatstream.dev.local_server import LocalServer
from leatstream.dev.local_stores import LOCAL_STORES, local_store
from leatstream.dev.ready_file import READY_FILE
from leatstream.dev.samples import PAGEVIEWS, SampleOptions, SampleProducer
from leatstream.dev.signals import Ended, Signals
from leatstream.dev.workspace import Workspace, write_private
from leatstream.errors import StackError
from leatstream.model.extras import install_extra

WARM_TIMEOUT = 180.0  # seconds; a cold Spark on a loaded machine takes a minute
KAFKA_ANSWER_TIMEOUT = 15.0
WATCH_INTERVAL = 0.5
TUTORIAL_USERS = "ds_users"  # as the tutorial over several stores names it


@dataclass(frozen=True, slots=True)
class DevOptions:
    """What to start and where.

    Attributes:
        data_dir: catalog, topics, checkpoints, logs.
        ephemeral: use a temporary directory instead and remove it at the end.
        port: of the API; 0 = any free one.
        host: address the API listens on.
        kafka_bootstrap: use this cluster and start no broker.
        kafka_port: of the embedded broker; 0 = that of the last run, else any free one.
        sample: produce sample records.
        sample_options: how many.
        stores: local stores to start too: ``kinesis``, with page views in it, ``iceberg``, ``clickhouse``.
        ready_file: where to write ``{url, token, kafka_bootstrap, pid}`` when all is up, and
            ``<store>_endpoint`` for each local store.
        log_dir: default ``<data_dir>/logs``.
    """

    data_dir: Path = Path(".leatstream")
    ephemeral: bool = False
    port: int = 8585
    host: str = ports.LOOPBACK
    kafka_bootstrap: str | None = None
    kafka_port: int = 0
    sample: bool = True
    sample_options: SampleOptions = field(default_factory=SampleOptions)
    stores: tuple[str, ...] = ()
    ready_file: Path | None = None
    log_dir: Path | None = None


@dataclass(frozen=True, slots=True)
class DevSettings:
    """What the API's builder receives about the stack it runs in.

    Attributes:
        url: the API's own base URL; its socket already listens.
        data_dir: directory for the catalog's file, checkpoints and the rest; exists.
        log_dir: for log files; exists.
        kafka_bootstrap: ``host:port`` of a broker that answers.
        spark_jars: absolute paths for ``spark.jars``.
        java: for ``java_environment``.
        ephemeral: whether ``data_dir`` is removed at the end.
        stores: addresses of the local stores.
    """

    url: str
    data_dir: Path
    log_dir: Path
    kafka_bootstrap: str
    spark_jars: tuple[Path, ...]
    java: Java
    ephemeral: bool
    stores: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServedApp:
    """What the API's builder gives back.

    Attributes:
        asgi: the application.
        token: bearer token for the one who started the stack.
        wait_warm: waits at most so many seconds until a driver is warm; raises LeatstreamError otherwise.
        shutdown: ends drivers and whatever else the builder started; called while the API still answers.
    """

    asgi: Any
    token: str = field(repr=False)
    wait_warm: Callable[[float], None]
    shutdown: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Started:
    """What is up: what must keep running, by name; what it was built with; the starter's token."""

    watched: dict[str, Callable[[], bool]]
    settings: DevSettings
    token: str = field(repr=False)


class DevStack:
    """One run of the embedded stack."""

    def __init__(
        self,
        options: DevOptions,
        app_factory: Callable[[DevSettings], ServedApp],
        display: Display | None = None,
    ) -> None:
        """Describe it; nothing happens before ``run``.

        Args:
            options: what to start.
            app_factory: builds the API once everything it needs is up.
            display: where to show progress; standard error when not given.
        """
        self._options = options
        self._app_factory = app_factory
        self._display = display or Display()

    def run(self) -> int:
        """Start all, wait for SIGINT, SIGTERM or SIGHUP, end all. Call it in the main thread.

        Returns:
            0 when it ran until a signal; 128 + signal when that came during the start.

        Raises:
            StackError: a part cannot start, or ended by itself; everything else has been ended.
        """
        up = False
        with Signals() as signals, ExitStack() as parts:
            try:
                started = self._start(parts, signals)
                up = True  # before anybody knows of it, who may end it at once
                self._announce(parts, started)
                _watch(started.watched)
            except Ended as ended:
                self._say("Stopping." if up else "Interrupted; ending what was started.")
                return 0 if up else 128 + ended.number
            finally:
                signals.ignore()  # leaving the ExitStack ends the parts, and nothing may cut that short
        raise AssertionError("unreachable: watching ends by an exception")

    def _start(self, parts: ExitStack, signals: Signals) -> _Started:
        """Start every part and leave its end in ``parts``."""
        options = self._options
        workspace = Workspace(None if options.ephemeral else options.data_dir)
        parts.callback(workspace.release)
        workspace.acquire()
        if options.ready_file is not None:
            options.ready_file.unlink(missing_ok=True)  # of a killed one; it would look like this one's
        log_dir = (options.log_dir or workspace.path / "logs").resolve()
        log_dir.mkdir(parents=True, exist_ok=True)
        listener = parts.enter_context(contextlib.closing(listen(options.port, options.host)))
        url = f"http://{options.host}:{listener.getsockname()[1]}"
        workspace.publish(url=url)
        watched: dict[str, Callable[[], bool]] = {}
        with self._display as display:
            java = _need_java()
            for name in options.stores:
                LOCAL_STORES[name].require()
            spark_jars = self._libraries()
            kafka = self._kafka(parts, workspace.path / "kafka", log_dir / "kafka.log", watched)
            stores = {
                name: self._store(parts, local_store(name, workspace.path, log_dir), watched)
                for name in options.stores
            }
            settings = DevSettings(
                url, workspace.path, log_dir, kafka, tuple(spark_jars), java, options.ephemeral, stores
            )
            with display.part("Catalog and API") as note:
                with signals.held_back():  # half-built, it could not be ended
                    app = self._app_factory(settings)
                    server = ApiServer(app.asgi, listener, log_dir / "api.log")
                    parts.callback(server.stop)
                    parts.callback(app.shutdown)
                server.start()
                watched["The API"] = lambda: server.running
                note(url)
            self._sample(parts, kafka, stores.get("kinesis"))
            with display.part("Spark driver") as note:
                app.wait_warm(WARM_TIMEOUT)
                note("warm")
        return _Started(watched, settings, app.token)

    def _libraries(self) -> list[Path]:
        with self._display.part("Libraries") as note:

            def progress(done: int, wanted: int) -> None:
                note(f"downloading, {done} of {wanted}")

            found = jars.spark_jars(progress)
            if self._options.kafka_bootstrap is None:
                found_for_kafka = jars.broker_jars(progress)
                note(f"{len(found) + len(found_for_kafka)} files, verified")
            return found

    def _kafka(
        self, parts: ExitStack, data_dir: Path, log_file: Path, watched: dict[str, Callable[[], bool]]
    ) -> str:
        given = self._options.kafka_bootstrap
        with self._display.part("Kafka") as note:
            if given is not None:
                _check_given(given)
                note(f"{given}, yours")
                return given
            broker = Broker(data_dir, self._options.kafka_port, log_file)
            parts.callback(broker.stop)
            broker.start()
            watched["Kafka"] = lambda: broker.running
            note(broker.bootstrap_servers)
            return broker.bootstrap_servers

    def _store(self, parts: ExitStack, server: LocalServer, watched: dict[str, Callable[[], bool]]) -> str:
        with self._display.part(server.name) as note:
            parts.callback(server.stop)
            server.start()
            watched[server.name] = lambda: server.running
            note(server.endpoint)
            return server.endpoint

    def _sample(self, parts: ExitStack, kafka: str, kinesis: str | None) -> None:
        if not self._options.sample:
            return
        with self._display.part("Sample data") as note:
            options, outlet = self._options.sample_options, None
            where = "topics pageviews and users"
            if kinesis is not None:
                options = replace(options, users_topics=(*options.users_topics, TUTORIAL_USERS))
                outlet = KinesisOutlet(kinesis, PAGEVIEWS, options.shards)
                where += f" and {TUTORIAL_USERS}, Kinesis stream {PAGEVIEWS}"
            producer = SampleProducer(kafka, options, outlet)
            parts.callback(producer.stop)
            producer.start()
            note(f"{where}, {options.rate:g} page views a second")

    def _announce(self, parts: ExitStack, started: _Started) -> None:
        settings = started.settings
        ready = {"url": settings.url, "token": started.token, "kafka_bootstrap": settings.kafka_bootstrap}
        ready |= {f"{name}_endpoint": address for name, address in settings.stores.items()}
        ready_file = settings.data_dir / READY_FILE
        for path in filter(None, (ready_file, self._options.ready_file)):
            parts.callback(path.unlink, missing_ok=True)
            write_private(path, {**ready, "pid": os.getpid()})
        self._display.box("leatstream", closing_words(settings, ready_file, self._options.sample))

    def _say(self, text: str) -> None:
        self._display.console.print(text, markup=False)


def _watch(watched: dict[str, Callable[[], bool]]) -> NoReturn:
    while True:
        time.sleep(WATCH_INTERVAL)
        for name, alive in watched.items():
            if not alive():
                raise StackError("part-failed", f"{name} ended by itself; its log is in the logs directory.")


def _need_java() -> Java:
    java = find_java()
    if java is None:
        raise StackError(
            "tool-missing",
            "Spark and Kafka need Java 17 or newer; there is none in JAVA_HOME, on PATH or as a wheel.",
            hint=f"{install_extra('tools')}, or set JAVA_HOME to a newer one. See `leat doctor`.",
        )
    return java


def _check_given(bootstrap_servers: str) -> None:
    if not serves_metadata(bootstrap_servers, KAFKA_ANSWER_TIMEOUT):
        raise StackError(
            "part-failed",
            f"No Kafka answers at {bootstrap_servers} (waited {KAFKA_ANSWER_TIMEOUT:.0f} s).",
            hint="Is the address right and reachable without TLS or a password? "
            "Leave --kafka-bootstrap out to start a broker here.",
        )
