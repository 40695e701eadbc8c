"""Entities: topics and the like, which live in the user's stores and are only shown here."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import Entity, Record
from leatstream.connectors.registry import kinds_that
from leatstream.errors import Faults, RequestError, no_entity
from leatstream.inference.sink_properties import SinkRequest, infer_sink_properties
from leatstream.model.access import Privilege
from leatstream.model.names import quote
from leatstream.services.environment import Environment, Page, Principal, Stored
from leatstream.services.environment.authorization import READ, WRITE, authorize
from leatstream.services.environment.desk import require_on_entity, visible_entities
from leatstream.services.environment.pages import ANY, Only, make_page
from leatstream.services.nouns.dependents import refuse_dependents
from leatstream.services.nouns.entity_drops import drop_unless_used
from leatstream.services.nouns.stores import get_store
from leatstream.services.relations.described_records import readable
from leatstream.services.relations.record_streams import RecordsWanted, chosen
from leatstream.services.relations.table_shapes import TableShape, bring_table, check_shape


def _connect(env: Environment, principal: Principal, store: str) -> Connector:
    return env.connect(get_store(env, principal, store))


def _require(connector: Connector, capability: str, what: str) -> None:
    """RequestError unsupported, for a kind that lacks a capability."""
    if not getattr(connector.capabilities, capability):
        raise RequestError(
            "unsupported",
            f"{what} store {quote(connector.name)}, which is of kind {connector.kind}.",
            hint=f"That works with stores of kind {kinds_that(capability)}.",
        )


def _of(connector: Connector, entity: Entity) -> Entity:
    return replace(entity, kind=connector.kind)


def list_entities(
    env: Environment,
    principal: Principal,
    store: str,
    page_size: int = 100,
    page_token: str | None = None,
    only: Only = ANY,
) -> Page[Entity]:
    """One page of a store's entities by name, read live.

    Args:
        env: the environment.
        principal: who asks.
        store: its name.
        page_size: the most items of a page.
        page_token: of the page wanted; None = the first.
        only: what the list is narrowed to.
    """
    authorize(principal, READ, "entities")
    connector = _connect(env, principal, store)
    may_read = visible_entities(env, store)
    live = connector.list_entities(env.settings.store_timeout)
    entities = [_of(connector, e) for e in live if may_read(e.name)]
    found = sorted(entities, key=lambda e: e.name)
    return make_page(
        lambda after, limit: [e for e in found if e.name > after][:limit],
        lambda e: e.name,
        f"entities/{store}",
        page_size,
        page_token,
        only,
    )


def get_entity(env: Environment, principal: Principal, store: str, entity: str) -> Entity:
    """The entity, read live; StoreError entity-not-found.

    Args:
        env: the environment.
        principal: who asks.
        store: name of its store.
        entity: its name.
    """
    authorize(principal, READ, "entity", entity)
    connector = _connect(env, principal, store)
    if not visible_entities(env, store)(entity):
        raise no_entity(quote(store), entity)
    found = connector.find_entity(connector.canonical_entity(entity), env.settings.store_timeout)
    if found is None:
        raise no_entity(quote(store), entity)
    return _of(connector, found)


def put_entity(
    env: Environment,
    principal: Principal,
    store: str,
    entity: str,
    properties: Mapping[str, int],
    configs: Mapping[str, str],
    shape: TableShape | None = None,
) -> Stored[Entity]:
    """Create an entity or bring it to the given properties and configs; those not given stay as they are.

    A table is made of the columns of ``shape``, which are not changed later.

    Args:
        env: the environment.
        principal: who asks.
        store: name of its store.
        entity: its name.
        properties: numbers by name, as ``partitions``.
        configs: settings in the store's own words.
        shape: columns and key of a table; None = no table.

    Raises:
        RequestError: ``property-required`` naming what a new entity still needs, ``invalid-property``.
        StoreError: what the store says; ``store-rejected`` for what it cannot change in place.
    """
    authorize(principal, WRITE, "entity", entity)
    connector = _connect(env, principal, store)
    require_on_entity(env, store, entity, Privilege.CREATE_ENTITY)
    _require(connector, "create_entity", "nothing can be created or changed in")
    entity = connector.canonical_entity(entity)
    timeout = env.settings.store_timeout
    needed = connector.needed_properties(configs)
    old = connector.find_entity(entity, timeout)
    if connector.tables:
        _refuse_foreign(connector, store, properties)
        if not bring_table(connector, entity, old, shape, dict(configs), timeout) and old is not None:
            return Stored(_of(connector, old), created=False, changed=False)
    elif old is None:
        request = SinkRequest(
            kind=connector.kind,
            store=store,
            declared=needed,
            explicit=properties,
            limits=connector.property_limits(timeout),
            entity=entity,
        )
        infer_sink_properties(request)
        connector.create_entity(entity, properties, configs)
    else:
        _refuse_foreign(connector, store, properties)
        unlike = {k: v for k, v in properties.items() if old.properties.get(k) != v}
        changed = {k: v for k, v in configs.items() if old.configs.get(k) != v}
        if not unlike and not changed:
            return Stored(_of(connector, old), created=False, changed=False)
        # A connector takes a setting that it is not given back to the default; here that means: leave it.
        connector.update_entity(entity, unlike, {**old.configs, **configs})
    env.changed.notify()
    return Stored(get_entity(env, principal, store, entity), created=old is None, changed=True)


def check_entity(
    env: Environment,
    principal: Principal,
    store: str,
    entity: str,
    properties: Mapping[str, int],
    configs: Mapping[str, str],
    shape: TableShape | None = None,
) -> None:
    """Raise what ``put_entity`` would raise before it asks the store to change anything.

    Args:
        env: the environment.
        principal: who asks.
        store: name of its store.
        entity: its name.
        properties: numbers by name, as ``partitions``.
        configs: settings in the store's own words.
        shape: columns and key of a table; None = no table.
    """
    authorize(principal, WRITE, "entity", entity)
    connector = _connect(env, principal, store)
    require_on_entity(env, store, entity, Privilege.CREATE_ENTITY)
    _require(connector, "create_entity", "nothing can be created or changed in")
    entity = connector.canonical_entity(entity)
    timeout = env.settings.store_timeout
    needed = connector.needed_properties(configs)
    _refuse_foreign(connector, store, properties)
    old = connector.find_entity(entity, timeout)
    if connector.tables:
        if old is None:
            check_shape(connector, shape)
        return
    if old is None:
        infer_sink_properties(
            SinkRequest(
                kind=connector.kind,
                store=store,
                declared=needed,
                explicit=properties,
                limits=connector.property_limits(timeout),
            )
        )
        return
    faults = Faults()
    for one in connector.entity_properties:
        present, wanted = old.properties.get(one.name), properties.get(one.name)
        if one.grows_only and present is not None and wanted is not None and wanted < present:
            faults.add(
                "invalid-property",
                f"{entity} has {present} {one.short}; stores of kind {connector.kind} cannot remove them.",
                pointer=f"#/{connector.kind}/{one.short}",
                hint=f"Leave {present}, or delete {entity}, with its records, and create it again.",
            )
    faults.raise_if_any()


def update_entity(
    env: Environment,
    principal: Principal,
    store: str,
    entity: str,
    properties: Mapping[str, int],
    configs: Mapping[str, str],
    shape: TableShape | None = None,
) -> Stored[Entity]:
    """Change an existing entity; StoreError entity-not-found.

    Args:
        env: the environment.
        principal: who asks.
        store: name of its store.
        entity: its name.
        properties: numbers by name, as ``partitions``.
        configs: settings in the store's own words.
        shape: columns and key of a table; None = no table.
    """
    get_entity(env, principal, store, entity)
    return put_entity(env, principal, store, entity, properties, configs, shape)


def _refuse_foreign(connector: Connector, store: str, properties: Mapping[str, int]) -> None:
    known = {p.name for p in connector.entity_properties}
    faults = Faults()
    for name in sorted(set(properties) - known):
        faults.add(
            "invalid-property",
            f"{name} does not fit store {quote(store)}, which is of kind {connector.kind}.",
            hint=_instead(connector, known),
        )
    faults.raise_if_any()


def _instead(connector: Connector, known: Collection[str]) -> str:
    if connector.tables:
        return "Leave it out: a table is made of 'table.columns'."
    return f"Available: {', '.join(sorted(known))}." if known else "Leave it out."


def delete_entity(env: Environment, principal: Principal, store: str, entity: str) -> None:
    """Delete an entity that no relation stands on; StoreError entity-not-found.

    Args:
        env: the environment.
        principal: who asks.
        store: name of its store.
        entity: its name.
    """
    authorize(principal, WRITE, "entity", entity)
    get_entity(env, principal, store, entity)
    require_on_entity(env, store, entity, Privilege.DROP_ENTITY)
    connector = _connect(env, principal, store)
    _require(connector, "create_entity", "nothing can be deleted in")
    entity = connector.canonical_entity(entity)
    used = drop_unless_used(
        env, store, entity, lambda: connector.drop_entity(entity), view_rows=connector.view_rows
    )
    if used:
        with env.open_unit(write=False) as unit:
            named = [f"{r.kind.value.replace('_', ' ')} {r.fqn}" for r in used]
            refuse_dependents(f"entity {quote(entity)}", named, unit)


def read_records(
    env: Environment, principal: Principal, store: str, entity: str, wanted: RecordsWanted
) -> Iterator[Record | None]:
    """The wanted records as they come, None while idle; StoreError entity-not-found before the first.

    Args:
        env: the environment.
        principal: who asks.
        store: name of its store.
        entity: its name.
        wanted: which of them, and how fast.
    """
    authorize(principal, READ, "entity", entity)
    get_entity(env, principal, store, entity)
    require_on_entity(env, store, entity, Privilege.READ_ENTITY)
    connector, start = _connect(env, principal, store), wanted.start
    _require(connector, "print_records", "records cannot be shown of")
    if connector.tables and start.leaves_out:
        raise RequestError(
            "unsupported",
            f"Rows of a table have no time and no partition; '{entity}' of store {quote(store)} is a table.",
            hint="Leave out since, partition and offset: all rows are shown.",
        )
    if start.offset is not None:
        _require(connector, "positions", "reading cannot begin at an offset in")
        if start.partition is None or start.since is not None:
            raise RequestError(
                "validation",
                "An offset is a place in one partition, without a time.",
                hint="Give the partition too, and no other place.",
            )
    if start.after:
        _require(connector, "positions", "reading cannot continue behind an offset in")
        if start.offset is not None:
            raise RequestError(
                "validation",
                "Reading begins at an offset, or continues behind others.",
                hint="Give 'offset' or 'after'.",
            )
    found = connector.read_part(
        connector.canonical_entity(entity),
        start,
        limit=wanted.limit if wanted.text is None else None,
        idle_timeout=wanted.idle_timeout,
    )
    return chosen(readable(env, store, found), wanted)
