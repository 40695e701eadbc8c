"""Relations: the relational face of entities. Streams and changelogs so far."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from leatstream.connectors.registry import property_families
from leatstream.errors import (
    CatalogAway,
    CatalogBusy,
    CatalogError,
    CatalogFull,
    Faults,
    LeatstreamError,
    RequestError,
    not_found,
)
from leatstream.model.names import Fqn, quote
from leatstream.model.objects import (
    Meta,
    Relation,
    Store,
)
from leatstream.ports import UnitOfWork
from leatstream.services.environment import (
    Environment,
    Page,
    Precondition,
    Principal,
    Stored,
    new_meta,
)
from leatstream.services.environment.authorization import READ, WRITE, authorize
from leatstream.services.environment.desk import require_ownership
from leatstream.services.environment.pages import ANY, Only, repository_page
from leatstream.services.environment.upsert import upsert
from leatstream.services.nouns.application_owners import refuse_relation_alone
from leatstream.services.nouns.dependents import refuse_dependents
from leatstream.services.nouns.entity_drops import (
    Seen,
    drop_unless_used,
    drops_seen,
    relations_on,
    require_not_dropped,
)
from leatstream.services.nouns.relation_definition import RelationDefinition
from leatstream.services.nouns.schemas import require_schema, schema_key
from leatstream.services.nouns.stores import require_store
from leatstream.services.planning.access import require_lost_entity, require_new_relation
from leatstream.services.planning.live_stores import LiveStores
from leatstream.services.planning.record_places import headers_column, key_only
from leatstream.services.planning.record_schemas import with_columns
from leatstream.services.planning.relation_draft import (
    DraftRelation,
    draft_relation,
    ensure_entity,
    read_body,
)
from leatstream.services.staging.catalog_view import CatalogView
from leatstream.sql.relation_properties import (
    RelationProperties,
)

_LOG = logging.getLogger(__name__)
_OF_THE_WRITER = ("s3.interval.millis", "s3.file.max.bytes")  # how often and how large; any reader takes it


def put_relation(
    env: Environment,
    principal: Principal,
    fqn: Fqn,
    body: RelationDefinition,
    pre: Precondition = Precondition(),  # noqa: B008 - immutable
    within: Collection[str] = (),
    *,
    application: str | None = None,
) -> Stored[Relation]:
    """Create or replace a stream or changelog; makes its entity if there is none and the properties say how.

    Args:
        env: the environment.
        principal: who asks.
        fqn: full name.
        body: what the user writes.
        pre: precondition.
        within: names of queries that change together with it, so that none of them holds its shape.
        application: name of the application whose text declares it.

    Raises:
        RequestError: every fault of the definition at once.
        CatalogError: preconditions, ``requires-replacement``, ``has-dependents`` for columns in use and for
            what an application declares.
        StoreError: the store cannot be asked or refuses the entity.
    """
    authorize(principal, WRITE, body.kind.value, str(fqn))
    read = read_body(body)
    # Columns that are left out come from a schema registry.
    with env.open_unit(write=False) if body.columns else env.planning() as unit:
        seen = drops_seen(unit)
        require_schema(unit, fqn.database, fqn.schema)
        old = unit.relations.find(str(fqn))
        store = require_store(unit, _store_name(env, read))
        view = CatalogView(unit)
        body = with_columns(LiveStores(env, view), store.name, fqn.name, body, read)
    meta = old.meta if old else new_meta("rel", principal, env.clock.now())
    draft = draft_relation(env, store, fqn, body, read, meta, view.planned_entity)
    if old is not None:
        pre.check(old.meta.generation, "relation", str(fqn))
        _refuse_replacement(old, draft.relation)
    with env.open_unit(write=False) as unit:
        if old is None:
            require_new_relation(
                unit, draft.relation, creates=not draft.entity_exists, written=False, query=False
            )
        elif not draft.entity_exists:
            require_lost_entity(unit, old)
    made = ensure_entity(env, store, draft)
    try:
        return _store_relation(env, principal, draft, pre, within, seen, application)
    except (LeatstreamError, CatalogBusy, CatalogFull):
        # Only these say that nothing was kept: where the answer to COMMIT is lost, the relation may stand.
        if made:
            _take_back(env, store, draft.relation.entity)
        raise


def _take_back(env: Environment, store: Store, entity: str) -> None:
    """Drop an entity that was made for nothing; not where another relation was declared on it meanwhile."""
    try:
        connector = env.connect(store)
        try:
            drop_unless_used(env, store.name, entity, lambda: connector.drop_entity(entity))
        except CatalogFull:  # nobody else can declare anything then
            with env.open_unit(write=False) as unit:
                taken = relations_on(unit, store.name, entity)
            if not taken:
                connector.drop_entity(entity)
    except (LeatstreamError, CatalogAway) as error:  # an empty entity that stays does no harm
        _LOG.warning("entity %s of store %s, made for nothing, stays: %s", entity, store.name, error)


def _store_relation(
    env: Environment,
    principal: Principal,
    draft: DraftRelation,
    pre: Precondition,
    within: Collection[str],
    seen: Seen,
    application: str | None,
) -> Stored[Relation]:
    fqn = draft.relation.fqn
    with env.open_unit() as unit:
        require_schema(unit, fqn.database, fqn.schema)
        require_store(unit, draft.relation.store)

        def make(meta: Meta, old: Relation | None) -> Relation:
            effective = dict(draft.relation.effective)
            if old is not None:
                # The entity now exists; the record of what decided about it at its creation stays.
                effective = {
                    k: old.effective.get(k, v) if _entity_key(k) else v for k, v in effective.items()
                }
                if old.created_by_query is not None:
                    raise _made_by_query(unit, old)
            return replace(draft.relation, meta=meta, effective=effective)

        old = unit.relations.find(str(fqn))
        if old is None:
            require_not_dropped(unit, env.clock.now(), draft.relation, seen)
        noun = draft.relation.kind.value
        stored = upsert(env, principal, unit.relations, str(fqn), noun, "rel", pre, make)
        if old is not None and stored.changed and application is None:
            refuse_relation_alone(unit, fqn)
        if old is not None and stored.changed and not compatible(old, stored.item):
            own = {f"query {name}" for name in within}
            others = [d for d in shape_dependents(unit, old, stored.item) if d not in own]
            refuse_dependents(f"the shape of {noun} {fqn}", others, unit)
        unit.commit()
    env.changed.notify()
    return stored


def _entity_key(name: str) -> bool:
    return name.startswith("topic.")


def _made_by_query(unit: UnitOfWork, relation: Relation) -> CatalogError:
    query = unit.queries.find_by_id(relation.created_by_query or "")
    name = query.name if query else relation.created_by_query
    return CatalogError(
        "has-dependents",
        f"{relation.fqn} is made by query {name}, which changes and deletes it.",
        hint=f"DROP QUERY {quote(name)} deletes both; CREATE OR REPLACE with another SELECT changes both."
        if name is not None
        else None,
    )


def compatible(old: Relation, new: Relation) -> bool:
    """Whether running readers can go on: same bytes, same old columns (new ones may be added)."""
    same = ("value_format", "key_format", "key_type", "timestamp", "timestamp_format", "primary_key")
    if any(getattr(old, f) != getattr(new, f) for f in same) or _own_words(old) != _own_words(new):
        return False
    if (key_only(old), headers_column(old)) != (key_only(new), headers_column(new)):
        return False
    now = [replace(c, comment=None) for c in new.columns]
    return all(replace(c, comment=None) in now for c in old.columns)


def _own_words(relation: Relation) -> dict[str, object]:
    """Properties in the store kind's words that readers depend on, such as the delimiter of CSV files."""
    words = {k: v.value for k, v in relation.effective.items() if k.startswith(property_families())}
    return {k: value for k, value in words.items() if k not in _OF_THE_WRITER}


