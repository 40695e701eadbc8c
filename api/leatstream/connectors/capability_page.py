"""The capability matrix, and its page docs/stores.md, from what the connector classes say of themselves.

Usage: ``python -m leatstream.connectors.capability_page docs/stores.md``
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from leatstream.connectors.base import Connector
from leatstream.connectors.capabilities import Capabilities
from leatstream.connectors.registry import PLANNED, connector_classes

_ROWS = {
    "source": "source",
    "sink": "sink",
    "create_as": "CREATE … AS SELECT",
    "cdc": "CDC",
    "view": "materialized views",
    "view_swap": "blue-green views",
    "print_records": "PRINT",
    "insert_values": "INSERT … VALUES",
    "create_entity": "create, delete",
    "realtime": "real-time mode",
    "headers": "headers of records",
    "lookup": "joined as tables",
    "batches": "sink of joins with changelogs, lookups and matches",
    "positions": "restart from offsets",
    "bounded_runs": "runs that complete",
    "batch_bounds": "batches that adapt",
    "hand_over": "blue-green sink",
    "error_log": "log of undecodable records",
}
_HEAD = """# Kinds of store

<!-- Written by `make generate` from the connector classes. -->

What each kind can be used for in this version; `leat capabilities` and `GET /v1/server/capabilities` report
the same of a server. Sink-property [inference](inference.md) knows all of them. `CONFLUENT_KAFKA`, `MSK` and
`REDPANDA` are of kind `kafka`.

"""
_TESTED = "A kind with an entry under *never run* is experimental there: try it before you rely on it."


def matrix(classes: Mapping[str, type[Connector]]) -> list[dict[str, Any]]:
    """A row for each kind of the product's scope, usable ones first.

    Args:
        classes: kind to connector class.

    Returns:
        ``kind``, ``built``, the members of ``Capabilities`` and ``properties``, which a new sink needs.
    """
    rows = []
    for kind in (*sorted(classes), *PLANNED):
        built = classes.get(kind)
        found = built.capabilities if built else Capabilities()
        properties = [one.name for one in built.entity_properties] if built else []
        rows.append({"kind": kind, "built": built is not None, **asdict(found), "properties": properties})
    return rows


def page(classes: Mapping[str, type[Connector]]) -> str:
    """The whole page."""
    rows = matrix(classes)
    built = [row for row in rows if row["built"]]
    lines = ["| | " + " | ".join(row["kind"] for row in built) + " |", "|---" * (len(built) + 1) + "|"]
    for name, shown in _ROWS.items():
        lines.append(f"| {shown} | " + " | ".join("yes" if row[name] else "–" for row in built) + " |")
    lines += ["", "## Delivery", "", "| kind | delivery | when | a new sink needs |", "|---|---|---|---|"]
    for row in built:
        needs = ", ".join(f"`{name}`" for name in row["properties"]) or "–"
        for one in row["delivery"]:
            lines.append(f"| {row['kind']} | {one['name']} | {one['condition']} | {needs} |")
    lines += [
        "",
        "## What was tested",
        "",
        _TESTED,
        "",
        "| kind | tested against | never run |",
        "|---|---|---|",
    ]
    for row in built:
        lines.append(f"| {row['kind']} | {row['verified_on']} | {row['unverified'] or '–'} |")
    missing = ", ".join(row["kind"] for row in rows if not row["built"])
    more = f"\n\nNot built yet, and refused by name: {missing}." if missing else ""
    return _HEAD + "\n".join(lines) + f"{more}\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(connector_classes()), encoding="utf-8")
