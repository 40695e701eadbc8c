"""Materialized views that stores hold: each version of a view's query has rows of its own there.

The catalog says which version is shown (``created_by_query`` of the relation), and the store follows, because
no transaction spans both: a swap notes ``view_behind`` with the version that takes over. All steps are
idempotent, so that a crash between the two heals at the next pass.
"""

from __future__ import annotations

from dataclasses import replace

from leatstream.connectors.entities import StoredView
from leatstream.errors import LeatstreamError
from leatstream.model.objects import Column, Query, QueryStatus, Relation, Store, ViewIndex
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, rows_version
from leatstream.services.queries.save import keep_query
from leatstream.services.queries.update import update_status
from leatstream.sql.view_properties import read_view_properties

_BEHIND = "the view in store"


def is_stored_view(query: Query) -> bool:
    """Whether a query keeps a view that a store holds."""
    return bool((query.job.get("sink") or {}).get("stored_view"))


def indexed(view: Relation, index: ViewIndex) -> list[Column]:
    """The columns of an index."""
    columns = {column.name: column for column in view.columns}
    return [columns[name] for name in index.columns]


def make_stored_view(env: Environment, query: Query, relation: Relation, store: Store) -> None:
    """Create a version's rows, and have the view show them unless another version is shown; idempotent.

    Args:
        env: the environment.
        query: the version.
        relation: the view, as it is shown now.
        store: that holds it.

    Raises:
        StoreError: what the store reports.
    """
    connector = env.connect(store)
    own = query.beside_relation if query.beside is not None else None
    view = _view(own or relation, rows_version(query))
    if own is not None:
        connector.create_view_rows(view)
    else:
        connector.show_view(view)
    kept = {column.name for column in view.columns}
    for index in relation.indexes:
        if kept.issuperset(index.columns):
            columns = indexed(own or relation, index)
            connector.add_view_index(view.entity, view.version, index.name, columns)
    if own is None:
        _look_again(env, query)


def _view(relation: Relation, version: str) -> StoredView:
    return StoredView(
        entity=relation.entity,
        version=version,
        columns=relation.columns,
        primary_key=relation.primary_key,
        retention_ms=read_view_properties(dict(relation.properties)).retention_ms,
    )


def _look_again(env: Environment, query: Query) -> None:
    """If another version was swapped in while the store was asked, that one is to be shown after it."""
    with env.open_unit() as unit:
        lead = _shown(unit, query)
        if lead is None or lead.meta.id == query.meta.id or lead.status.view_behind:
            return
        keep_query(unit, lead, replace(lead, status=replace(lead.status, view_behind=True)), env.clock.now())
        unit.commit()
    env.changed.notify()


def _shown(unit: UnitOfWork, query: Query) -> Query | None:
    """The version whose rows the view of a query is to show; None where there is no view any more."""
    relation = unit.unfiltered.relations.find(query.sink)
    return unit.unfiltered.queries.find_by_id(relation.created_by_query or "") if relation else None


def catch_up_view(env: Environment, query: Query, outage: LeatstreamError | None = None) -> None:
    """Have the store's view show the version that has taken over.

    Args:
        env: the environment.
        query: that has taken over.
        outage: of the store, found just before; it is not asked again.

    Raises:
        LeatstreamError: what the store reports; the status says so too, and the next pass tries again.
    """
    with env.open_unit(write=False) as unit:
        current, relation, store = _placed(unit, query)
    if current is None or relation is None or store is None or not current.status.view_behind:
        return
    if current.deleting or relation.created_by_query != current.meta.id:
        return
    try:
        if outage is not None:
            raise outage
        make_stored_view(env, current, relation, store)
    except LeatstreamError as error:
        text = f"{_BEHIND} {store.name} shows the version before: {error.detail}"
        update_status(env, current, lambda status: replace(status, message=text))
        raise
    update_status(env, current, _shows)


def _shows(status: QueryStatus) -> QueryStatus:
    behind = (status.message or "").startswith(_BEHIND)
    return replace(status, view_behind=False, message=None if behind else status.message)


def drop_stored_rows(env: Environment, query: Query) -> None:
    """Remove what a version has in its store: with the view, where it is the version that is shown.

    The rows of all versions are dropped with the view, because a version that is removed after it could take
    the rows of a later view of this name for its own, where both have the usual name.

    Args:
        env: the environment.
        query: the version.

    Raises:
        StoreError: what the store reports.
    """
    with env.open_unit(write=False) as unit:
        _, relation, store = _placed(unit, query)
        lead = _shown(unit, query)
        beside = [one for one in unit.unfiltered.queries.page(limit=100_000) if one.beside == query.meta.id]
        known = query.beside is not None and unit.unfiltered.queries.find_by_id(query.beside) is not None
    if store is None:
        return
    connector, entity = env.connect(store), str(query.job["sink"]["entity"])
    if query.beside is None:
        connector.drop_view(entity, [rows_version(one) for one in (query, *beside)])
    elif query.own_rows or known:
        if lead is not None and relation is not None and lead.status.view_behind and not lead.deleting:
            make_stored_view(env, lead, relation, store)
        connector.drop_view_rows(entity, rows_version(query))


def _placed(unit: UnitOfWork, query: Query) -> tuple[Query | None, Relation | None, Store | None]:
    """The query as it is, its view, and the store that holds it."""
    name = (query.job.get("sink") or {}).get("store", {}).get("name", "")
    current = unit.unfiltered.queries.find_by_id(query.meta.id)
    return current, unit.unfiltered.relations.find(query.sink), unit.unfiltered.stores.find(name)