def _refuse_replacement(old: Relation, new: Relation) -> None:
    moved = [f for f in ("kind", "store", "entity") if getattr(old, f) != getattr(new, f)]
    if moved:
        faults = Faults()
        for name in moved:
            pointer = "topic" if name == "entity" else name
            faults.add(
                "validation",
                f"{pointer} of {old.kind.value} {old.fqn} cannot change from {getattr(old, name)} to "
                f"{getattr(new, name)}.",
                pointer=f"#/{pointer}",
            )
        raise CatalogError(
            "requires-replacement",
            faults.items[0].detail,
            faults=faults.items,
            hint=f"Drop the {old.kind.value} and create it again; its topic keeps the records.",
        )


def _store_name(env: Environment, read: RelationProperties) -> str:
    name = read.store or env.settings.default_store
    if name is None:
        raise RequestError(
            "property-required",
            "No store is named and the session has none.",
            hint="WITH ('store' = …), or USE STORE",
            pointer="#/store",
        )
    return name


def get_relation(env: Environment, principal: Principal, fqn: Fqn) -> Relation:
    """The relation; CatalogError not-found.

    Args:
        env: the environment.
        principal: who asks.
        fqn: its full name.
    """
    authorize(principal, READ, "relation", str(fqn))
    with env.open_unit(write=False) as unit:
        return require_relation(unit, fqn)


