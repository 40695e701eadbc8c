"""Entities of stores: topics, data streams, directories and tables so far."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, model_validator

from leatstream.connectors.entities import Entity, Table
from leatstream.errors import Faults
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.rest.schemas.base import Body, Name, View, terraform
from leatstream.services.environment import Page
from leatstream.services.relations.table_shapes import TableShape

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


class TableColumnBody(Body):
    """A column of a table."""

    name: Name = Field(description="Name of the column, exact.")
    type: Annotated[str, Field(min_length=1, max_length=4000)] = Field(
        description="SQL type, such as `BIGINT`.", json_schema_extra=terraform(semantic="type")
    )
    not_null: StrictBool = Field(
        False,
        description="Whether a value is required; columns of the primary key need no word of it.",
        json_schema_extra=terraform(semantic="unless_key"),
    )


class PostgresEntity(Body):
    """Columns, key and settings of a table."""

    columns: Annotated[list[TableColumnBody], Field(max_length=1600)] | None = Field(
        None,
        description="Columns; required to create a table.",
        json_schema_extra=terraform(replace=True),
    )
    primary_key: Annotated[list[Name], Field(max_length=32)] | None = Field(
        None,
        description="Names of the columns that identify a row.",
        json_schema_extra=terraform(replace=True),
    )
    replica_identity: Literal["default", "full", "nothing"] | None = Field(
        None, description="What the log tells of old rows; default `default`: their primary key."
    )


class EntityKinds(BaseModel):
    """A typed object per store kind; an entity has at most one of them."""

    kafka: KafkaEntity | None = Field(None, description="Settings of a Kafka topic.")
    kinesis: KinesisEntity | None = Field(None, description="Settings of a Kinesis stream.")
    postgres: PostgresEntity | None = Field(None, description="Columns, key and settings of a table.")


class EntityBody(EntityKinds, Body):
    """An entity: a topic, data stream, directory of files or table in a store of yours.

    Destroying the resource deletes the topic, stream, directory or table and its records.
    """

    model_config = ConfigDict(
        json_schema_extra=terraform(
            resource="leatstream_entity",
            path="/v1/stores/{store}/entities/{name:raw}",
            key=["store", "name"],
            path_attributes={
                "store": "Name of the store.",
                "name": "Name of the topic, stream or table, exact.",
            },
            assume="entities",
            live=True,
            attributes={"effective": {"volatile": True}},
            **{"import": "{store}/{name:raw}"},
        )
        | {
            "examples": [
                {"kafka": {"partitions": 3, "replicas": 1, "configs": {"retention.ms": "86400000"}}},
                {"kinesis": {"shards": 2, "retention_hours": 48}},
                {"postgres": {"columns": [{"name": "id", "type": "BIGINT"}], "primary_key": ["id"]}},
            ]
        }
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if sum(kind is not None for kind in (self.kafka, self.kinesis, self.postgres)) > 1:
            raise ValueError(
                "an entity has at most one object that tells its kind: kafka, kinesis or postgres"
            )
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
        if self.postgres:
            identity = self.postgres.replica_identity
            return {"replica.identity": identity} if identity else {}
        return dict(self.kafka.configs or {}) if self.kafka else {}

    def shape(self) -> TableShape | None:
        """Columns and key of a table.

        Raises:
            RequestError: type-mismatch, with every type that there is not.
        """
        if self.postgres is None or self.postgres.columns is None:
            return None
        faults = Faults()
        columns: list[Column] = []
        for index, column in enumerate(self.postgres.columns):
            try:
                columns.append(Column(column.name, parse_type(column.type), column.not_null))
            except ValueError as error:
                faults.add("type-mismatch", str(error), pointer=f"#/postgres/columns/{index}/type")
        faults.raise_if_any()
        return TableShape(tuple(columns), tuple(self.postgres.primary_key or ()))


class EntityEffective(View):
    """What the topic, stream or table has."""

    partitions: int | None = Field(None, description="Number of partitions.")
    replicas: int | None = Field(None, description="Replication factor.")
    shards: int | None = Field(None, description="Number of open shards; none on demand.")
    files: int | None = Field(None, description="Number of files of a directory, counted up to 10,000.")
    rows: int | None = Field(None, description="Rows of a table, as the server estimates them.")
    bytes: int | None = Field(None, description="Size of the files, or of the table with its indexes.")
    format: str | None = Field(None, description="Format that most files' names tell.")
    configs: dict[str, str] = Field(
        default_factory=dict, description="Configuration of the topic, stream or table."
    )


class EntityView(View):
    """An entity, as it is in its store now."""

    name: str = Field(description="Name of the topic, stream or table, exact.")
    store: str = Field(description="Name of the store.")
    kafka: KafkaEntity | None = Field(None, description="Settings of a Kafka topic.")
    kinesis: KinesisEntity | None = Field(None, description="Settings of a Kinesis stream.")
    postgres: PostgresEntity | None = Field(None, description="Columns, key and settings of a table.")
    effective: EntityEffective = Field(description="What the topic, stream or table has.")

    @classmethod
    def from_domain(cls, item: Entity, store: str) -> EntityView:
        """The answer for an entity of a store."""
        configs = dict(item.configs)
        live: dict[str, Any] = {name.removeprefix("topic."): value for name, value in item.properties.items()}
        if item.table is not None:
            return cls(
                name=item.name,
                store=store,
                kafka=None,
                kinesis=None,
                postgres=_table(item.table, configs),
                effective=EntityEffective.model_construct(
                    rows=cast(int | None, item.table.details.get("rows")),
                    bytes=cast(int | None, item.table.details.get("bytes")),
                    configs=configs,
                ),
            )
        # Nothing of what was written is kept here: the store alone knows what the entity is.
        if "shards" in live:
            return cls(
                name=item.name,
                store=store,
                kafka=None,
                postgres=None,
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
            return cls(
                name=item.name, store=store, kafka=None, kinesis=None, postgres=None, effective=effective
            )
        return cls(
            name=item.name,
            store=store,
            kafka=KafkaEntity.model_construct(**live, configs=configs or None),
            kinesis=None,
            postgres=None,
            effective=EntityEffective(**live, configs=configs),
        )


def _table(table: Table, configs: dict[str, str]) -> PostgresEntity:
    columns = [
        TableColumnBody.model_construct(
            name=column.name,
            type=str(column.type),
            # The key says so already.
            not_null=column.not_null and column.name not in table.primary_key,
        )
        for column in table.columns
    ]
    return PostgresEntity.model_construct(
        columns=columns or None,
        primary_key=list(table.primary_key) or None,
        replica_identity=configs.get("replica.identity"),
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
