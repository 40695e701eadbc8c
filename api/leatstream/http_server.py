"""How uvicorn serves the API, on servers and in the embedded stack."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import uvicorn

HEADER_SECONDS = 30.0
MESSAGE_BYTES = 1024 * 1024  # of a WebSocket; more closes the connection


def config(app: Any, *, header_seconds: float = HEADER_SECONDS, **options: Any) -> uvicorn.Config:
    """A configuration that closes connections which do not send a request.

    uvicorn itself waits for the head of a request for ever, so a client without a token could hold as many
    connections as the process has file descriptors.

    Args:
        app: the ASGI application.
        header_seconds: how long the head of a request may take, from the connection or from its first byte.
        options: others of ``uvicorn.Config``.
    """
    import h11
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Protocol(H11Protocol):
        _head: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._await_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state is not h11.IDLE:
                self._stop_waiting()
            elif self._head is None:
                self._await_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _await_head(self) -> None:
            self._head = self.loop.call_later(header_seconds, self.transport.close)

        def _stop_waiting(self) -> None:
            if self._head is not None:
                self._head.cancel()
                self._head = None

    options.setdefault("ws_max_size", MESSAGE_BYTES)
    return uvicorn.Config(app, access_log=False, http=Protocol, **options)
