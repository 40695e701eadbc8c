"""A shelf of toys in memory. Queries can only write to it, and three sub-kinds can do even less."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from leatstream.connectors.base import Connector
from leatstream.connectors.capabilities import Capabilities, EntityProperty, Guarantee
from leatstream.connectors.entities import Entity
from leatstream.connectors.entity_settings import EntitySettings
from leatstream.connectors.settings import StoreSettings
from leatstream.connectors.store_words import StoreWords
from toy_kind.settings import ToyConfig, ToyEntity

_ONCE = (Guarantee("at_least_once", "toys may be put back twice"),)


class ToyConnector(Connector):
    """A kind that is a sink and no source."""

    kind: ClassVar[str] = "toy"
    entity_noun: ClassVar[str] = "toy"
    capabilities: ClassVar[Capabilities] = Capabilities(
        sink=True, create_as=True, create_entity=True, batches=True, delivery=_ONCE
    )
    Config: ClassVar[type[StoreSettings]] = ToyConfig
    words: ClassVar[StoreWords] = StoreWords(
        types=("toy", "plaything"), title="a toy store", unsupported={"toy.box": "write 'toy.shelf'"}
    )
    entity_properties: ClassVar[tuple[EntityProperty, ...]] = (
        EntityProperty("toy.wheels", ("wheels.of.toy",), description="Number of wheels."),
    )
    EntityConfig: ClassVar[type[EntitySettings] | None] = ToyEntity
    entity_configs: ClassVar[Mapping[str, str]] = {"toy.sound": "sound"}
    property_families: ClassVar[tuple[str, ...]] = ("toy.",)
    shelf: ClassVar[dict[str, Entity]] = {}

    def test(self, timeout: float) -> None:
        """The shelf is always there."""

    def list_entities(self, timeout: float = 5.0) -> list[Entity]:
        """All toys."""
        return list(self.shelf.values())

    def find_entity(self, entity: str, timeout: float = 5.0) -> Entity | None:
        """One toy."""
        return self.shelf.get(entity)

    def create_entity(
        self, entity: str, properties: Mapping[str, int], configs: Mapping[str, str], timeout: float = 10.0
    ) -> None:
        """Put it on the shelf."""
        self.shelf[entity] = Entity(entity, dict(properties), dict(configs))

    def drop_entity(self, entity: str, timeout: float = 10.0) -> None:
        """Throw it away."""
        self.shelf.pop(entity, None)


class ToySource(ToyConnector):
    """A kind that is a source and no sink."""

    kind: ClassVar[str] = "toy_source"
    capabilities: ClassVar[Capabilities] = Capabilities(source=True)
    words: ClassVar[StoreWords] = StoreWords(types=("toy_source",), title="a toy source")


class ToyViews(ToyConnector):
    """A kind that holds materialized views and nothing else."""

    kind: ClassVar[str] = "toy_views"
    capabilities: ClassVar[Capabilities] = Capabilities(view=True)
    words: ClassVar[StoreWords] = StoreWords(types=("toy_views",), title="a toy for views")
