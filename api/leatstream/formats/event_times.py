"""Event times that cannot be meant, in words and for one record; ``leatstream_jobs`` has the same for Spark.

One such time would move the watermark for years, so that all later records would be late. A record that has
one is undecodable.
"""

from __future__ import annotations

from typing import Any

from leatstream.formats.plain_values import Undecodable, moment_of
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import SourceSpec

# Seconds of the years up to 2286, read as milliseconds, are times before May 1970.
SECONDS = 10_000_000_000
# Milliseconds of the years 1 to 9999.
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
NO_TIME = "it has no event time"
SECONDS_UNIT, FINER_UNIT = "seconds", "microseconds or nanoseconds"
_SETTING = "'source.timestamp.max.ahead.millis'"
_DAY_MS = 86_400_000


def what_time(column: str | None) -> str:
    """The time in words; ``column`` = None where it is the record's own."""
    return "its time" if column is None else f"its event time, column {column},"


def too_far(what: str, max_ahead_ms: int | None) -> str:
    """Why a time far ahead cannot be meant."""
    return (
        f"{what} is more than {max_ahead_ms} ms ahead of the time at which it was written; {_SETTING} "
        "sets that bound"
    )


def other_unit(what: str, unit: str) -> str:
    """Why a number cannot be meant as milliseconds."""
    return f"{what} looks like {unit}, and is read as milliseconds; {_SETTING} = NONE takes every time"


def time_fault(source: SourceSpec, value: Any, own_ms: int | None, now_ms: int) -> str | None:
    """Why a record has no event time that can be meant, as the job would say it; None where it has one.

    Args:
        source: what is read; its ``max_ahead_ms`` is the bound.
        value: of its timestamp column, plain; None where it is NULL or the record's own time counts.
        own_ms: the record's own time, epoch milliseconds.
        now_ms: the clock, epoch milliseconds.
    """
    column = next((c for c in source.columns if c.name == source.timestamp), None)
    kind = parse_type(column.type).kind if column is not None else ""
    at, unit = own_ms, None
    if column is not None and value is not None:
        at, unit = _milliseconds(kind, value)
    what = what_time(source.timestamp)
    if source.max_ahead_ms is not None:
        if unit is not None:
            return other_unit(what, unit)
        known = own_ms if own_ms is not None and own_ms >= SECONDS else now_ms
        if at is not None and at - min(known, now_ms) > source.max_ahead_ms:
            return too_far(what, source.max_ahead_ms)
    return NO_TIME if value is not None and at is None else None


def _milliseconds(kind: str, value: Any) -> tuple[int | None, str | None]:
    """The time, and the unit that the number seems to have, where that is another one."""
    if kind == "BIGINT":
        unit = SECONDS_UNIT if 0 <= value < SECONDS else FINER_UNIT if value > LAST_MS else None
        return (value if FIRST_MS <= value <= LAST_MS else None), unit
    if kind == "DATE":
        return value * _DAY_MS, None
    if kind == "VARCHAR":
        try:
            return moment_of(value) // 1000, None
        except Undecodable:
            return None, None
    return value // 1000, None
