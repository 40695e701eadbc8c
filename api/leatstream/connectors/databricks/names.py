"""Tables of a catalog as entities: ``orders`` is default.orders, ``other.sales.orders`` elsewhere."""

from __future__ import annotations

import re

_PART = re.compile(r"[^./ `\x00-\x1f\x7f]{1,255}\Z")
DEFAULT = "default"


def full_name(catalog: str, entity: str) -> str:
    """Catalog, schema and table that an entity's name means."""
    parts = entity.lower().split(".")
    return ".".join([*(catalog.lower(), DEFAULT)[: 3 - len(parts)], *parts])


def entity_name(catalog: str, full: str) -> str:
    """The name of a table as an entity; ``full_name`` reads it back."""
    own, schema, table = full.split(".")
    if own != catalog.lower():
        return full
    return table if schema == DEFAULT else f"{schema}.{table}"


def name_fault(entity: str) -> str | None:
    """Why a catalog cannot have a table of this name, or None."""
    parts = entity.split(".")
    if len(parts) <= 3 and all(_PART.match(part) for part in parts):
        return None
    return "a table is called table, schema.table or catalog.schema.table, without blanks and slashes"


def quoted(*names: str) -> str:
    """Names in a statement, with dots between them."""
    return ".".join(f"`{name.replace('`', '``')}`" for name in names)
