"""A local Kinesis for the embedded stack: moto's server in a process of its own.

It speaks Kinesis' API and keeps its streams in memory: they are gone when it ends.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from leatstream.dev import ports
from leatstream.dev.local_server import LocalServer

if TYPE_CHECKING:
    from werkzeug.serving import BaseWSGIServer

REGION = "us-east-1"
#: moto takes any key; it is no secret.
ACCESS_KEY_ID = "LOCAL"
SECRET_ACCESS_KEY = "local"  # noqa: S105


class LocalKinesis(LocalServer):
    """One server on a free port."""

    name = "Kinesis"
    extra = "dev"
    needs = ("moto",)
    module = __name__


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
