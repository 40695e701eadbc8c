"""Answers that go on for long end when their caller may no longer have them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import cast

import anyio
from starlette.requests import Request

from leatstream.errors import CatalogAway, LeatstreamError, fewer_rights
from leatstream.rest.streams import failure
from leatstream.services.environment import Principal

LOOK_AGAIN = 5.0  # seconds, after which the token is looked at again


def authenticate_again(request: Request) -> Callable[[], Awaitable[Principal]]:
    """Gives the caller with its rights of now; raises when its token is not accepted any more."""
    return cast("Callable[[], Awaitable[Principal]]", request.scope["leatstream.authenticate"])


class Watch:
    """Looks now and then whether one answer may go on.

    Args:
        again: gives the caller with its rights of now.
        who: the caller when the answer began.

    Attributes:
        who: the caller, with its rights at the last look.
    """

    def __init__(self, again: Callable[[], Awaitable[Principal]], who: Principal) -> None:
        self._again, self.who, self._looked = again, who, anyio.current_time()

    async def look(self) -> None:
        """AccessError if the token has ended, or its role has lost a privilege."""
        if anyio.current_time() < self._looked + LOOK_AGAIN:
            return
        try:
            now = await self._again()
        except CatalogAway:  # it will come back, and the reader need not notice
            return
        finally:
            self._looked = anyio.current_time()
        if now.rights.lack_some_of(self.who.rights):
            raise fewer_rights(now.role)
        self.who = now


async def while_accepted(
    request: Request,
    chunks: AsyncGenerator[bytes, None],
    media_type: str,
    *,
    kept: Callable[[Principal], AbstractContextManager[None]] | None = None,
) -> AsyncIterator[bytes]:
    """The chunks, until the token ends or its role loses a privilege; then an error is the last one.

    Args:
        request: that is answered.
        chunks: of the answer; empty ones while it is silent.
        media_type: NDJSON or server-sent events.
        kept: held while the chunks are closed as the token has ended: what they come from stays for a request
            of the same caller with another token.
    """
    watch = Watch(authenticate_again(request), request.scope["leatstream.principal"])
    try:
        async for chunk in chunks:
            await watch.look()  # before it is sent: the step before it may have taken long
            if chunk:
                yield chunk
    except LeatstreamError as error:
        # Closed before the caller learns it: its next request must find everything in place.
        with kept(watch.who) if kept is not None and error.code == "unauthenticated" else nullcontext():
            await chunks.aclose()
        yield failure(error, media_type)
    finally:
        await chunks.aclose()
