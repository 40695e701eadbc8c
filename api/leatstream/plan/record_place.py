"""Which record: the entity it is in, its partition (or shard), and its offset (or sequence number)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_PLACE = re.compile(
    r"(?P<entity>[^:\s]+):(?P<partition>[0-9]{1,9}|shardId-[0-9]+):(?P<offset>[0-9]{1,120})\Z"
)


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """A record, written ``orders:3:42``.

    Attributes:
        entity: topic or data stream.
        partition: number of a topic's partition, or the id of a shard.
        offset: or sequence number.
    """

    entity: str
    partition: str
    offset: str

    @classmethod
    def parse(cls, text: str) -> RecordPlace | None:
        """The record that ``str`` of it names; None where the text names none."""
        found = _PLACE.match(text)
        return cls(**{k: _plain(v) for k, v in found.groupdict().items()}) if found else None

    @classmethod
    def of_position(cls, entity: str, position: Mapping[str, Any]) -> RecordPlace | None:
        """Of a record's ``rowmeta()``; None of stores whose records have no place that lasts."""
        if position.get("file"):
            return None
        partition = position.get("shard") or position.get("partition")
        offset = position.get("sequence_number") or position.get("offset")
        if partition is None or offset is None:
            return None
        return cls(str(position.get("topic") or entity), str(partition), str(offset))

    def __str__(self) -> str:
        return f"{self.entity}:{self.partition}:{self.offset}"

    def in_words(self) -> str:
        """In words."""
        if self.partition.startswith("shard"):
            return f"stream {self.entity}, shard {self.partition}, sequence number {self.offset}"
        return f"topic {self.entity}, partition {self.partition}, offset {self.offset}"

    def as_json(self) -> dict[str, str]:
        """The JSON form."""
        return {"entity": self.entity, "partition": self.partition, "offset": self.offset}


def _plain(text: str) -> str:
    return str(int(text)) if text.isdecimal() else text
