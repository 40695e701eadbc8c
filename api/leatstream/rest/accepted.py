"""Answers that go on for long end when their caller may no longer have them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import cast

import anyio
from starlette.requests import Request

from leatstream.errors import AccessError, CatalogAway, LeatstreamError
from leatstream.rest.streams import failure
from leatstream.services.environment import Principal

LOOK_AGAIN = 5.0  # seconds, after which the token is looked at again


def authenticate_again(request: Request) -> Callable[[], Awaitable[Principal]]:
    """Gives the caller with its rights of now; raises when its token is not accepted any more."""
    return cast("Callable[[], Awaitable[Principal]]", request.scope["leatstream.authenticate"])


async def while_accepted(
    request: Request, chunks: AsyncGenerator[bytes, None], media_type: str
) -> AsyncIterator[bytes]:
    """The chunks, until the token ends or its role loses a privilege; then an error is the last one.

    Args:
        request: that is answered.
        chunks: of the answer.
        media_type: NDJSON or server-sent events.
    """
    before = cast("Principal", request.scope["leatstream.principal"])
    again, known = authenticate_again(request), anyio.current_time()
    try:
        async for chunk in chunks:
            # Before it is sent: a silent stream may have waited for hours.
            if anyio.current_time() >= known + LOOK_AGAIN:
                before, known = await _look(again, before), anyio.current_time()
            yield chunk
    except LeatstreamError as error:
        yield failure(error, media_type)
    finally:
        await chunks.aclose()


async def _look(again: Callable[[], Awaitable[Principal]], before: Principal) -> Principal:
    try:
        now = await again()
    except CatalogAway:  # it will come back, and the reader need not notice
        return before
    if now.rights.lack_some_of(before.rights):
        raise AccessError(
            "permission-denied",
            f"Role {now.role} has lost a privilege, so this answer ends.",
            hint="Send the request again: it needs the privileges of now.",
        )
    return now
