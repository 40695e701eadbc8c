"""What is said of an Iceberg table: columns and key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from leatstream.connectors.entity_settings import TableSettings


class IcebergEntity(TableSettings):
    """Columns of a table, and the identifier fields by which rows replace each other."""

    example: ClassVar[Mapping[str, Any]] = {
        "columns": [{"name": "id", "type": "BIGINT"}, {"name": "amount", "type": "DECIMAL(12, 2)"}],
        "primary_key": ["id"],
    }