def require_relation(unit: UnitOfWork, fqn: Fqn) -> Relation:
    """The relation inside a unit; CatalogError not-found."""
    found = unit.relations.find(str(fqn))
    if found is None:
        raise not_found("relation", str(fqn))
    return found


def list_relations(
    env: Environment,
    principal: Principal,
    database: str | None = None,
    schema: str | None = None,
    page_size: int = 100,
    page_token: str | None = None,
    only: Only = ANY,
) -> Page[Relation]:
    """One page of relations by full name, of one database or schema if given.

    Args:
        env: the environment.
        principal: who asks.
        database: that they are in; None = any.
        schema: of that database; None = any.
        page_size: the most items of a page.
        page_token: of the page wanted; None = the first.
        only: what the list is narrowed to.
    """
    authorize(principal, READ, "relations")
    prefix = ""
    with env.open_unit(write=False) as unit:
        if database is not None and schema is not None:
            require_schema(unit, database, schema)
            prefix = f"{schema_key(database, schema)}."
        elif database is not None:
            prefix = schema_key(database, "x")[:-1]
        return repository_page(
            unit.relations, lambda r: str(r.fqn), "relations", page_size, page_token, prefix, only, _has
        )


def _has(relation: Relation) -> Mapping[str, Any]:
    """Its values for the filters of lists."""
    return {"kind": relation.kind, "store": relation.store}


def query_dependents(unit: UnitOfWork, fqn: Fqn) -> list[str]:
    """Queries that read or write the relation, for messages; not those that only stand beside its own."""
    name = str(fqn)
    queries = [q for q in unit.unfiltered.queries.page(limit=100_000) if not q.deleting]
    return [f"query {q.name}" for q in queries if name in q.sources or (name == q.sink and not q.beside)]


def shape_dependents(unit: UnitOfWork, old: Relation, new: Relation) -> list[str]:
    """Queries that cannot continue with another shape of the relation, for messages.

    A removed column of JSON objects matters only to queries whose job names it: the others read the
    same values without it.

    Args:
        unit: an open unit of work.
        old: the relation as it is.
        new: as it is to be.
    """
    kept = tuple(c for c in old.columns if c.name in {one.name for one in new.columns})
    gone = [c for c in old.columns if c not in kept]
    by_name = old.value_format == "json" and not any(c.not_null for c in gone)
    if not by_name or not compatible(replace(old, columns=kept), new):
        return query_dependents(unit, old.fqn)
    names = [c.name for c in gone]
    queries = unit.unfiltered.queries.page(limit=100_000)
    readers = {f"query {q.name}" for q in queries if str(old.fqn) == q.sink or _names(q.job, names)}
    return [d for d in query_dependents(unit, old.fqn) if d in readers]


def _names(job: Mapping[str, Any], columns: Sequence[str]) -> bool:
    """Whether a job may read one of these columns: something but its sources' schemas names it."""
    sources = [{k: v for k, v in one.items() if k != "columns"} for one in job.get("sources") or ()]
    text = json.dumps({**job, "sources": sources}, ensure_ascii=False, default=str)
    star = re.search(r"(SELECT|,|\.)\s*\*", str(job.get("sql")), re.IGNORECASE)
    return star is not None or any(
        re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) for name in columns
    )


def delete_relation(
    env: Environment,
    principal: Principal,
    fqn: Fqn,
    pre: Precondition = Precondition(),  # noqa: B008
) -> None:
    """Forget a relation that no query uses; the entity and its records stay.

    Args:
        env: the environment.
        principal: who asks.
        fqn: its full name.
        pre: precondition.
    """
    authorize(principal, WRITE, "relation", str(fqn))
    with env.open_unit() as unit:
        relation = require_relation(unit, fqn)
        pre.check(relation.meta.generation, "relation", str(fqn))
        if relation.created_by_query is not None and unit.queries.find_by_id(relation.created_by_query):
            raise _made_by_query(unit, relation)
        require_ownership(unit.relations, relation)
        refuse_relation_alone(unit, fqn)
        refuse_dependents(f"{relation.kind.value} {fqn}", query_dependents(unit, fqn), unit)
        unit.relations.delete(relation.meta.id)
        unit.commit()
    env.changed.notify()
