"""Stores and their live entities as one planning run sees them, each asked once."""

from __future__ import annotations

from dataclasses import dataclass, field

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import Entity
from leatstream.errors import Position, RequestError
from leatstream.formats.registry_client import RegistryClient
from leatstream.model.names import quote
from leatstream.model.objects import Relation, Store
from leatstream.model.registered import SchemaRegistry
from leatstream.services.environment import Environment
from leatstream.services.staging.catalog_view import CatalogView


@dataclass(slots=True)
class LiveStores:
    """Reads stores from the catalog view and entities from the stores, and remembers both."""

    env: Environment
    view: CatalogView
    stores: dict[str, Store] = field(default_factory=dict)
    _connectors: dict[str, Connector] = field(default_factory=dict)
    _entities: dict[tuple[str, str], Entity | None] = field(default_factory=dict)
    _registries: dict[str, RegistryClient] = field(default_factory=dict)

    def store(self, name: str, position: Position | None = None) -> Store:
        """The store; RequestError if there is none of this name."""
        if name not in self.stores:
            self.stores[name] = self.view.require_store(name, position)
        return self.stores[name]

    def connector(self, name: str) -> Connector:
        """The store's connector."""
        if name not in self._connectors:
            self._connectors[name] = self.env.connect(self.store(name))
        return self._connectors[name]

    def registry(self, store: str) -> SchemaRegistry | None:
        """The schema registry that the store names, or None."""
        return self.view.registry_of(self.store(store))

    def registry_client(self, store: str, format_: str, position: Position | None = None) -> RegistryClient:
        """A client of the store's schema registry.

        Args:
            store: name of the store.
            format_: of the records.
            position: where a fault is shown.

        Raises:
            RequestError: property-required, the store names none and the format needs one.
        """
        registry = self.registry(store)
        if registry is None:
            raise RequestError(
                "property-required",
                f"{format_} needs a schema registry, and store {quote(store)} names none.",
                position=position,
                hint=f"UPDATE STORE {quote(store)} WITH ('schema_registry.name' = …), or another format",
            )
        if registry.name not in self._registries:
            self._registries[registry.name] = self.view.open_registry(self.env, registry)
        return self._registries[registry.name]

    def entity(self, store: str, entity: str) -> Entity | None:
        """The live entity as the same plan leaves it, or one that it makes, or None."""
        key = (store, entity)
        if key not in self._entities:
            live = self.connector(store).find_entity(entity, self.env.settings.store_timeout)
            planned = self.view.planned_entity(store, entity)
            self._entities[key] = planned if live is None else live.planned(planned)
        return self._entities[key]

    def source_entity(self, relation: Relation) -> Entity | None:
        """The live entity; where a plan or a query is still to make it, what the plan says of it."""
        found = self.entity(relation.store, relation.entity)
        if found is None and (self.view.is_assumed(relation) or self._to_be_made(relation)):
            declared = self.connector(relation.store).entity_properties
            planned = {
                p.name: relation.effective[p.name].value for p in declared if p.name in relation.effective
            }
            return Entity(relation.entity, planned) if planned or not declared else None
        return found

    def _to_be_made(self, relation: Relation) -> bool:
        """Whether a query has yet to create the entity; a deleted one is not created again."""
        maker = relation.created_by_query
        query = self.view.unit.queries.find_by_id(maker) if maker is not None else None
        return query is not None and not query.status.entity_ready
