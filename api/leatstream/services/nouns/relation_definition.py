"""What a user writes of a relation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leatstream.model.objects import Column, RelationKind


@dataclass(frozen=True, slots=True)
class RelationDefinition:
    """What the user writes of a relation; None = left out."""

    columns: tuple[Column, ...]
    kind: RelationKind = RelationKind.STREAM
    primary_key: tuple[str, ...] = ()
    store: str | None = None
    topic: str | None = None
    value_format: str | None = None
    key_format: str | None = None
    key_type: str | None = None
    timestamp: str | None = None
    timestamp_format: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)
    comment: str | None = None

    def as_properties(self) -> dict[str, Any]:
        """All WITH keys in one mapping, the typed fields under their canonical names."""
        typed = {
            "store": self.store,
            "topic": self.topic,
            "value.format": self.value_format,
            "key.format": self.key_format,
            "key.type": self.key_type,
            "timestamp": self.timestamp,
            "timestamp.format": self.timestamp_format,
        }
        return {**self.properties, **{k: v for k, v in typed.items() if v is not None}}
