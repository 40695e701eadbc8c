"""The real server, uvicorn, over a world in memory: for what an in-process client cannot show."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from deadlines import patient

from leatstream import http_server
from leatstream.rest.app import create_app


@contextmanager
def serving(world: Any, **options: Any) -> Iterator[str]:
    """The URL of a server on a free port; it has ended when this ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(http_server.config(create_app(world.env), log_level="warning", **options))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)
    listener.close()
    assert not thread.is_alive()


def eventually(condition: Callable[[], Any], seconds: float = 10.0) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + patient(seconds)
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
