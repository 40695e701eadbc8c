"""Names of ClickHouse's tables: as entities, in statements, and which of them are nobody's."""

from __future__ import annotations

DEFAULT_DATABASE = "default"
BATCHES = "leatstream_batches"
"""The table that records which micro-batches a database's tables have; see ``clickhouse.batches``."""
SYSTEM = ("system", "information_schema", "INFORMATION_SCHEMA")
_LONGEST = 200  # bytes: a table's name is a folder's, and escaped there


def split_entity(entity: str, home: str) -> tuple[str, str]:
    """Database and table that an entity's name means: ``orders`` is that of the store's own database."""
    database, dot, table = entity.partition(".")
    return (database, table) if dot else (home, entity)


def entity_name(database: str, table: str, home: str) -> str:
    """The name of a table as an entity; ``split_entity`` reads it back.

    Args:
        database: the table's.
        table: its name there.
        home: the store's own database.
    """
    return table if database == home and "." not in table else f"{database}.{table}"


def name_fault(entity: str) -> str | None:
    """Why there cannot be a table of this name, or None."""
    database, table = split_entity(entity, DEFAULT_DATABASE)
    for part in (database, table):
        if not part or len(part.encode(errors="replace")) > _LONGEST or _unprintable(part):
            return (
                "a table is called table or database.table, and each of the two has 1 to 200 bytes "
                "without control characters"
            )
    if database in SYSTEM or table == BATCHES:
        return "this name belongs to the server or to leatstream"
    return None


def database_fault(name: str) -> str | None:
    """Why a database of this name is not for tables of ours, or None."""
    if not name or "." in name or _unprintable(name):
        return "write a database's name, without dots and control characters"
    return "this database belongs to the server" if name in SYSTEM else None


def quoted(name: str) -> str:
    """A name in a statement."""
    escaped = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"


def place(entity: str, home: str) -> str:
    """The entity's table in a statement."""
    return ".".join(map(quoted, split_entity(entity, home)))


def literal(text: str) -> str:
    """A text in a statement."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _unprintable(text: str) -> bool:
    return any(ord(c) < 32 or ord(c) == 127 for c in text)
