"""Names of Iceberg tables: an entity is ``namespace.table``, and namespaces may be nested."""

from __future__ import annotations

import re
from collections.abc import Mapping

from leatstream.connectors.entities import OptionFault

DEFAULT = "default"
"""The namespace of a table that is named without one."""
CATALOG, NAMESPACE, TABLE = "iceberg.catalog", "iceberg.namespace", "iceberg.table.name"
CATALOGS = (CATALOG, "iceberg.catalog.name", "iceberg.catalog.id")
NAMESPACES = (NAMESPACE, "iceberg.namespace.name", "iceberg.db.name", "iceberg.schema.name")
TABLE_NAMES = (*CATALOGS, *NAMESPACES, TABLE)
_LONGEST = 255
_GLUE = re.compile(r"[a-z0-9_]{1,255}\Z")


def split(entity: str) -> tuple[str, ...]:
    """Levels of the namespace, then the table."""
    parts = tuple(entity.split("."))
    return parts if len(parts) > 1 else (DEFAULT, entity)


def joined(identifier: tuple[str, ...]) -> str | None:
    """The entity of a table; None where a name holds a dot, so that no entity can mean it."""
    return None if any("." in part or not part for part in identifier) else ".".join(identifier)


def rest_fault(entity: str) -> str | None:
    """Why no REST catalog can have such a table, or None."""
    for part in split(entity):
        if not part or len(part) > _LONGEST or any(ord(c) < 32 or ord(c) == 127 for c in part):
            return "a table is called namespace.table, and each part has 1 to 255 characters"
        if "/" in part or "\\" in part:
            return "a name that is a part of a path has no slash"
    return None


def glue_fault(entity: str) -> str | None:
    """Why Glue cannot have such a table, or None."""
    parts = split(entity)
    if len(parts) != 2 or not all(map(_GLUE.match, parts)):
        return "in Glue a table is called database.table, each of a-z, 0-9 and _"
    return None


def named(given: Mapping[str, str], default: str, catalog: str | None) -> tuple[str, list[OptionFault]]:
    """The entity that a relation's properties mean, and what is wrong with them.

    Args:
        given: property to name.
        default: the table's name where none is given.
        catalog: the store's warehouse or account; None where it has none to compare with.
    """
    faults: list[OptionFault] = []
    for key in CATALOGS:
        if key in given and given[key] != catalog:
            detail = f"{key} differs from the catalog of the store."
            faults.append(OptionFault(key, detail, "A store is one catalog; leave it out."))
    spaces = [(key, given[key]) for key in NAMESPACES if key in given]
    for key, name in spaces[1:]:
        if name != spaces[0][1]:
            detail = f"{key} and {spaces[0][0]} both name the namespace."
            faults.append(OptionFault(key, detail, "Leave one out; a dot makes a nested one: 'a.b'."))
    table = given.get(TABLE, default)
    if "." in table:
        faults.append(
            OptionFault(TABLE, f"{TABLE} must be a name without a dot.", f"Write {NAMESPACE!r} too.")
        )
    return f"{spaces[0][1] if spaces else DEFAULT}.{table}", faults
