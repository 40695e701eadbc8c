"""Event times that cannot be meant: far ahead of the record, or seconds where milliseconds are read.

One such time would move the watermark for years, so that all later records would be late. A record that has
one is undecodable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from leatstream.formats.event_times import (
    FINER_UNIT,
    LAST_MS,
    SECONDS,
    SECONDS_UNIT,
    other_unit,
    too_far,
    what_time,
)
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import Column


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
    epoch = F.timestamp_millis(F.lit(SECONDS))
    known = F.when(own >= epoch, own)
    base = F.least(known, F.current_timestamp()) if clock else known
    ahead = F.unix_millis(time) - F.unix_millis(base) > source.max_ahead_ms
    what = what_time(None if raw is None else source.timestamp)
    why = F.when(F.coalesce(ahead, F.lit(False)), F.lit(too_far(what, source.max_ahead_ms)))
    column = next((c for c in source.columns if c.name == source.timestamp), None)
    if raw is None or column is None or parse_type(column.type).kind != "BIGINT":
        return why
    return (
        F.when((raw >= 0) & (raw < SECONDS), F.lit(other_unit(what, SECONDS_UNIT)))
        .when(raw > LAST_MS, F.lit(other_unit(what, FINER_UNIT)))
        .otherwise(why)
    )
