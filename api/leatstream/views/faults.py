"""What can be wrong with reading views, whatever keeps them, and how much is read at most."""

from __future__ import annotations

from collections.abc import Iterable

from leatstream.errors import EngineError, RequestError

# Of texts and bytes in an answer.
MOST_ANSWERED = 64 << 20
_FEWER = "Ask for fewer rows, or for shorter texts: LIMIT, left(…, …)."


def gathered(rows: Iterable[tuple[object, ...]], most: int, hint: str = _FEWER) -> list[tuple[object, ...]]:
    """So many rows as they come.

    Raises:
        RequestError: their texts and bytes are too long together; the server would hold them all.
    """
    found: list[tuple[object, ...]] = []
    size = 0
    for row in rows:
        if len(found) >= most:
            break
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if size > MOST_ANSWERED:
            raise too_long(hint)
        found.append(row)
    return found


def too_long(hint: str) -> RequestError:
    """An answer that the server does not hold in memory."""
    detail = f"The answer has more than {MOST_ANSWERED >> 20} MiB of texts and bytes."
    return RequestError("not-computable", detail, hint=hint, sqlstate="54000")


def not_ready(what: str) -> EngineError:
    """A view whose job has not begun."""
    return EngineError(
        "view-not-ready",
        f"The materialized view {what}.",
        hint="Wait until its query is running: DESCRIBE QUERY STATE.",
    )


def timed_out(seconds: float) -> EngineError:
    """A SELECT that took too long."""
    return EngineError(
        "statement-timeout",
        f"The SELECT took more than {seconds:g} s.",
        hint="CREATE INDEX on the columns of WHERE, or ask for less",
    )
