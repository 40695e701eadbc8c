"""Driver processes of this machine: how one is started, recognised and ended (a ``ports.Launcher``)."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from leatstream.engine.driver_account import DriverAccount
from leatstream.engine.driver_environment import passed
from leatstream.engine.memory import heap_of
from leatstream.errors import EngineError, sentence

# In the environment of a driver and of all that it starts.
DRIVER_MARK = "LEATSTREAM_DRIVER_ID"
_LOGS_KEPT = 40
LOG_BYTES = 64 * 2**20  # that a driver's log may have before all but its end is dropped
_LOG_END = 2**20


@dataclass(frozen=True, slots=True)
class DriverCommand:
    """How drivers are started.

    Attributes:
        url_file: file that holds the API's address.
        work_dir: scratch directory; tokens wait here (0600) until the driver has read them.
        log_dir: one log file per driver.
        environment: of the process: Java, jars, JVM options. No secrets.
        cluster: more of it for drivers that run queries: where their executors are.
        slots: task slots.
        warm_up_kafka: bootstrap servers of a broker to warm up against, or None.
        orphan_seconds: how long a driver continues without the API.
        stop_seconds: how long a driver may take to end in order.
        inherited: names of the server's variables that drivers get besides those of the allow list.
        shared, dedicated: what the environment of such a driver has instead.
        launcher: its name in the settings.
        account: that drivers run as; None = the server's own.
    """

    url_file: Path
    work_dir: Path
    log_dir: Path
    environment: Mapping[str, str]
    slots: int
    warm_up_kafka: str | None = None
    orphan_seconds: float = 120.0
    stop_seconds: float = 0.0
    cluster: Mapping[str, str] = field(default_factory=dict)
    shared: Mapping[str, str] = field(default_factory=dict)
    inherited: Sequence[str] = ()
    dedicated: Mapping[str, str] = field(default_factory=dict)
    launcher: str = "local"
    account: DriverAccount | None = None

    def heap(self, role: str) -> int | None:
        """Bytes of a driver's heap; None where Spark's own default holds."""
        return heap_of(self._environment(role))

    def _environment(self, role: str) -> dict[str, str]:
        own = {"shared": self.shared, "dedicated": self.dedicated}
        return {**self.environment, **own.get(role, {})}

    def start(self, driver_id: str, role: str, token: str) -> subprocess.Popen[bytes]:
        """Start a driver in a process group of its own; it outlives this process on purpose."""
        for directory in (self.work_dir, self.log_dir):
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        token_file = self._write_token(driver_id, token)
        argv = [sys.executable, "-m", "leatstream_jobs", "--driver-id", driver_id, "--role", role]
        argv += ["--url-file", str(self.url_file), "--token-file", str(token_file)]
        argv += ["--slots", str(self.slots), "--work-dir", str(self.work_dir / driver_id)]
        argv += ["--orphan-seconds", str(self.orphan_seconds), "--stop-seconds", str(self.stop_seconds)]
        if self.warm_up_kafka:
            argv += ["--warm-up-kafka", self.warm_up_kafka]
        environment = passed(os.environ, self.inherited)
        environment |= {**self._environment(role), DRIVER_MARK: driver_id}
        if self.account is not None:
            environment |= self.account.variables(self.work_dir / driver_id)
        if role != "analyzer":  # it reads no data
            environment |= self.cluster
        with (self.log_dir / f"{driver_id}.log").open("ab") as log:
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
                **(self.account.starting() if self.account is not None else {}),
            )

    def _write_token(self, driver_id: str, token: str) -> Path:
        """The file of the token. The driver deletes it: with an account it lies in the driver's directory."""
        place = self.work_dir / f"{driver_id}.token"
        if self.account is not None:
            # Others may pass, and list nothing.
            self.work_dir.chmod(0o711)
            (self.work_dir / driver_id).mkdir(mode=0o700)
            place = self.work_dir / driver_id / "token"
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(token)
        if self.account is not None:
            self.account.give(place)
            self.account.give(place.parent)
        return place


