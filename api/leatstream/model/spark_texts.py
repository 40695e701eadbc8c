"""Texts as CAST reads them in Spark: Python itself takes forms that Spark refuses, and refuses others."""

from __future__ import annotations

import re
from datetime import date, datetime

# Around a text they count for nothing; other blanks, such as U+00A0, do.
_BLANKS = "".join(map(chr, range(0x21)))
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[+-]?NaN|(?i:nan|[+-]?inf(inity)?)")
_DATE = re.compile(r"\+?([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_ZONE = r"Z|[+-](?:0[0-9]|1[0-7])(?::?[0-5][0-9])?"
_CLOCK = rf"([0-9]{{1,2}})(?::([0-9]{{1,2}})(?::([0-9]{{1,2}})(?:\.([0-9]*))?({_ZONE})?)?)?"
_MOMENT = re.compile(rf"\+?([0-9]{{4,6}})(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}})(?:[ T]{_CLOCK})?)?)?")


def trimmed(text: str) -> str:
    """A text without what Spark passes over at both ends."""
    return text.strip(_BLANKS)


def is_number(text: str) -> bool:
    """Whether a trimmed text is written as a number."""
    return _NUMBER.fullmatch(text) is not None


def read_double(text: str) -> float:
    """A DOUBLE.

    Raises:
        ValueError: it is none.
    """
    text = trimmed(text)
    if not is_number(text) and not _NO_NUMBER.fullmatch(text):
        raise ValueError(text)
    return float(text)


def read_date(text: str) -> date:
    """A DATE: year, month and day, of which the last may be left out; what follows a day is passed over.

    Raises:
        ValueError: it is none, or not of the years 1 to 9999.
    """
    found = _DATE.fullmatch(trimmed(text))
    if found is None:
        raise ValueError(text)
    year, month, day = found.groups()
    return date(int(year), int(month or 1), int(day or 1))


def read_moment(text: str, zoned: bool) -> datetime:
    """A TIMESTAMP_LTZ if ``zoned``, else a TIMESTAMP, which passes over the zone and stands as it is written.

    Raises:
        ValueError: it is none, or not of the years 1 to 9999.
    """
    found = _MOMENT.fullmatch(trimmed(text))
    if found is None:
        raise ValueError(text)
    *parts, fraction, zone = found.groups()
    year, month, day, hour, minute, second = (int(p or d) for p, d in zip(parts, "111000", strict=True))
    made = datetime(year, month, day, hour, minute, second, int(f"{fraction or '':0<6}"[:6]))
    if not zone or not zoned:
        return made
    return datetime.fromisoformat(f"{made.isoformat()}{zone}")
