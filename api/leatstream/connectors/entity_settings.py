"""Properties and settings of a store's entities: a pydantic model for each kind that has any.

REST takes and shows the model as it is. Marks say which field is a property that sinks need, and which one is
a setting in the store's own words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from leatstream.connectors.entities import Entity, Table
from leatstream.connectors.settings import NAME_PATTERN, bare_type, mark, terraform

Name = Annotated[str, Field(min_length=1, max_length=255, pattern=NAME_PATTERN)]


@dataclass(frozen=True, slots=True)
class Property:
    """The field is the entity property of this name, such as ``topic.partitions``."""

    name: str


@dataclass(frozen=True, slots=True)
class Config:
    """The field is the entity's setting of this name in the store's words, such as ``retention.hours``.

    Attributes:
        default: what the store has where it shows none.
    """

    name: str
    default: str | int | None = None


class Configs:
    """The field is a map of all settings in the store's words."""


class EntitySettings(BaseModel):
    """Properties and settings of an entity; all may be left out.

    Attributes:
        example: one, for the API's documentation.
    """

    model_config = ConfigDict(extra="forbid")

    example: ClassVar[Mapping[str, Any]]

    def entity_properties(self) -> dict[str, int]:
        """Entity properties under their canonical names."""
        given = ((mark(f, Property), getattr(self, name)) for name, f in type(self).model_fields.items())
        return {found.name: value for found, value in given if found is not None and value is not None}

    def entity_configs(self) -> dict[str, str]:
        """The entity's own settings in the store's words."""
        found: dict[str, str] = {}
        for name, field in type(self).model_fields.items():
            value, config = getattr(self, name), mark(field, Config)
            if value is not None and config is not None:
                found[config.name] = str(value)
            elif value is not None and mark(field, Configs) is not None:
                found |= value
        return found

    @classmethod
    def shown(cls, entity: Entity) -> Self:
        """The settings of an entity, as its store has it now; nothing of what was written is kept."""
        return cls.model_construct(**cls._live(entity))

    @classmethod
    def _live(cls, entity: Entity) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, field in cls.model_fields.items():
            prop, config = mark(field, Property), mark(field, Config)
            if prop is not None:
                found[name] = entity.properties.get(prop.name)
            elif config is not None:
                value = entity.configs.get(config.name, config.default)
                found[name] = int(value) if value is not None and bare_type(field) is int else value
            elif mark(field, Configs) is not None:
                found[name] = dict(entity.configs) or None
        return found


class TableColumnBody(BaseModel):
    """A column of a table."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(description="Name of the column, exact.")
    type: Annotated[str, Field(min_length=1, max_length=4000)] = Field(
        description="SQL type, such as `BIGINT`.", json_schema_extra=terraform(semantic="type")
    )
    not_null: StrictBool = Field(
        False,
        description="Whether a value is required; columns of the primary key need no word of it.",
        json_schema_extra=terraform(semantic="unless_key"),
    )


class TableSettings(EntitySettings):
    """Columns and key of a table."""

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

    @classmethod
    def _live(cls, entity: Entity) -> dict[str, Any]:
        return super()._live(entity) | (_shape(entity.table) if entity.table is not None else {})


def _shape(table: Table) -> dict[str, Any]:
    columns = [
        TableColumnBody.model_construct(
            name=column.name,
            type=str(column.type),
            # The key says so already.
            not_null=column.not_null and column.name not in table.primary_key,
        )
        for column in table.columns
    ]
    return {"columns": columns or None, "primary_key": list(table.primary_key) or None}
