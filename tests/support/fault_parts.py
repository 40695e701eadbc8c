"""The parts of a stack that are killed and kept alive, as a supervisor would: broker, PostgreSQL, server."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import psycopg
from deadlines import patient
from leat_server import LOCAL_STORES, LeatstreamServer
from postgres_server import PostgresServer

from leatstream.dev.broker import Broker
from leatstream.dev.ports import free_ports
from leatstream.launching import SMALL_JVM
from leatstream.services.environment.authorization import mint_token

LOOK = 0.05  # seconds
START_SECONDS = 300.0
STARTS = 5  # that fail by themselves in a row, before a part is given up
AGAIN = 0.5  # seconds until the next start of one that could not, as another is away


class Part:
    """One that is started again whenever it has ended, after a pause.

    Attributes:
        name: as a fault is called.
        down_for: seconds until the next start after a kill.
    """

    name = ""

    def __init__(self) -> None:
        self.down_for = 0.0
        self._strikes = 0
        self.trouble: BaseException | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"keeps-{self.name}", daemon=True)

    def start(self) -> None:
        """Start the process and wait until it works."""
        raise NotImplementedError

    def alive(self) -> bool:
        """Whether its process is there."""
        raise NotImplementedError

    def kill(self) -> None:
        """SIGKILL."""
        raise NotImplementedError

    def open(self) -> None:
        """Start it, and keep it alive from then on."""
        self.start()
        self._thread.start()

    def strike(self, down_for: float, pick: float = 0.0) -> str:
        """Kill it, and have it stay away for so many seconds; what was done, for people.

        Args:
            down_for: seconds.
            pick: in [0, 1), chooses where there are several faults.
        """
        self.down_for = down_for
        self._strikes += 1
        self.kill()
        return "killed"

    def release(self) -> None:
        """Keep it alive no longer."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(START_SECONDS)

    def _keep(self) -> None:
        failures = 0
        while not self._over.wait(LOOK):
            if self.alive():
                continue
            self._over.wait(self.down_for)
            self.down_for, strikes = AGAIN, self._strikes
            try:
                self.start()
                failures = 0
            except BaseException as error:
                if self._strikes != strikes:  # it was killed while it started: no failure of its own
                    continue
                failures += 1
                if failures == STARTS:
                    self.trouble = error  # told by the run, which looks for it
                    return


def until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """Look until the condition holds; its value."""
    deadline = time.monotonic() + patient(seconds)
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not so within {seconds:g} s: {what}")
        time.sleep(LOOK)
    return found


class KafkaPart(Part):
    """The broker, on one port for its whole life."""

    name = "broker"

    def __init__(self, directory: Path) -> None:
        super().__init__()
        (port,) = free_ports(1)
        self._broker = Broker(directory / "kafka", port, directory / "kafka.log")
        self.address = f"127.0.0.1:{port}"

    def start(self) -> None:
        self._broker.stop()
        self._broker.start(START_SECONDS)

    def alive(self) -> bool:
        return self._broker.running

    def kill(self) -> None:
        if (pid := self._broker.pid) is not None:
            os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """End it."""
        self.release()
        self._broker.stop()


class PostgresPart(Part):
    """The PostgreSQL server with the catalog, the views and a sink."""

    name = "postgres"

    def __init__(self, server: PostgresServer) -> None:
        super().__init__()
        self._server = server
        # As pg_ctl has started it.
        self._command = shlex.split((server.directory / "data" / "postmaster.opts").read_text())
        self._child: subprocess.Popen[bytes] | None = None

    def _pid(self) -> int | None:
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int((self._server.directory / "data" / "postmaster.pid").read_text().split()[0])
        return None

    def start(self) -> None:
        until(self._up, START_SECONDS, "PostgreSQL answers")

    def _up(self) -> bool:
        if self._answers():
            return True
        # A start is refused as long as a backend of the killed one is there.
        if not self.alive() and (self._child is None or self._child.poll() is not None):
            with (self._server.directory / "again.log").open("ab") as log:
                self._child = subprocess.Popen(
                    self._command,
                    user="postgres" if os.geteuid() == 0 else None,
                    cwd=self._server.directory,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        return False

    def _answers(self) -> bool:
        with contextlib.suppress(psycopg.Error), psycopg.connect(self._server.url, connect_timeout=2):
            return True
        return False

    def alive(self) -> bool:
        pid = self._pid()
        if pid is None:
            return False
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            return process.status() != psutil.STATUS_ZOMBIE and "postgres" in process.name()
        return False

    def kill(self) -> None:
        pid = self._pid()
        if pid is None:
            return
        with contextlib.suppress(psutil.Error):
            postmaster = psutil.Process(pid)
            everyone = [postmaster, *postmaster.children(recursive=True)]
            for process in everyone:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            psutil.wait_procs(everyone, timeout=10)


class ServerPart(Part):
    """``leat serve`` on a catalog in PostgreSQL."""

    name = "api"

    def __init__(self, directory: Path, catalog: str, kafka: str, **settings: str) -> None:
        super().__init__()
        (port,) = free_ports(1)
        self._log = directory / "leat-serve.log"
        self.token = mint_token()[0]
        self.data_dir = directory / "data"
        self.url, self._kafka = f"http://127.0.0.1:{port}", kafka
        self._environment = {
            **LOCAL_STORES,
            "LEATSTREAM_CATALOG_URL": catalog,
            "LEATSTREAM_DATA_DIR": str(self.data_dir),
            "LEATSTREAM_PORT": str(port),
            "LEATSTREAM_BOOTSTRAP_TOKEN": self.token,
            "LEATSTREAM_DRIVER_JVM_OPTIONS": SMALL_JVM,
            **settings,
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """That of the newest start."""
        assert self._process is not None
        return self._process

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "leatstream.cli.main", "serve"],
                env=os.environ | self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        if self.alive():
            self.process.kill()
            self.process.wait(10)

    def ready(self) -> bool:
        """Whether it serves and has what it needs, a warm driver too."""
        return self.server.warm()

    @property
    def server(self) -> LeatstreamServer:
        """For a playground."""
        return LeatstreamServer(self.url, self.token, self._kafka, self.process, self.data_dir)

    def close(self) -> int:
        """End it in order; its exit status."""
        self.release()
        if self.alive():
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(90)
        status = self.process.poll()
        if status is None:
            self.process.send_signal(signal.SIGUSR1)  # its log tells what it does
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(2)
            self.kill()
        for process in psutil.process_iter():  # what a killed one has left
            with contextlib.suppress(psutil.Error):
                if str(self.data_dir) in " ".join(process.cmdline()):
                    process.kill()
        return -1 if status is None else status
