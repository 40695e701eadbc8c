"""What is said of a table: its columns and key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from leatstream.connectors.entity_settings import TableSettings

TABLE_NAMES = ("oracle.schema.name", "oracle.table.name")


class OracleEntity(TableSettings):
    """Columns and key of a table."""

    example: ClassVar[Mapping[str, Any]] = {
        "columns": [{"name": "id", "type": "BIGINT"}],
        "primary_key": ["id"],
    }
