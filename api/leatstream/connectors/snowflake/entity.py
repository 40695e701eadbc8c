"""What is said of a table of Snowflake: names, columns and key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from leatstream.connectors.entity_settings import TableSettings
from leatstream.connectors.upper_names import canonical, quoted

TABLE_NAMES = ("snowflake.db.name", "snowflake.schema.name", "snowflake.table.name")
PUBLIC = "public"
BATCHES = "leatstream_batches"
"""The table with the numbers of the micro-batches that a schema's tables have; see ``snowflake.sink``."""
STAGED = "leatstream_staged"
"""A session's own table, which holds a batch before its transaction."""


class SnowflakeEntity(TableSettings):
    """Columns and key of a table."""

    example: ClassVar[Mapping[str, Any]] = {
        "columns": [{"name": "id", "type": "BIGINT"}],
        "primary_key": ["id"],
    }


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table is, in our names.

    Attributes:
        database: empty = none is known.
    """

    database: str
    schema: str
    table: str

    @property
    def statement(self) -> str:
        """The table as statements write it."""
        return f"{self.in_schema}.{quoted(self.table)}"

    @property
    def in_schema(self) -> str:
        """Its schema as statements write it."""
        return f"{quoted(self.database)}.{quoted(self.schema)}"

    def beside(self, table: str) -> Place:
        """Another table of the same schema."""
        return Place(self.database, self.schema, table)


def place_of(entity: str, database: str | None) -> Place:
    """The table that an entity's name means in a store with this database.

    Args:
        entity: ``table``, ``schema.table`` or ``database.schema.table``.
        database: of the store's settings.
    """
    parts = [canonical(part) for part in entity.split(".", 2)]
    return Place(*[canonical(database or ""), PUBLIC][: 3 - len(parts)], *parts)


def entity_name(place: Place, database: str | None) -> str:
    """The shortest name of a table as an entity; ``place_of`` reads it back."""
    if place.database != canonical(database or ""):
        return f"{place.database}.{place.schema}.{place.table}"
    return place.table if place.schema == PUBLIC else f"{place.schema}.{place.table}"
