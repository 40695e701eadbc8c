"""What is said of a table: its columns and key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from leatstream.connectors.entity_settings import TableSettings

TABLE_NAMES = ("databricks.catalog.name", "databricks.schema.name", "databricks.table.name")
LOCATION = "table.data.file.location"


class DatabricksEntity(TableSettings):
    """Columns and key of a table."""

    example: ClassVar[Mapping[str, Any]] = {
        "columns": [{"name": "id", "type": "BIGINT"}],
        "primary_key": ["id"],
    }
