"""What is said of a table: columns, key, and what the log has of old rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from leatstream.connectors.entity_settings import Config, TableSettings

CONFIGS = {"postgresql.replica.identity": "replica.identity"}
TABLE_NAMES = ("postgresql.db.name", "postgresql.schema.name", "postgresql.table.name")


class PostgresEntity(TableSettings):
    """Columns, key and settings of a table."""

    example: ClassVar[Mapping[str, Any]] = {
        "columns": [{"name": "id", "type": "BIGINT"}],
        "primary_key": ["id"],
    }

    replica_identity: Annotated[Literal["default", "full", "nothing"] | None, Config("replica.identity")] = (
        Field(None, description="What the log has of old rows; default `default`: their primary key.")
    )
