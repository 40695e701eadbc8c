"""A local Kinesis for the embedded stack: moto's server in a process of its own.

It speaks Kinesis' API and keeps its streams in memory: they are gone when it ends.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from leatstream.dev import ports
from leatstream.dev.child import Child
from leatstream.errors import StackError

REGION = "us-east-1"
#: moto takes any key; it is no secret.
ACCESS_KEY_ID = "LOCAL"
SECRET_ACCESS_KEY = "local"  # noqa: S105
START_TIMEOUT = 60.0
PORT_ATTEMPTS = 3


class LocalKinesis:
    """One server on a free port; ends with this process, also after ``kill -9``."""

    def __init__(self, log_file: Path) -> None:
        """Describe it; nothing happens before ``start``."""
        self._log_file = log_file
        self._child: Child | None = None
        self._port: int | None = None

    @property
    def endpoint(self) -> str:
        """The address for ``endpoint_url``.

        Raises:
            RuntimeError: not started.
        """
        if self._port is None:
            raise RuntimeError("the local Kinesis is not started")
        return f"http://{ports.LOOPBACK}:{self._port}"

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self._child is not None and self._child.exit_status is None

    def start(self, timeout: float = START_TIMEOUT) -> None:
        """Start and wait until it answers.

        Args:
            timeout: seconds for each attempt.

        Raises:
            StackError: ``tool-missing`` without moto, ``part-failed`` when it does not come up.
        """
        for _ in range(PORT_ATTEMPTS):
            (port,) = ports.free_ports(1)
            self._child = Child([sys.executable, "-m", __name__, str(port)], self._log_file)
            deadline = time.monotonic() + timeout
            while self.running and time.monotonic() < deadline:
                if ports.answers(port):
                    self._port = port
                    return
                time.sleep(0.05)
            self.stop()
        raise StackError(
            "part-failed",
            f"The local Kinesis did not start; its log is {self._log_file}.",
            hint="pip install 'leatstream[dev]' brings moto, which it is made of.",
        )

    def stop(self) -> None:
        """End it. May be called twice."""
        if self._child is not None:
            self._child.stop()


def main(port: int) -> None:
    """Serve until this process is ended."""
    import logging

    from moto.server import ThreadedMotoServer

    # A line for every request would fill the disk of a long run.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    ThreadedMotoServer(ip_address=ports.LOOPBACK, port=port, verbose=False).start()
    threading.Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]))
