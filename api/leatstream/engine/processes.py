"""Driver processes of this machine: how one is started, recognised and ended."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

# In the environment of a driver and of all that it starts.
DRIVER_MARK = "LEATSTREAM_DRIVER_ID"
_OURS = "LEATSTREAM_"


@dataclass(frozen=True, slots=True)
class DriverCommand:
    """How drivers are started.

    Attributes:
        url_file: file that holds the API's address.
        work_dir: scratch directory; tokens wait here (0600) until the driver has read them.
        log_dir: one log file per driver.
        environment: of the process: Java, jars, JVM options. No secrets.
        slots: task slots.
        warm_up_kafka: bootstrap servers of a broker to warm up against, or None.
        orphan_seconds: how long a driver goes on without the API.
    """

    url_file: Path
    work_dir: Path
    log_dir: Path
    environment: Mapping[str, str]
    slots: int
    warm_up_kafka: str | None = None
    orphan_seconds: float = 120.0

    def start(self, driver_id: str, role: str, token: str) -> subprocess.Popen[bytes]:
        """Start a driver in a process group of its own; it outlives this process on purpose."""
        for directory in (self.work_dir, self.log_dir):
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        token_file = self.work_dir / f"{driver_id}.token"
        descriptor = os.open(token_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(token)
        argv = [sys.executable, "-m", "leatstream_jobs", "--driver-id", driver_id, "--role", role]
        argv += ["--url-file", str(self.url_file), "--token-file", str(token_file)]
        argv += ["--slots", str(self.slots), "--work-dir", str(self.work_dir / driver_id)]
        argv += ["--orphan-seconds", str(self.orphan_seconds)]
        if self.warm_up_kafka:
            argv += ["--warm-up-kafka", self.warm_up_kafka]
        # Our own variables may hold the catalog's address or a token; a driver gets those it needs by name.
        environment = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
        environment |= {**self.environment, DRIVER_MARK: driver_id}
        with (self.log_dir / f"{driver_id}.log").open("ab") as log:
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )


def is_running(driver_id: str, pid: int) -> bool:
    """Whether the process of this pid is this driver, and not one that took the number over after it."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and _belongs(process, driver_id)
    except psutil.Error:
        return False


def end_driver(driver_id: str, pid: int, grace: float) -> None:
    """End a driver and everything it started; returns when all is gone.

    Its processes are known by a mark in their environment, which its JVM and workers inherit: so the JVM goes
    even where the driver itself is already dead, and nothing else does.
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
