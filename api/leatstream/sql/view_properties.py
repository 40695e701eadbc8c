"""WITH of CREATE MATERIALIZED VIEW: there is no topic and no format, so little can be said."""

from __future__ import annotations

import re
from dataclasses import dataclass

from leatstream.sql.property_values import Given, PropertyReader

VIEW_PROPERTIES = ("retention",)
_UNITS = {"second": 1_000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000}
_SPAN = re.compile(r"\s*([0-9]{1,9})\s*([a-z]+?)s?\s*\Z", re.I)
_LONGEST_MS = 100 * 366 * 86_400_000


@dataclass(frozen=True, slots=True)
class ViewProperties:
    """What was said of a view.

    Attributes:
        retention_ms: how long a row stays; None = for ever.
    """

    retention_ms: int | None = None


def read_view_properties(given: Given) -> ViewProperties:
    """Read and check the WITH list of a view.

    Raises:
        RequestError: invalid-property, with every fault found.
    """
    reader = PropertyReader(given, "materialized view")
    for key in reader.given:
        if key not in VIEW_PROPERTIES:
            reader.unknown(key, VIEW_PROPERTIES)
    retention = _retention(reader)
    reader.faults.raise_if_any()
    return ViewProperties(retention)


def _retention(reader: PropertyReader) -> int | None:
    text = reader.text("retention")
    if text is None:
        return None
    found = _SPAN.match(text)
    unit = _UNITS.get(found[2].lower()) if found else None
    if found is None or unit is None:
        reader.wrong(
            "retention",
            "'retention' is a number and a unit.",
            "Write it as '7 days', '12 hours' or '30 minutes'.",
        )
        return None
    length = int(found[1]) * unit
    if not 0 < length <= _LONGEST_MS:
        reader.wrong("retention", "'retention' is longer than nothing and at most 100 years.")
        return None
    return length
