"""A local Kinesis for the embedded stack: moto's server in a process of its own.

It speaks Kinesis' API and keeps its streams in memory: they are gone when it ends.
"""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leatstream.dev import ports
from leatstream.dev.child import Child
from leatstream.errors import StackError

if TYPE_CHECKING:
    from werkzeug.serving import BaseWSGIServer

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


class OneAtATime:
    """A WSGI application that answers one request after the other, however many come at once.

    moto numbers records without a lock: of two put into a shard at once, one could overwrite the other.
    """

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        """Stand before an application."""
        self._application = application
        self._turn = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request in its turn."""
        length = environ.get("CONTENT_LENGTH")
        if length:
            # Whose body is late, or never comes, holds nobody else up.
            environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(int(length)))
        with self._turn:
            answer = self._application(environ, start_response)
            try:
                return list(answer)
            finally:
                if hasattr(answer, "close"):
                    answer.close()


def aws_server(port: int) -> BaseWSGIServer:
    """A server of moto on a port, or a free one for 0; it serves once ``serve_forever`` is called."""
    import logging

    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server

    # A line for every request would fill the disk of a long run.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = OneAtATime(DomainDispatcherApplication(create_backend_app))
    return make_server(ports.LOOPBACK, port, application, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    aws_server(int(sys.argv[1])).serve_forever()
