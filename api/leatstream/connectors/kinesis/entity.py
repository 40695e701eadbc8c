"""What is said of a data stream: shards, mode, retention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StrictInt

from leatstream.connectors.capabilities import EntityProperty
from leatstream.connectors.entity_settings import Config, EntitySettings, Property

PROPERTIES = (
    EntityProperty(
        "topic.shards",
        ("kinesis.shards", "kinesis.topic.shards"),
        description="Number of open shards; none on demand.",
    ),
)
CONFIGS = {"kinesis.stream.mode": "stream.mode", "kinesis.retention.hours": "retention.hours"}


class KinesisEntity(EntitySettings):
    """Settings of a Kinesis stream."""

    example: ClassVar[Mapping[str, Any]] = {"shards": 2, "retention_hours": 48}

    shards: Annotated[Annotated[StrictInt, Field(ge=1, le=100_000)] | None, Property("topic.shards")] = Field(
        None, description="Number of open shards; required to create a stream unless `mode` is `ON_DEMAND`."
    )
    mode: Annotated[
        Literal["PROVISIONED", "ON_DEMAND"] | None, Config("stream.mode", default="PROVISIONED")
    ] = Field(None, description="Whether AWS manages the shards; default `PROVISIONED`.")
    retention_hours: Annotated[
        Annotated[StrictInt, Field(ge=24, le=8760)] | None, Config("retention.hours", default=24)
    ] = Field(None, description="How long records are kept; default 24.")