class LocalLauncher:
    """Drivers as processes of this machine; their executors may be on a cluster."""

    def __init__(self, command: DriverCommand) -> None:
        self._command = command
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def for_one_query(self) -> bool:
        """No: all have the rights of one account."""
        return False

    def start(self, driver_id: str, role: str, token: str, query_id: str | None = None) -> int:
        """Start one; it outlives this process on purpose."""
        try:
            process = self._command.start(driver_id, role, token)
        except OSError as error:
            # It is tried again soon, under another id: nothing of this one may stay, least of all its token.
            self.clear(driver_id)
            with contextlib.suppress(OSError):
                (self._command.log_dir / f"{driver_id}.log").unlink()
            raise EngineError(
                "engine-unavailable", sentence(f"No driver could be started: {error.strerror or error}")
            ) from None
        self._children[driver_id] = process
        return process.pid

    def is_alive(self, driver_id: str, pid: int) -> bool:
        """Whether its process exists; the end of a child is taken down."""
        child = self._children.get(driver_id)
        return child.poll() is None if child is not None else is_running(driver_id, pid)

    def place(self, driver_id: str, role: str) -> dict[str, Any]:
        """On this machine."""
        host, heap = socket.gethostname(), self._command.heap(role)
        return {"launcher": self._command.launcher, "host": host, "heap_limit_bytes": heap}

    def ask_to_end(self, driver_id: str, pid: int, grace: float) -> None:
        """Tell the process to end in order; nothing is waited for."""
        if self.is_alive(driver_id, pid):
            with contextlib.suppress(psutil.Error):
                psutil.Process(pid).terminate()

    def end(self, driver_id: str, pid: int, grace: float) -> None:
        """End the process and everything it started; returns when all have ended."""
        child = self._children.get(driver_id)
        if child is not None and grace == 0:
            child.kill()  # also a child so young that its environment cannot be read yet
        end_driver(driver_id, pid, grace)
        if child is not None:
            child.kill()
            child.wait()

    def clear(self, driver_id: str) -> None:
        """Remove its scratch directory, a token that it did not read, and the oldest logs."""
        self._children.pop(driver_id, None)
        work_dir = self._command.work_dir
        shutil.rmtree(work_dir / driver_id, ignore_errors=True)
        (work_dir / f"{driver_id}.token").unlink(missing_ok=True)
        forget_logs(self._command.log_dir, self._may_live)

    def end_strangers(self, known: Collection[str]) -> None:
        """By what lies in the work directory, which is this server's alone."""
        work_dir = self._command.work_dir
        for driver_id in sorted({path.stem for path in work_dir.glob("drv_*")} - set(known)):
            end_driver(driver_id, 0, 0)
            self.clear(driver_id)

    def _may_live(self, driver_id: str) -> bool:
        """Whether it was not removed: its token or its work directory exists."""
        work_dir = self._command.work_dir
        return (work_dir / driver_id).exists() or (work_dir / f"{driver_id}.token").exists()

    def bound_log(self, driver_id: str) -> None:
        """Drop all but the end of a log that has become too large."""
        with contextlib.suppress(OSError):  # there is none, or the next look finds it better
            shorten_log(self._command.log_dir / f"{driver_id}.log")

    def log(self, driver_id: str) -> str:
        """Its log file's text."""
        return read_log(self._command.log_dir, driver_id)


def read_log(log_dir: Path, driver_id: str) -> str:
    """The text of a driver's log file; empty if there is none."""
    try:
        return (log_dir / f"{driver_id}.log").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def forget_logs(log_dir: Path, lives: Callable[[str], bool] = lambda _: False) -> None:
    """Remove all but the newest logs of drivers that do not live."""
    dead = [path for path in log_dir.glob("drv_*.log") if not lives(path.stem)]
    for old in sorted(dead, key=_changed_at)[:-_LOGS_KEPT]:
        old.unlink(missing_ok=True)


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # somebody else was faster
        return 0.0


def shorten_log(path: Path) -> None:
    """Leave the end of a log that is too large: a function of a user may print a line for each record.

    Writers append, and continue after what is left; a line written just now may be lost.
    """
    size = path.stat().st_size
    if size <= LOG_BYTES:
        return
    with path.open("rb") as old:
        old.seek(size - _LOG_END)
        _, _, end = old.read(_LOG_END).partition(b"\n")
    os.truncate(path, 0)
    with path.open("ab") as log:
        log.write(f"What stood here is gone: the log was larger than {LOG_BYTES} bytes.\n".encode() + end)


def is_running(driver_id: str, pid: int) -> bool:
    """Whether the process of this pid is this driver, and not one that took the number over after it."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and _belongs(process, driver_id)
    except psutil.Error:
        return False


def end_driver(driver_id: str, pid: int, grace: float) -> None:
    """End a driver and everything it started; returns when all have ended.

    Its processes are known by a mark in their environment, which its JVM and workers inherit. So the JVM is
    ended even where the driver itself is already dead, and nothing else is.
    """
    members = _members(driver_id)
    if grace > 0 and members:
        with contextlib.suppress(psutil.Error):
            psutil.Process(pid).terminate()
        psutil.wait_procs(members, timeout=grace)
        members = _members(driver_id)
    for member in members:
        with contextlib.suppress(psutil.Error):
            member.kill()
    psutil.wait_procs(members, timeout=10)


def _members(driver_id: str) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and _belongs(process, driver_id):
                found.append(process)
    return found


def _belongs(process: psutil.Process, driver_id: str) -> bool:
    return process.environ().get(DRIVER_MARK) == driver_id
