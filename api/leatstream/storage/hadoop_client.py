"""Hadoop's own client, in a JVM beside the server: there is none in Python that knows its clusters' settings.

The JVM is started when somebody asks, answers over Py4J on the loopback address to who knows its password,
and ends when nobody has asked for a while, or with the server. It has the jars of PySpark and the settings of
HADOOP_CONF_DIR, as the drivers have.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeVar

from leatstream.errors import CheckpointError, sentence

T = TypeVar("T")

_OURS = "LEATSTREAM_"
_FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_START_SECONDS = 60.0
_IDLE_SECONDS = 60.0
_AWAY_SECONDS = 5.0
_LIMIT = 300
# What a retry does not mend: rights, quotas, jars and settings that are missing, addresses that are none.
_REFUSALS = (
    "AccessControlException",
    "AccessDeniedException",
    "ClassNotFoundException",
    "CredentialInitializationException",
    "IllegalArgumentException",
    "InvalidPathException",
    "NoAuthWithAWSException",
    "NSQuotaExceededException",
    "DSQuotaExceededException",
    "UnknownStoreException",
    "UnsupportedFileSystemException",
    "UnsupportedOperationException",
)


@dataclass(slots=True)
class _Jvm:
    """A JVM, with a gateway for each patience that somebody has with it."""

    process: subprocess.Popen[bytes]
    port: int
    password: str
    gateways: dict[float, tuple[Any, Any]] = field(default_factory=dict)


class HadoopClient:
    """Has things done by Hadoop's Java classes.

    Args:
        environment: of the JVM: JAVA_HOME, HADOOP_CONF_DIR and what file systems read, such as AWS_PROFILE.
        settings: of Hadoop, which go before those of HADOOP_CONF_DIR.
    """

    def __init__(self, environment: Mapping[str, str], settings: Mapping[str, str]) -> None:
        self._environment = {k: v for k, v in environment.items() if not k.startswith(_OURS)}
        self._settings = dict(settings)
        self._lock = threading.Lock()
        self._jvm: _Jvm | None = None
        self._asking = 0
        self._idle: threading.Timer | None = None
        self._away: tuple[float, str] = (0.0, "")

    def ask(self, work: Callable[[Any, Any], T], seconds: float) -> T:
        """Have something done.

        Args:
            work: is given the view of the JVM and Hadoop's configuration, and calls them only.
            seconds: how long each single call may take. A JVM that has not answered by then is ended, with
                what others ask it.

        Raises:
            FileNotFoundError: as Java says.
            CheckpointError: checkpoints-unreachable or checkpoints-refused. After the former everybody is
                given the same answer for some seconds, so that many do not wait for the same thing in turn.
        """
        from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]

        until, why = self._away
        if time.monotonic() < until:
            raise CheckpointError("checkpoints-unreachable", why)
        jvm = self._enter()
        try:
            return work(*self._gateway(jvm, seconds))
        except Py4JJavaError as error:
            raise self._told(error.java_exception) from None
        except (Py4JError, OSError):
            self._end(jvm)
            raise self._unreachable(
                f"the JVM that asks for them has ended, or did not answer within {seconds:g} seconds"
            ) from None
        finally:
            self._leave()

    def close(self) -> None:
        """End the JVM, if there is one."""
        with self._lock:
            jvm = self._jvm
        if jvm is not None:
            self._end(jvm)

    def _enter(self) -> _Jvm:
        with self._lock:
            if self._idle is not None:
                self._idle.cancel()
                self._idle = None
            if self._jvm is not None and self._jvm.process.poll() is not None:
                _finish(self._jvm)
                self._jvm = None
            if self._jvm is None:
                self._jvm = self._start()
            self._asking += 1
            return self._jvm

    def _leave(self) -> None:
        with self._lock:
            self._asking -= 1
            if self._asking == 0 and self._jvm is not None:
                self._idle = threading.Timer(_IDLE_SECONDS, self._end_idle, (self._jvm,))
                self._idle.daemon = True
                self._idle.start()

    def _end_idle(self, jvm: _Jvm) -> None:
        with self._lock:
            if self._asking or self._jvm is not jvm:
                return
            self._jvm = None  # with the same look: who asks from now on starts another
        _finish(jvm)

    def _end(self, jvm: _Jvm) -> None:
        with self._lock:
            if self._jvm is jvm:
                self._jvm = None
        _finish(jvm)

    def _start(self) -> _Jvm:
        # Py4J complains of every object that a JVM which has ended does not give back.
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        java = (
            Path(self._environment["JAVA_HOME"], "bin", "java")
            if "JAVA_HOME" in self._environment
            else "java"
        )
        argv = [str(java), *_FLAGS, "-cp", self._class_path(), "py4j.GatewayServer"]
        argv += ["--die-on-broken-pipe", "--enable-auth", "0"]
        with tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=self._environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise _refused(f"Java cannot be started: {error.strerror or error}") from None
            late = threading.Timer(_START_SECONDS, process.kill)
            late.start()
            lines = [process.stdout.readline() if process.stdout else b"" for _ in range(2)]
            late.cancel()
            if not lines[1].strip():
                process.kill()
                process.wait()
                raise _refused(f"the JVM for their file system did not start: {_complaint(errors)}")
        return _Jvm(process, int(lines[0]), lines[1].strip().decode())

    def _class_path(self) -> str:
        found = importlib.util.find_spec("pyspark")
        if found is None or found.origin is None:
            raise _refused("PySpark, whose jars reach their file system, is not installed beside the server")
        # As Spark's own start puts them together for the drivers.
        jars, variable = str(Path(found.origin).parent / "jars" / "*"), self._environment.get
        parts = (
            variable("HADOOP_CONF_DIR"),
            variable("YARN_CONF_DIR"),
            jars,
            variable("SPARK_DIST_CLASSPATH"),
        )
        return os.pathsep.join(part for part in parts if part)

    def _gateway(self, jvm: _Jvm, seconds: float) -> tuple[Any, Any]:
        """The view of the JVM, and Hadoop's configuration."""
        from py4j.java_gateway import GatewayParameters, JavaGateway  # type: ignore[import-untyped]

        with self._lock:
            if seconds not in jvm.gateways:
                known = GatewayParameters(
                    address="127.0.0.1",
                    port=jvm.port,
                    auth_token=jvm.password,
                    auto_convert=True,
                    read_timeout=seconds,
                )
                gateway = JavaGateway(gateway_parameters=known)
                conf = getattr(gateway.jvm, "org.apache.hadoop.conf.Configuration")()
                for key, value in self._settings.items():
                    conf.set(key, value)
                jvm.gateways[seconds] = gateway, conf
            gateway, conf = jvm.gateways[seconds]
        return gateway.jvm, conf

    def _told(self, java: Any) -> OSError | CheckpointError:
        """What an exception of Java's means."""
        name, text = str(java.getClass().getName()), str(java.getMessage() or "")
        if name.endswith(".RemoteException"):
            name = str(java.getClassName())  # of what the server has met
        short = name.rsplit(".", 1)[-1].rsplit("$", 1)[-1]
        if short == "FileNotFoundException":
            return FileNotFoundError(2, "it is not there", _sentence(text))
        if short in _REFUSALS or any(f"{refusal}:" in text for refusal in _REFUSALS):
            return _refused(f"{short}: {_sentence(text)}")
        return self._unreachable(f"{short}: {_sentence(text)}")

    def _unreachable(self, why: str) -> CheckpointError:
        detail = sentence(f"The checkpoints cannot be reached: {why}")
        self._away = time.monotonic() + _AWAY_SECONDS, detail
        return CheckpointError("checkpoints-unreachable", detail)


def _finish(jvm: _Jvm) -> None:
    """End it at once: whatever it does may be left undone."""
    jvm.process.kill()
    jvm.process.wait()
    for pipe in (jvm.process.stdin, jvm.process.stdout):
        if pipe is not None:
            pipe.close()
    for gateway, _ in jvm.gateways.values():
        gateway.close()


def _refused(why: str) -> CheckpointError:
    return CheckpointError("checkpoints-refused", sentence(f"The checkpoints' file system refuses: {why}"))


def _sentence(text: str) -> str:
    """The first line of a message, without the advice that Hadoop adds to it."""
    line = (text.strip().splitlines() or ["no reason was given"])[0].split("; For more details see")[0]
    return line if len(line) <= _LIMIT else line[: _LIMIT - 1] + "…"


def _complaint(errors: IO[bytes]) -> str:
    """Why a JVM did not start, in its own words."""
    errors.seek(0)
    lines = errors.read(10_000).decode(errors="replace").splitlines()
    reasons = [line.strip() for line in lines if line.strip() and not line.startswith("Picked up ")]
    return _sentence("; ".join(reasons[:3])) if reasons else "it gave no reason"
