"""Serves an ASGI application from a thread of this process."""

from __future__ import annotations

import errno
import logging
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leatstream import http_server
from leatstream.dev import ports
from leatstream.errors import StackError

if TYPE_CHECKING:
    import uvicorn

STOP_TIMEOUT = 10.0  # seconds for open requests, such as long polls, to end


def listen(port: int, host: str = ports.LOOPBACK, other: str = "--port") -> socket.socket:
    """Take a port before anything slow starts, so that a taken one is reported at once.

    Args:
        port: 0 = any free one.
        host: address to listen on, of IPv4 or IPv6; ``::`` takes both.
        other: what sets another port, for the hint.

    Raises:
        StackError: ``port-taken`` naming the port and, where the system shows it, who has it; ``part-failed``
            for a host that is none of this machine's.
    """
    family, address = _address(host, port)
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # asyncio does this for sockets of its own only; without it every answer waits 40 ms for the client's ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(host != "::"))
    try:
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise _no_address(host, error) from error
        holder = ports.holder(port)
        by = f" by {holder}" if holder else f" ({error.strerror})"
        raise StackError(
            "port-taken",
            f"Port {port} on {host} is taken{by}, so the API cannot listen there.",
            hint=f"Choose another with {other}; 0 takes any free one.",
        ) from error
    return listener


def _address(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    try:
        found = socket.getaddrinfo(
            host or None,
            port,
            socket.AF_UNSPEC if host else socket.AF_INET,
            socket.SOCK_STREAM,
            flags=socket.AI_PASSIVE,
        )
    except OSError as error:
        raise _no_address(host, error) from error
    # A name may stand for both; what reaches the server by IPv4 shall go on doing so.
    found.sort(key=lambda one: one[0] != socket.AF_INET)
    return found[0][0], found[0][4]


def _no_address(host: str, error: OSError) -> StackError:
    return StackError("part-failed", f"The API cannot listen on {host!r}: {error.strerror}.")


class ApiServer:
    """One uvicorn server in a thread."""

    def __init__(self, app: Any, listener: socket.socket, log_file: Path) -> None:
        """Describe it.

        Args:
            app: the ASGI application.
            listener: a bound socket; closed at the end.
            log_file: uvicorn's own messages go there, not to the terminal.
        """
        self._app = app
        self._listener = listener
        self._log_file = log_file
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def start(self, timeout: float = 60.0) -> None:
        """Start and wait until the application's start-up is done.

        Raises:
            StackError: ``part-failed`` when it ends or takes longer than ``timeout`` seconds.
        """
        import uvicorn

        _log_to(self._log_file)
        config = http_server.config(
            self._app,
            log_config=None,
            lifespan="on",
            timeout_graceful_shutdown=int(STOP_TIMEOUT / 2),
        )
        server = self._server = uvicorn.Server(config)
        run = {"sockets": [self._listener]}
        self._thread = threading.Thread(target=server.run, kwargs=run, name="api", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + timeout
        while not server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                self.stop()
                raise StackError("part-failed", f"The API did not start; see {self._log_file}.")
            time.sleep(0.02)

    @property
    def running(self) -> bool:
        """Whether it serves."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """End it; open requests get a few seconds. May be called twice."""
        server, thread = self._server, self._thread
        self._server = self._thread = None
        if server is not None:
            server.should_exit = True
        if thread is not None:
            thread.join(STOP_TIMEOUT)
        self._listener.close()


def _log_to(log_file: Path) -> None:
    log_file.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(log_file, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    uvicorns, ours = logging.getLogger("uvicorn"), logging.getLogger("leatstream")
    for logger in (uvicorns, ours):
        for old in logger.handlers[:]:
            logger.removeHandler(old)
            old.close()
        logger.addHandler(handler)
    uvicorns.setLevel(logging.INFO)
    uvicorns.propagate = False
    if logging.lastResort is not None:
        ours.addHandler(logging.lastResort)  # which Python takes only where there is no other: the terminal
