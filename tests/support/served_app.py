"""An ASGI application behind uvicorn on a free port of this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from leatstream import http_server


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve it; gives the URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(http_server.config(app, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
    assert not thread.is_alive()
