"""What a statement's plan is made of, and its sources as they are now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leatstream.errors import MISSING, Position, RequestError, StoreError
from leatstream.model.names import Fqn, quote
from leatstream.model.objects import Relation, RelationKind
from leatstream.plan.logical import AnalyzedColumn, LogicalPlan
from leatstream.services.environment import Context, Environment
from leatstream.services.planning.binding import ContinuousStatement
from leatstream.services.planning.live_stores import LiveStores
from leatstream.services.planning.record_schemas import check_described
from leatstream.services.planning.table_relations import check_lookup_table
from leatstream.services.staging.catalog_view import CatalogView, qualify
from leatstream.sql.relation_properties import RelationProperties, canonical_name


@dataclass(slots=True)
class Draft:
    """A continuous statement, as far as the stages of its plan have come.

    Attributes:
        env: the environment.
        view: the catalog, with what is assumed.
        statement: as parsed.
        context: database, schema and store of the session.
        logical: the bound SELECT.
        live: the stores and entities that it is about.
        given: the sink's WITH, typed; empty for a view.
        places: canonical property name to where the user wrote it.
        analyzed: the SELECT's columns.
    """

    env: Environment
    view: CatalogView
    statement: ContinuousStatement
    context: Context
    logical: LogicalPlan = field(init=False)
    live: LiveStores = field(init=False)
    given: RelationProperties = field(default_factory=RelationProperties, init=False)
    places: Mapping[str, Position] = field(init=False)
    analyzed: list[AnalyzedColumn] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Take what the statement says of its places."""
        self.live = LiveStores(self.env, self.view)
        self.places = {canonical_name(k): v.position for k, v in self.statement.properties.items()}

    @property
    def where(self) -> Position:
        """Where the statement names the relation that it writes to."""
        return self.statement.name.position

    @property
    def properties(self) -> dict[str, Any]:
        """The sink's WITH as written, by canonical names."""
        return {canonical_name(k): v.value for k, v in self.statement.properties.items()}

    def place(self, name: str) -> dict[str, Any]:
        """Where a property stands, as arguments of a fault; of one that was left out, ``where``."""
        return {"position": self.places.get(name, self.where)}


def require_sources(live: LiveStores, view: CatalogView, logical: LogicalPlan) -> None:
    """Every source's entity exists or is planned; StoreError names one that does not.

    Args:
        live: stores and entities.
        view: the catalog.
        logical: the bound SELECT.
    """
    for scan in logical.scans:
        relation = scan.relation
        entity = live.source_entity(relation)
        if entity is None and not view.is_assumed(relation):
            raise entity_gone(relation, scan.position)
        connector = live.connector(relation.store)
        if relation.kind is RelationKind.TABLE:
            check_lookup_table(connector, relation, entity, scan.position)
            continue
        if entity is not None:
            connector.check_source(relation, entity, scan.position)
        check_described(live, relation, scan.position)


def entity_gone(relation: Relation, position: Position) -> StoreError:
    """What is said of a relation whose entity has been deleted."""
    return StoreError(
        "entity-not-found",
        f"'{relation.entity}', the entity behind {relation.fqn}, is no longer in store '{relation.store}'.",
        position=position,
        hint=f"Create '{relation.entity}' again, or declare {relation.fqn} over another entity.",
    )


def new_name(draft: Draft) -> Fqn:
    """The full name of the relation that CREATE … AS makes; RequestError if its schema does not exist."""
    fqn = qualify(draft.statement.name, draft.context)
    if not draft.view.has_schema(fqn.database, fqn.schema):
        known = draft.view.has_database(fqn.database)
        noun = "schema" if known else "database"
        shown = f"{quote(fqn.database)}.{quote(fqn.schema)}" if known else quote(fqn.database)
        raise RequestError(
            "unknown-relation",
            f"{noun} {shown} does not exist.",
            position=draft.where,
            sqlstate=MISSING[noun],
        )
    return fqn


def refuse_loop(draft: Draft, store: str, entity: str, position: Position) -> None:
    """Refuse a query that writes to an entity which it reads.

    Args:
        draft: the statement.
        store: that the query writes to.
        entity: that the query writes to.
        position: where the user named it.
    """
    for scan in draft.logical.scans:
        if (scan.relation.store, scan.relation.entity) == (store, entity):
            raise RequestError(
                "invalid-property",
                f"The sink's entity '{entity}' in store '{store}' is also read by this query (as "
                f"{scan.relation.fqn}), which would feed it with its own output for ever.",
                position=position,
                hint="Write to another topic.",
            )
