"""What a statement's plan is made of, and its sources as they are now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from leatstream.errors import Position, StoreError
from leatstream.model.objects import Relation, RelationKind
from leatstream.plan.logical import AnalyzedColumn, LogicalPlan
from leatstream.services.environment import Context, Environment
from leatstream.services.planning.live_stores import LiveStores
from leatstream.services.planning.record_schemas import check_described
from leatstream.services.planning.table_relations import check_lookup_table
from leatstream.services.staging.catalog_view import CatalogView
from leatstream.sql.relation_properties import RelationProperties


@dataclass(frozen=True, slots=True)
class Draft:
    """A statement on its way to a plan.

    Attributes:
        given: the sink's WITH, typed.
        places: canonical property name to where the user wrote it.
        analyzed: the SELECT's columns.
    """

    env: Environment
    view: CatalogView
    context: Context
    live: LiveStores
    logical: LogicalPlan
    given: RelationProperties
    places: Mapping[str, Position]
    analyzed: list[AnalyzedColumn]


def require_sources(draft: Draft) -> None:
    """Every source's entity is there or planned; StoreError names one that is gone."""
    for scan in draft.logical.scans:
        relation = scan.relation
        entity = draft.live.source_entity(relation)
        if entity is None and not draft.view.is_assumed(relation):
            raise entity_gone(relation, scan.position)
        connector = draft.live.connector(relation.store)
        if relation.kind is RelationKind.TABLE:
            check_lookup_table(connector, relation, entity, scan.position)
            continue
        if entity is not None:
            connector.check_source(relation, entity, scan.position)
        check_described(draft.live, relation, scan.position)


def entity_gone(relation: Relation, position: Position) -> StoreError:
    """What is said of a relation whose entity has been deleted."""
    return StoreError(
        "entity-not-found",
        f"'{relation.entity}', the entity behind {relation.fqn}, is no longer in store '{relation.store}'.",
        position=position,
        hint=f"Create '{relation.entity}' again, or declare {relation.fqn} over another entity.",
    )
