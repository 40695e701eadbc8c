"""Moments as milliseconds since 1970, as people and programs write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FAR = 253_402_300_800_000  # the year 10000


def milliseconds(at: datetime) -> int:
    """Milliseconds since 1970; a time without a zone is UTC."""
    # Whole numbers: as a float a time may be a millisecond too early.
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)


def read_milliseconds(text: str | int) -> int:
    """Milliseconds since 1970 of a time in ISO 8601, or of such a number.

    Raises:
        ValueError: it is neither, or not between the years 1970 and 9999; its text says which.
    """
    if isinstance(text, int) or text.isdecimal():
        found = int(text)
    else:
        try:
            found = milliseconds(datetime.fromisoformat(text))
        except ValueError:
            raise ValueError(
                "must be a time such as 2026-01-31T12:00:00Z, or milliseconds since 1970"
            ) from None
    if not 0 <= found < _FAR:
        raise ValueError("lies between the years 1970 and 9999")
    return found


def iso(since_1970: int) -> str:
    """A moment as text: ``2026-01-31T12:00:00.000Z``."""
    at = _EPOCH + timedelta(milliseconds=since_1970)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
