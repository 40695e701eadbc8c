"""Materialized views: their indexes and their end. Queries make them: see ``planning.views``."""

from __future__ import annotations

from dataclasses import replace

from leatstream.errors import (
    CatalogError,
    Faults,
    Position,
    RequestError,
    StoreError,
    already_exists,
    not_found,
)
from leatstream.model.names import Fqn, did_you_mean, quote
from leatstream.model.objects import Query, Relation, RelationKind, Store, ViewIndex
from leatstream.ports import UnitOfWork
from leatstream.services.environment import (
    Context,
    Environment,
    Principal,
    next_meta,
    rows_version,
    view_table,
)
from leatstream.services.environment.authorization import READ, WRITE, authorize
from leatstream.services.queries.removal import delete_query, wait_gone
from leatstream.services.queries.stored_views import indexed
from leatstream.services.relations.relations import require_relation
from leatstream.services.staging.catalog_view import CatalogView, qualify
from leatstream.sql import statements as ast

_MOST_INDEXES, _MOST_COLUMNS = 16, 16


def shown_kind(relation: Relation) -> str:
    """The relation's kind in people's words."""
    return relation.kind.value.replace("_", " ")


def refuse_other_kind(relation: Relation, noun: str, verb: str, position: Position | None) -> None:
    """Refuse a statement whose word for the relation is another kind's.

    Args:
        relation: what the name stands for.
        noun: the statement's word, such as ``table``; ``relation`` fits every kind.
        verb: the statement up to it, for the hint.
        position: of the name.

    Raises:
        RequestError: validation, SQLSTATE 42809.
    """
    if noun in ("relation", relation.kind.value):
        return
    kind = shown_kind(relation)
    raise RequestError(
        "validation",
        f"{relation.fqn} is a {kind}, not a {noun.replace('_', ' ')}.",
        position=position,
        hint=f"{verb} {kind.upper()} {relation.fqn}",
        sqlstate="42809",
    )


def is_view(env: Environment, principal: Principal, fqn: Fqn, statement: ast.Drop) -> bool:
    """Whether DROP … is about a materialized view; RequestError if it names another kind.

    Args:
        env: the environment.
        principal: who asks.
        fqn: full name of the object.
        statement: as it was read.
    """
    authorize(principal, READ, "relation", str(fqn))
    with env.open_unit(write=False) as unit:
        relation = require_relation(unit, fqn)
    refuse_other_kind(relation, statement.noun, "DROP", statement.name.position)
    return relation.kind is RelationKind.MATERIALIZED_VIEW


def keeper(unit: UnitOfWork, relation: Relation) -> Query:
    """The query that keeps a view."""
    found = unit.unfiltered.queries.find_by_id(relation.created_by_query or "")
    if found is None:
        raise CatalogError("not-found", f"The query that keeps {relation.fqn} does not exist.", noun="query")
    return found


def drop_view(env: Environment, principal: Principal, fqn: Fqn, deadline: float) -> bool:
    """End the query that keeps a view, and remove its rows and checkpoint; whether it is already deleted.

    Args:
        env: the environment.
        principal: who asks.
        fqn: of the view.
        deadline: until when to wait, on the monotonic clock.
    """
    with env.open_unit(write=False) as unit:
        name = keeper(unit, require_relation(unit, fqn)).name
    if delete_query(env, principal, name) is None:
        return True
    return wait_gone(env, lambda unit: unit.relations.find(str(fqn)) is not None, deadline)


def index_fqn(statement: ast.CreateIndex, context: Context) -> Fqn:
    """An index lives in the schema of its view."""
    view = qualify(statement.view, context)
    return Fqn(view.database, view.schema, statement.name.parts[0])


def find_index(unit: UnitOfWork, fqn: Fqn) -> tuple[Relation, ViewIndex] | None:
    """The index of this name and its view, or None."""
    prefix = f"{quote(fqn.database)}.{quote(fqn.schema)}."
    for relation in unit.unfiltered.relations.page(prefix=prefix, limit=100_000):
        for index in relation.indexes:
            if index.name == fqn.name:
                return relation, index
    return None


def require_index(unit: UnitOfWork, fqn: Fqn) -> tuple[Relation, ViewIndex]:
    """The index and its view; CatalogError not-found."""
    found = find_index(unit, fqn)
    if found is None:
        raise not_found("index", str(fqn))
    return found


