"""WITH of CREATE MATERIALIZED VIEW: how long rows are kept, and which store holds them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from leatstream.connectors.registry import connector_classes
from leatstream.sql.property_values import Given, PropertyReader

VIEW_PROPERTIES = ("retention", "store")
_UNITS = {"second": 1_000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000}
_SPAN = re.compile(r"\s*([0-9]{1,9})\s*([a-z]+?)s?\s*\Z", re.I)
_LONGEST_MS = 100 * 366 * 86_400_000


@dataclass(frozen=True, slots=True)
class ViewProperties:
    """What was said of a view.

    Attributes:
        retention_ms: how long a row stays; None = for ever.
        store: the store that holds it; None = leatstream's own database.
        names: property to name, of those that name it in the store.
    """

    retention_ms: int | None = None
    store: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)


def read_view_properties(given: Given) -> ViewProperties:
    """Read and check the WITH list of a view.

    Raises:
        RequestError: invalid-property, with every fault found.
    """
    reader = PropertyReader(given, "materialized view")
    naming = [
        name
        for found in connector_classes().values()
        if found.capabilities.view
        for name in found.table_names
    ]
    for key in reader.given:
        if key not in (*VIEW_PROPERTIES, *naming):
            reader.unknown(key, (*VIEW_PROPERTIES, *naming))
    store = reader.text("store")
    names = {name: text for name in naming if (text := reader.text(name)) is not None}
    for name in names if store is None and "store" not in reader.given else ():
        detail = f"{name!r} names a view in a store, and there is no 'store'."
        reader.wrong(name, detail, "Write 'store' = '…'")
    retention = _retention(reader)
    reader.faults.raise_if_any()
    return ViewProperties(retention, store, names)


def _retention(reader: PropertyReader) -> int | None:
    text = reader.text("retention")
    if text is None:
        return None
    found = _SPAN.match(text)
    unit = _UNITS.get(found[2].lower()) if found else None
    if found is None or unit is None:
        reader.wrong(
            "retention",
            "'retention' must be a number and a unit.",
            "Write it as '7 days', '12 hours' or '30 minutes'.",
        )
        return None
    length = int(found[1]) * unit
    if not 0 < length <= _LONGEST_MS:
        reader.wrong("retention", "'retention' is longer than nothing and at most 100 years.")
        return None
    return length
