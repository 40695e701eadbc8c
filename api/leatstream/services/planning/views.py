"""The plan of CREATE MATERIALIZED VIEW … AS SELECT, whose rows leatstream's own database or a store holds."""

from __future__ import annotations

from collections.abc import Sequence

from leatstream.connectors.registry import kinds_that
from leatstream.errors import CatalogError, Faults, Position, RequestError, sentence
from leatstream.model.names import Fqn, quote
from leatstream.model.objects import Column, Effective, Origin, Relation, RelationKind
from leatstream.model.types import DataType
from leatstream.plan.job_spec import ColumnSpec, SinkSpec, StoreRef, ViewSpec
from leatstream.services.environment import Environment
from leatstream.services.planning.draft import Draft
from leatstream.services.planning.query_properties import REPLACE_MODE, is_blue_green
from leatstream.services.planning.table_sinks import TABLE_FORMAT
from leatstream.services.staging.catalog_view import assumed_meta
from leatstream.sql.statements import CreateMaterializedViewAs
from leatstream.sql.view_properties import ViewProperties

VIEW_STORE = StoreRef(name="", kind="view", config={})


def view_relation(
    env: Environment,
    statement: CreateMaterializedViewAs,
    fqn: Fqn,
    columns: tuple[Column, ...],
    keys: tuple[str, ...],
    given: ViewProperties,
    entity: str = "",
) -> Relation:
    """The relation that a statement makes; meta is to be replaced.

    Args:
        env: the environment.
        statement: as it was read.
        fqn: full name of the view.
        columns: of the view.
        keys: its primary key; empty = every row is kept.
        given: properties of the view.
        entity: its name in the store that holds it, if there is one.

    Raises:
        RequestError: a column is of a type that a view cannot hold, or views cannot be kept at all.
    """
    if given.store is None and env.views.unusable is not None:
        raise RequestError("unsupported", sentence(env.views.unusable), position=statement.name.position)
    _check_columns(columns, statement.name.position)
    # A group's row replaces the one before; without groups every row is kept.
    effective = {"view.mode": Effective("upsert" if keys else "append", Origin.DEFAULT)}
    if given.retention_ms is not None:
        effective["retention"] = Effective(statement.properties["retention"].value, Origin.EXPLICIT)
    return Relation(
        meta=assumed_meta(env.clock.now(), str(fqn)),
        fqn=fqn,
        kind=RelationKind.MATERIALIZED_VIEW,
        columns=columns,
        store=given.store or "",
        entity=entity,
        value_format="",
        properties={k: v.value for k, v in statement.properties.items()},
        effective=effective,
        primary_key=keys,
        comment=statement.comment,
    )


def stored_view(draft: Draft, fqn: Fqn, given: ViewProperties) -> str:
    """The name of a view in the store that holds it; empty where it is in leatstream's own database.

    Args:
        draft: of the statement.
        fqn: full name of the view.
        given: properties of the view.

    Raises:
        RequestError: the store cannot hold views, or not one of this name.
    """
    if given.store is None:
        return ""
    where = draft.places["store"]
    store, connector = draft.live.store(given.store, where), draft.live.connector(given.store)
    if not connector.capabilities.view:
        raise RequestError(
            "unsupported",
            f"Stores of kind {store.kind} hold no materialized views.",
            position=where,
            hint=f"Name a store of kind {kinds_that('view')}, or leave 'store' out.",
        )
    faults = Faults()
    entity, wrong = connector.named_entity(given.names, fqn.name)
    for fault in wrong:
        faults.add("invalid-property", fault.detail, hint=fault.hint, position=draft.places[fault.name])
    entity = connector.canonical_entity(entity)
    named = draft.places.get(connector.table_names[-1], draft.where)
    if (why := connector.entity_name_fault(entity)) is not None:
        detail = f"Store {quote(store.name)} cannot have a view '{entity}': {why}."
        faults.add("invalid-property", detail, position=named)
    relations = draft.view.unit.unfiltered.relations.page(limit=100_000)
    taken = [r for r in relations if (r.store, r.entity) == (store.name, entity) and r.fqn != fqn]
    if taken or draft.live.entity(store.name, entity) is not None:
        owner = f", of {taken[0].fqn}" if taken else ""
        detail = f"'{entity}' exists already in store {quote(store.name)}{owner}: a view has its own name."
        hint = f"Write '{connector.table_names[-1]}' = '…'"
        faults.add("invalid-property", detail, hint=hint, position=named)
    faults.raise_if_any()
    return entity


def refuse_another_shape(draft: Draft, sink: Relation) -> None:
    """Refuse OR REPLACE where a store holds the old view or the new one, and they differ in more than rows.

    A query beside the old one fills rows of its own: those may have another shape, in the same place.

    Raises:
        CatalogError: requires-replacement.
    """
    old = draft.view.find_relation(sink.fqn)
    if old is None or old.kind is not RelationKind.MATERIALIZED_VIEW or not (old.store or sink.store):
        return
    moved = (old.store, old.entity) != (sink.store, sink.entity)
    beside = is_blue_green(draft.statement.query_properties)
    if moved or (_shape(old) != _shape(sink) and not beside):
        what = "place cannot change" if moved else "columns, key and retention cannot change in place"
        hint = f"DROP MATERIALIZED VIEW {sink.fqn} first, or create another one beside it"
        if not moved:
            hint = f"Write QUERY WITH ('{REPLACE_MODE}' = 'blue_green') at the end."
        raise CatalogError(
            "requires-replacement",
            f"{sink.fqn} is held by a store: its {what}.",
            position=draft.where,
            hint=hint,
        )


def _shape(view: Relation) -> tuple[object, ...]:
    columns = tuple((c.name, c.type, c.not_null) for c in view.columns)
    return columns, view.primary_key, view.properties.get("retention")


def view_sink(
    sink: Relation, given: ViewProperties, *, deletes: bool, store: StoreRef | None = None
) -> SinkSpec:
    """Where the job writes; the table and its database are filled in when it is handed to a driver.

    Args:
        sink: the view.
        given: its properties.
        deletes: whether the job removes rows.
        store: the store that holds it; None = leatstream's own database.
    """
    return SinkSpec(
        relation=str(sink.fqn),
        store=store or VIEW_STORE,
        entity=sink.entity,
        columns=[ColumnSpec(name=c.name, type=str(c.type), not_null=c.not_null) for c in sink.columns],
        value_format="" if store is None else TABLE_FORMAT,
        key_columns=list(sink.primary_key),
        deletes=deletes,
        view=ViewSpec(retention_ms=given.retention_ms) if store is None else None,
        stored_view=store is not None,
        retention_ms=given.retention_ms if store is not None else None,
    )


def _check_columns(columns: Sequence[Column], position: Position) -> None:
    faults = Faults()
    for column in columns:
        if _odd_map(column.type):
            faults.add(
                "type-mismatch",
                f"Column {quote(column.name)} is {column.type}; in a view a map has VARCHAR keys.",
                position=position,
            )
    faults.raise_if_any()


def _odd_map(kind: DataType) -> bool:
    wrong = kind.kind == "MAP" and kind.arguments[0].kind != "VARCHAR"
    return wrong or any(map(_odd_map, kind.arguments))
