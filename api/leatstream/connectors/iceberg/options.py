"""Properties of relations over Iceberg tables: what ``iceberg.…`` may say beside the table's name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from leatstream.connectors.entities import OptionFault

INTERVAL, SKIP = "iceberg.interval.millis", "iceberg.skip.overwrites"
START = "iceberg.start.snapshot"
NAMES = (INTERVAL, SKIP, START)
APPEND_MS, KEYED_MS = 10_000, 60_000
"""How often a table is written unless the relation says it: each commit makes files of data and metadata."""
_ID = re.compile(r"[0-9]{1,19}\Z")
_WHOLE = re.compile(r"[0-9]{1,9}\Z")


def check_options(given: Mapping[str, Any]) -> tuple[dict[str, str], list[OptionFault]]:
    """Check those of ``NAMES`` that one relation has; canonical texts, and what is wrong."""
    found: dict[str, str] = {}
    faults: list[OptionFault] = []
    for name, value in given.items():
        text = str(value).lower()
        if name == INTERVAL and not isinstance(value, bool) and _WHOLE.match(text):
            found[name] = str(int(text))
        elif (name == SKIP and text in ("true", "false")) or (name == START and _ID.match(text)):
            found[name] = text
        elif name == START:
            faults.append(OptionFault(name, f"{name} is the id of a snapshot.", f"Write {name!r} = '123'."))
        elif name == INTERVAL:
            hint = f"The default is {APPEND_MS}, and {KEYED_MS} for a changelog."
            faults.append(OptionFault(name, f"{name} must be a whole number of milliseconds.", hint))
        elif name == SKIP:
            faults.append(OptionFault(name, f"{name} is TRUE or FALSE."))
    return found, faults


def interval_ms(options: Mapping[str, str], *, keyed: bool) -> int:
    """How often a sink is written."""
    return int(options.get(INTERVAL, KEYED_MS if keyed else APPEND_MS))
