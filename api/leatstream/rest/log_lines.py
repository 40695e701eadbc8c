"""A job's log lines as they come: what is new among the last lines that are kept."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence

import anyio
from anyio import to_thread

from leatstream.errors import CatalogAway, CatalogError
from leatstream.model.log_tails import unseen

_PAUSE = 0.5  # seconds; a job reports its lines once a second
_QUIET = 30  # looks without a new line, after which a comment is sent


async def follow_lines(look: Callable[[], Sequence[str]], tail: int) -> AsyncGenerator[bytes, None]:
    """Server-sent events ``log``, one for each line, and ``end`` when there is nothing to look at any more.

    An event ``live`` stands behind the lines that exist already.

    Args:
        look: gives the last lines, oldest first; CatalogError not-found when the query is deleted.
        tail: how many of the existing lines.
    """
    seen: Sequence[str] | None = None
    quiet = 0
    # Lets the client see the answer's head.
    yield b": idle\n\n"
    while True:
        try:
            now = await to_thread.run_sync(look)
        except CatalogError:
            yield b"event: end\ndata: {}\n\n"
            return
        except CatalogAway:  # it will come back, and the reader need not notice
            now = seen or ()
        first = seen is None
        fresh, seen = (now[-tail:] if seen is None else unseen(seen, now)), now
        for line in fresh:
            yield f"event: log\ndata: {json.dumps({'line': line})}\n\n".encode()
        if first:
            yield b"event: live\ndata: {}\n\n"
        quiet = 0 if fresh else quiet + 1
        if quiet >= _QUIET:
            quiet = 0
            yield b": idle\n\n"
        await anyio.sleep(_PAUSE)