def check_index(view: Relation, statement: ast.CreateIndex) -> tuple[str, ...]:
    """The columns of a new index.

    Raises:
        RequestError: the relation is no view, or columns that it has not; every fault at once.
    """
    if view.kind is not RelationKind.MATERIALIZED_VIEW:
        raise RequestError(
            "unsupported",
            f"{view.fqn} is a {shown_kind(view)}; only materialized views have indexes.",
            position=statement.view.position,
        )
    faults = Faults()
    known = [column.name for column in view.columns]
    names = [name.parts[0] for name in statement.columns]
    for name, given in zip(names, statement.columns, strict=True):
        if name not in known:
            detail, near = f"{view.fqn} has no column {quote(name)}.", did_you_mean(name, known)
            faults.add("unknown-column", detail, position=given.position, hint=near)
        elif names.count(name) > 1:
            faults.add("validation", f"Column {quote(name)} stands twice.", position=given.position)
    if len(names) > _MOST_COLUMNS:
        detail = f"An index has at most {_MOST_COLUMNS} columns."
        faults.add("too-complex", detail, position=statement.name.position)
    if len(view.indexes) >= _MOST_INDEXES:
        detail = f"A materialized view has at most {_MOST_INDEXES} indexes."
        faults.add("too-complex", detail, position=statement.name.position)
    faults.raise_if_any()
    return tuple(names)


def create_index(env: Environment, principal: Principal, statement: ast.CreateIndex, context: Context) -> str:
    """Make an index; its full name.

    Args:
        env: the environment.
        principal: who asks.
        statement: as it was read.
        context: database, schema and store of the session.
    """
    fqn, target = index_fqn(statement, context), qualify(statement.view, context)
    authorize(principal, WRITE, "materialized view", str(target))
    with env.open_unit() as unit:
        view = CatalogView(unit).resolve(statement.view, context)
        if find_index(unit, fqn) is not None:
            if statement.if_not_exists:
                return str(fqn)
            raise already_exists("index", str(fqn))
        names = check_index(view, statement)
        query = keeper(unit, view)
        indexes = (*view.indexes, ViewIndex(fqn.name, names))
        unit.relations.update(replace(view, meta=next_meta(view.meta, env.clock.now()), indexes=indexes))
        unit.commit()
    try:
        _add(env, view, query, ViewIndex(fqn.name, names))
    except StoreError:
        _take_out(env, fqn)
        raise
    env.changed.notify()
    return str(fqn)


def drop_index(env: Environment, principal: Principal, fqn: Fqn) -> str:
    """Remove an index; its full name. CatalogError not-found.

    Args:
        env: the environment.
        principal: who asks.
        fqn: full name of the index.
    """
    authorize(principal, WRITE, "index", str(fqn))
    with env.open_unit(write=False) as unit:
        view, _ = require_index(unit, fqn)
        query = keeper(unit, view)
    # What the catalog forgets first could not be dropped again where this fails.
    store = _store_of(env, view)
    if store is None:
        env.views.drop_index(view_table(query), fqn.name)
    else:
        env.connect(store).drop_view_index(view.entity, rows_version(query), fqn.name)
    _take_out(env, fqn)
    env.changed.notify()
    return str(fqn)


def _add(env: Environment, view: Relation, query: Query, index: ViewIndex) -> None:
    """Make an index where the view's rows are."""
    store = _store_of(env, view)
    if store is None:
        places = [column.name for column in view.columns]
        env.views.add_index(view_table(query), index.name, [places.index(name) for name in index.columns])
    else:
        columns = indexed(view, index)
        env.connect(store).add_view_index(view.entity, rows_version(query), index.name, columns)


def _store_of(env: Environment, view: Relation) -> Store | None:
    """The store that holds a view; None for leatstream's own database."""
    if not view.store:
        return None
    with env.open_unit(write=False) as unit:
        found = unit.unfiltered.stores.find(view.store)
    if found is None:
        raise not_found("store", view.store)
    return found


def _take_out(env: Environment, fqn: Fqn) -> None:
    """Out of the catalog, whose jobs make the indexes that stand there when they start."""
    with env.open_unit() as unit:
        view, index = require_index(unit, fqn)
        kept = tuple(i for i in view.indexes if i != index)
        unit.relations.update(replace(view, meta=next_meta(view.meta, env.clock.now()), indexes=kept))
        unit.commit()
