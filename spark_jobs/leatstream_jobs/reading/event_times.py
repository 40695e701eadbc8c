"""Event times that cannot be meant: far ahead of the record, or seconds where milliseconds are read.

One such time would move the watermark for years, so that all later records would be late. A record that has
one is undecodable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from leatstream.model.types import parse_type
from leatstream.plan.job_spec import SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import Column

# Seconds of the years up to 2286, read as milliseconds, are times before May 1970.
_SECONDS = 10_000_000_000
_LAST = 253_402_300_799_999
_SETTING = "'source.timestamp.max.ahead.millis'"


def why_not_meant(
    source: SourceSpec, time: Column, own: Column, raw: Column | None, *, clock: bool
) -> Column | None:
    """Why a record's event time cannot be meant, as text for people; NULL where it can.

    Args:
        source: its ``max_ahead_ms`` is the bound; without one all times can be meant.
        time: event time, TIMESTAMP.
        own: the record's own time, TIMESTAMP.
        raw: the timestamp column's value; None where event time is the record's own.
        clock: whether the batch's clock counts where it is earlier than the record's own time; a batch of
            real-time mode begins long before its records.
    """
    from pyspark.sql import functions as F

    if source.max_ahead_ms is None:
        return None
    # A producer may set a record's own time too, and some set none. The clock is that of the batch, which
    # a repeated batch has again.
    epoch = F.timestamp_millis(F.lit(_SECONDS))
    known = F.when(own >= epoch, own)
    base = F.least(known, F.current_timestamp()) if clock else known
    ahead = F.unix_millis(time) - F.unix_millis(base) > source.max_ahead_ms
    what = "its time" if raw is None else f"its event time, column {source.timestamp},"
    too_far = (
        f"{what} is more than {source.max_ahead_ms} ms ahead of the time at which it was written; {_SETTING} "
        "sets that bound"
    )
    why = F.when(F.coalesce(ahead, F.lit(False)), F.lit(too_far))
    column = next((c for c in source.columns if c.name == source.timestamp), None)
    if raw is None or column is None or parse_type(column.type).kind != "BIGINT":
        return why
    unit = f"{what} looks like {{}}, and is read as milliseconds; {_SETTING} = NONE takes every time"
    return (
        F.when((raw >= 0) & (raw < _SECONDS), F.lit(unit.format("seconds")))
        .when(raw > _LAST, F.lit(unit.format("microseconds or nanoseconds")))
        .otherwise(why)
    )
