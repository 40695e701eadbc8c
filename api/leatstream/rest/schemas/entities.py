"""Entities of stores: topics, data streams, directories and tables so far."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from leatstream.connectors.entities import Entity
from leatstream.connectors.entity_settings import EntitySettings, TableSettings
from leatstream.connectors.registry import connector_classes
from leatstream.errors import Faults
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.rest.schemas.base import Body, View, terraform
from leatstream.rest.schemas.kinds import effective_members, entity_member, with_kinds, with_members
from leatstream.services.environment import Page
from leatstream.services.relations.table_shapes import TableShape

_KINDS = {
    kind: found.EntityConfig for kind, found in connector_classes().items() if found.EntityConfig is not None
}


@with_kinds(entity_member)
class EntityKinds(BaseModel):
    """A typed object per store kind; an entity has at most one of them."""


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
        | {"examples": [{kind: dict(model.example)} for kind, model in _KINDS.items()]}
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if sum(getattr(self, kind) is not None for kind in _KINDS) > 1:
            raise ValueError(f"an entity has at most one object that sets its kind: {', '.join(_KINDS)}")
        return self

    @property
    def _given(self) -> tuple[str, EntitySettings] | None:
        return next(((kind, given) for kind in _KINDS if (given := getattr(self, kind)) is not None), None)

    def properties(self) -> dict[str, int]:
        """Entity properties under their canonical names."""
        return self._given[1].entity_properties() if self._given else {}

    def configs(self) -> dict[str, str]:
        """The entity's own settings in the store's words."""
        return self._given[1].entity_configs() if self._given else {}

    def shape(self) -> TableShape | None:
        """Columns and key of a table.

        Raises:
            RequestError: type-mismatch, with every type that there is not.
        """
        kind, given = self._given or ("", None)
        if not isinstance(given, TableSettings) or given.columns is None:
            return None
        faults = Faults()
        columns: list[Column] = []
        for index, column in enumerate(given.columns):
            try:
                columns.append(Column(column.name, parse_type(column.type), column.not_null))
            except ValueError as error:
                faults.add("type-mismatch", str(error), pointer=f"#/{kind}/columns/{index}/type")
        faults.raise_if_any()
        return TableShape(tuple(columns), tuple(given.primary_key or ()))


@with_members(effective_members())
class _Properties(View):
    """Entity properties of every kind."""


class EntityEffective(_Properties):
    """What the topic, stream or table has."""

    files: int | None = Field(None, description="Number of files of a directory, counted up to 10,000.")
    rows: int | None = Field(None, description="Rows of a table, as the server estimates them.")
    bytes: int | None = Field(None, description="Size of the files, or of the table with its indexes.")
    format: str | None = Field(None, description="Format that most files' names tell.")
    configs: dict[str, str] = Field(
        default_factory=dict, description="Configuration of the topic, stream or table."
    )


@with_kinds(entity_member)
class _KindView(View):
    name: str = Field(description="Name of the topic, stream or table, exact.")
    store: str = Field(description="Name of the store.")


class EntityView(_KindView):
    """An entity, as it is in its store now."""

    effective: EntityEffective = Field(description="What the topic, stream or table has.")

    @classmethod
    def from_domain(cls, item: Entity, store: str) -> EntityView:
        """The answer for an entity of a store."""
        model = _KINDS.get(item.kind)
        shown: dict[str, Any] = {item.kind: model.shown(item)} if model else {}
        details = {**item.details, **(item.table.details if item.table else {})}
        known = {name: value for name, value in details.items() if name in EntityEffective.model_fields}
        known |= {name.rpartition(".")[2]: value for name, value in item.properties.items()}
        effective = EntityEffective(**known, configs=dict(item.configs))
        return cls(name=item.name, store=store, effective=effective, **shown)


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
