"""Entities of stores: topics, data streams and directories so far."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictInt, model_validator

from leatstream.connectors.base import Entity
from leatstream.rest.schemas.base import Body, View, terraform
from leatstream.services.environment import Page

Count = Annotated[StrictInt, Field(ge=1, le=100_000)]
_Configs = dict[Annotated[str, Field(min_length=1, max_length=255)], Annotated[str, Field(max_length=2000)]]


class KafkaEntity(Body):
    """Settings of a Kafka topic."""

    partitions: Count | None = Field(None, description="Number of partitions; required to create a topic.")
    replicas: Annotated[StrictInt, Field(ge=1, le=1000)] | None = Field(
        None,
        description="Replication factor; required to create a topic.",
        json_schema_extra=terraform(replace=True),
    )
    configs: Annotated[_Configs, Field(max_length=100)] | None = Field(
        None, description="Topic configuration, such as `retention.ms`."
    )


class KinesisEntity(Body):
    """Settings of a Kinesis stream."""

    shards: Annotated[StrictInt, Field(ge=1, le=100_000)] | None = Field(
        None, description="Number of open shards; required to create a stream unless `mode` is `ON_DEMAND`."
    )
    mode: Literal["PROVISIONED", "ON_DEMAND"] | None = Field(
        None, description="Whether AWS sees to the shards; default `PROVISIONED`."
    )
    retention_hours: Annotated[StrictInt, Field(ge=24, le=8760)] | None = Field(
        None, description="How long records are kept; default 24."
    )


class EntityKinds(BaseModel):
    """A typed object per store kind; an entity has at most one of them."""

    kafka: KafkaEntity | None = Field(None, description="Settings of a Kafka topic.")
    kinesis: KinesisEntity | None = Field(None, description="Settings of a Kinesis stream.")


class EntityBody(EntityKinds, Body):
    """An entity: a topic, data stream or directory of files in a store of yours.

    Destroying the resource deletes the topic, stream or directory and its records.
    """

    model_config = ConfigDict(
        json_schema_extra=terraform(
            resource="leatstream_entity",
            path="/v1/stores/{store}/entities/{name:raw}",
            key=["store", "name"],
            path_attributes={"store": "Name of the store.", "name": "Name of the topic or stream, exact."},
            assume="entities",
            live=True,
            attributes={"effective": {"volatile": True}},
            **{"import": "{store}/{name:raw}"},
        )
        | {
            "examples": [
                {"kafka": {"partitions": 3, "replicas": 1, "configs": {"retention.ms": "86400000"}}},
                {"kinesis": {"shards": 2, "retention_hours": 48}},
            ]
        }
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.kafka is not None and self.kinesis is not None:
            raise ValueError("an entity has at most one object that tells its kind: kafka or kinesis")
        return self

    def properties(self) -> dict[str, int]:
        """Entity properties under their canonical names."""
        found: dict[str, int | None] = {}
        if self.kafka:
            found = {"topic.partitions": self.kafka.partitions, "topic.replicas": self.kafka.replicas}
        if self.kinesis:
            found = {"topic.shards": self.kinesis.shards}
        return {name: value for name, value in found.items() if value is not None}

    def configs(self) -> dict[str, str]:
        """The entity's own settings in the store's words."""
        if self.kinesis:
            hours = self.kinesis.retention_hours
            found = {"stream.mode": self.kinesis.mode, "retention.hours": str(hours) if hours else None}
            return {name: value for name, value in found.items() if value is not None}
        return dict(self.kafka.configs or {}) if self.kafka else {}


class EntityEffective(View):
    """What the topic or stream has."""

    partitions: int | None = Field(None, description="Number of partitions.")
    replicas: int | None = Field(None, description="Replication factor.")
    shards: int | None = Field(None, description="Number of open shards; none on demand.")
    files: int | None = Field(None, description="Number of files of a directory, counted up to 10,000.")
    bytes: int | None = Field(None, description="Size of these files together.")
    format: str | None = Field(None, description="Format that most files' names tell.")
    configs: dict[str, str] = Field(default_factory=dict, description="Configuration of the topic or stream.")


class EntityView(View):
    """An entity, as it is in its store now."""

    name: str = Field(description="Name of the topic or stream, exact.")
    store: str = Field(description="Name of the store.")
    kafka: KafkaEntity | None = Field(None, description="Settings of a Kafka topic.")
    kinesis: KinesisEntity | None = Field(None, description="Settings of a Kinesis stream.")
    effective: EntityEffective = Field(description="What the topic or stream has.")

    @classmethod
    def from_domain(cls, item: Entity, store: str) -> EntityView:
        """The answer for an entity of a store."""
        configs = dict(item.configs)
        live: dict[str, Any] = {name.removeprefix("topic."): value for name, value in item.properties.items()}
        # Nothing of what was written is kept here: the store alone knows what the entity is.
        if "shards" in live:
            return cls(
                name=item.name,
                store=store,
                kafka=None,
                kinesis=KinesisEntity.model_construct(
                    shards=live["shards"],
                    mode=configs.get("stream.mode", "PROVISIONED"),
                    retention_hours=int(configs.get("retention.hours", 24)),
                ),
                effective=EntityEffective(**live, configs=configs),
            )
        if "partitions" not in live:
            told = {k: v for k, v in item.details.items() if k in EntityEffective.model_fields}
            effective = EntityEffective(**told, configs=configs)
            return cls(name=item.name, store=store, kafka=None, kinesis=None, effective=effective)
        return cls(
            name=item.name,
            store=store,
            kafka=KafkaEntity.model_construct(**live, configs=configs or None),
            kinesis=None,
            effective=EntityEffective(**live, configs=configs),
        )


class EntityList(View):
    """One page of entities."""

    items: list[EntityView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[Entity], store: str) -> EntityList:
        """The answer for a page."""
        items = [EntityView.from_domain(item, store) for item in page.items]
        return cls(items=items, next_page_token=page.next_page_token)


class HeaderView(View):
    """A header of a record."""

    name: str
    value: str | None = None
    value_encoding: str | None = Field(None, description="`base64` where the value is no text.")


class RecordView(View):
    """A record as it lies in the store."""

    key: Any = Field(None, description="JSON if it parses, else text.")
    key_encoding: str | None = Field(None, description="`base64` where the key is no text.")
    value: Any = Field(None, description="JSON if it parses, else text; null = tombstone.")
    value_encoding: str | None = Field(None, description="`base64` where the value is no text.")
    partition: int | str
    offset: int | str
    timestamp: int | None = Field(None, description="Epoch milliseconds.")
    headers: list[HeaderView] = Field(default_factory=list)
