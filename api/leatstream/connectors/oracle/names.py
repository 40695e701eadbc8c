"""Tables of Oracle as entities: ``orders`` is the user's own, ``sales.orders`` that of another schema."""

from __future__ import annotations

from leatstream.connectors.oracle.settings import OracleConfig
from leatstream.connectors.upper_names import canonical, quoted, stored

BATCHES = "LEATSTREAM_BATCHES"
STAGED = "LEAT_STAGED_"
_LONGEST = 128  # bytes


def table_of(config: OracleConfig, entity: str) -> tuple[str, str]:
    """Schema and table that an entity's name means, as Oracle has them."""
    schema, dot, table = entity.partition(".")
    return (stored(schema), stored(table)) if dot else (config.own_schema, stored(entity))


def table_name(config: OracleConfig, entity: str) -> str:
    """The entity's table in a statement."""
    return quoted(*table_of(config, entity))


def entity_name(config: OracleConfig, schema: str, table: str) -> str:
    """The name of a table as an entity; ``table_of`` reads it back.

    Args:
        config: whose own schema needs no name.
        schema: as Oracle has it.
        table: as Oracle has it.
    """
    name = canonical(table)
    return name if schema == config.own_schema and "." not in name else f"{canonical(schema)}.{name}"


def name_fault(entity: str) -> str | None:
    """Why Oracle cannot have a table of this name, or None."""
    schema, dot, table = entity.partition(".")
    for part in (schema, table) if dot else (schema,):
        if not part or '"' in part or "\x00" in part or len(part.encode(errors="replace")) > _LONGEST:
            return 'a table is called table or schema.table, each of 1 to 128 bytes without "'
    if ours(stored(table if dot else schema)):
        return "this name belongs to leatstream"
    return None


def ours(table: str) -> bool:
    """Whether a table is leatstream's own."""
    return table == BATCHES or table.startswith(STAGED)
