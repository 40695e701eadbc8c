"""What can be wrong with reading views, whatever keeps them."""

from __future__ import annotations

from leatstream.errors import EngineError


def not_ready(what: str) -> EngineError:
    """A view whose job has not begun."""
    return EngineError(
        "view-not-ready",
        f"the materialized view {what}",
        hint="wait until its query is running: DESCRIBE QUERY STATE",
    )


def timed_out(seconds: float) -> EngineError:
    """A SELECT that took too long."""
    return EngineError(
        "statement-timeout",
        f"the SELECT took more than {seconds:g} s",
        hint="CREATE INDEX on the columns of WHERE, or ask for less",
    )
