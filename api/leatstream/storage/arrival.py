"""Waits for the database of the catalog, which may start after the server, or be unreachable just then."""

from __future__ import annotations

import logging
import time

import sqlalchemy as sa

from leatstream.errors import StackError, sentence
from leatstream.storage.engine import is_away, make_engine

_log = logging.getLogger(__name__)
_LOOK, _TELL = 0.5, 5.0  # seconds


def await_database(url: str, seconds: float) -> None:
    """Return when the database answers; a file always does.

    Args:
        url: of the catalog.
        seconds: how long it may be unreachable; 0 asks once.

    Raises:
        StackError: ``part-failed``, it was unreachable for so long.
    """
    if sa.make_url(url).get_backend_name() != "postgresql":
        return
    engine = make_engine(url)
    end, tell = time.monotonic() + seconds, time.monotonic()
    try:
        while why := _why_away(engine):
            now = time.monotonic()
            if now >= end:
                raise StackError(
                    "part-failed",
                    sentence(f"The catalog's database has not answered for {seconds:g} s: {why}"),
                    hint="Start it, or correct LEATSTREAM_CATALOG_URL.",
                )
            if now >= tell:
                _log.warning("the catalog's database is tried for %.0f s more: %s", end - now, why)
                tell = now + _TELL
            time.sleep(min(_LOOK, end - now))
    finally:
        engine.dispose()


def _why_away(engine: sa.Engine) -> str:
    """The cause in one line; empty if it answers."""
    try:
        with engine.connect():
            return ""
    except sa.exc.DBAPIError as error:
        if not is_away(error):
            raise
        return " ".join(str(error.orig).split()) or type(error.orig).__name__
