"""A server of the embedded stack in a process of its own: a Python module that listens on a port."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from leatstream.dev import ports
from leatstream.dev.child import Child
from leatstream.errors import StackError
from leatstream.model.extras import install_extra

START_TIMEOUT = 60.0
PORT_ATTEMPTS = 3
_PORT = "port"
_FREED = 12.0  # seconds in which the processes of a killed stack end


class LocalServer:
    """One server on the loopback address; ends with this process, also after ``kill -9``.

    Attributes:
        name: for people.
        extra: of the package, that brings what it needs.
        needs: modules without which it cannot start.
        module: run as ``python -m module PORT [DIRECTORY]``.
    """

    name: ClassVar[str]
    extra: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    module: ClassVar[str]

    def __init__(
        self, log_file: Path, directory: Path | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        """Describe it; nothing happens before ``start``.

        Args:
            log_file: takes what it prints.
            directory: holds its data and its port for the next start; None = it keeps nothing.
            env: its environment; None = that of this process.
        """
        self._log_file, self._directory, self._env = log_file, directory, env
        self._child: Child | None = None
        self._port: int | None = None

    @classmethod
    def require(cls) -> None:
        """See that what it needs is installed.

        Raises:
            StackError: ``tool-missing`` with the extra to install.
        """
        missing = [one for one in cls.needs if importlib.util.find_spec(one) is None]
        if missing:
            raise StackError(
                "tool-missing",
                f"The local {cls.name} needs {' and '.join(missing)}, which is not installed here.",
                hint=install_extra(cls.extra),
            )

    @property
    def port(self) -> int:
        """Where it listens.

        Raises:
            RuntimeError: not started.
        """
        if self._port is None:
            raise RuntimeError(f"the local {self.name} is not started")
        return self._port

    @property
    def endpoint(self) -> str:
        """Its address; RuntimeError if it is not started."""
        return f"http://{ports.LOOPBACK}:{self.port}"

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self._child is not None and self._child.exit_status is None

    def start(self, timeout: float = START_TIMEOUT) -> None:
        """Start and wait until it answers.

        Args:
            timeout: seconds for each attempt.

        Raises:
            StackError: ``tool-missing`` or ``part-failed``.
        """
        self.require()
        if self._directory is not None:
            self._directory.mkdir(parents=True, exist_ok=True)
        wanted = self._last_port()
        for _ in range(PORT_ATTEMPTS):
            port = wanted or ports.free_ports(1)[0]
            wanted = None
            arguments = [str(port), *([str(self._directory)] if self._directory else [])]
            self._child = Child(
                [sys.executable, "-m", self.module, *arguments], self._log_file, env=self._env
            )
            deadline = time.monotonic() + timeout
            while self.running and time.monotonic() < deadline:
                if ports.answers(port):
                    self._keep(port)
                    return
                time.sleep(0.05)
            self.stop()
        raise StackError(
            "part-failed",
            f"The local {self.name} did not start; its log is {self._log_file}.",
            hint=f"{install_extra(self.extra)} brings what it is made of.",
        )

    def stop(self) -> None:
        """End it. May be called twice."""
        if self._child is not None:
            self._child.stop()

    def _last_port(self) -> int | None:
        """The port of the last run, which stores and running queries know; None where it is taken."""
        if self._directory is None:
            return None
        try:
            port = int((self._directory / _PORT).read_text())
        except (OSError, ValueError):
            return None
        deadline = time.monotonic() + _FREED
        while not ports.is_free(port):
            if time.monotonic() > deadline:
                return None
            time.sleep(0.05)
        return port

    def _keep(self, port: int) -> None:
        self._port = port
        if self._directory is not None:
            (self._directory / _PORT).write_text(str(port))
