"""What a caller's unqualified names mean when the request says nothing: SET DEFAULT, kept for each caller."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from leatstream.model.objects import Meta
from leatstream.model.registered import SessionDefaults
from leatstream.services.environment import Context, Environment, Precondition, Principal
from leatstream.services.environment.authorization import READ, authorize
from leatstream.services.environment.upsert import upsert
from leatstream.services.nouns.acting import require_acting_in
from leatstream.services.nouns.databases import PUBLIC, get_database, require_database
from leatstream.services.nouns.names import qualify_schema, single
from leatstream.services.nouns.schemas import get_schema, require_schema
from leatstream.services.nouns.stores import get_store, require_store
from leatstream.sql.statements import Use


def set_default(
    env: Environment,
    principal: Principal,
    noun: Literal["database", "schema", "store"],
    name: tuple[str, ...],
) -> SessionDefaults:
    """Remember a database, a schema (with its database) or a store of the caller's.

    Args:
        env: the environment.
        principal: who asks.
        noun: what kind of object it is.
        name: its parts.

    Raises:
        CatalogError: not-found.
    """
    authorize(principal, READ, noun, name[-1])
    with env.open_unit() as unit:
        change: dict[str, str]
        if noun == "database":
            change = {"database": require_database(unit, name[0]).name, "schema": PUBLIC}
        elif noun == "schema":
            schema = require_schema(unit, name[0], name[1])
            change = {"database": schema.database, "schema": schema.name}
        else:
            change = {"store": require_store(unit, name[0]).name}

        def make(meta: Meta, old: SessionDefaults | None) -> SessionDefaults:
            return replace(old or SessionDefaults(meta=meta, name=principal.name), meta=meta, **change)

        rows = unit.session_defaults
        stored = upsert(env, principal, rows, principal.name, "defaults of", "def", Precondition(), make)
        unit.commit()
    return stored.item


def with_defaults(env: Environment, principal: Principal, context: Context) -> Context:
    """The context with the caller's defaults where it says nothing.

    Args:
        env: the environment.
        principal: who asks.
        context: database, schema and store of the session.
    """
    if context.database is not None and context.store is not None:
        return context
    with env.open_unit(write=False) as unit:
        kept = unit.session_defaults.find(principal.name)
    if kept is None:
        return context
    if context.database is None and kept.database is not None:
        context = replace(context, database=kept.database, schema=context.schema or kept.schema)
    return replace(context, store=context.store or kept.store)


def used(env: Environment, principal: Principal, s: Use, context: Context) -> tuple[str, Context]:
    """What USE names, and the context after it.

    Args:
        env: the environment.
        principal: who asks.
        s: the statement.
        context: database, schema and store of the session.

    Raises:
        AccessError: permission-denied, a role that the principal may not act in.
        CatalogError: not-found.
    """
    if s.noun == "database":
        name = get_database(env, principal, single(s.name)).name
        return name, replace(context, database=name, schema=PUBLIC)
    if s.noun == "schema":
        database, name = qualify_schema(s.name, None, context)
        get_schema(env, principal, database, name)
        return name, replace(context, database=database, schema=name)
    if s.noun == "store":
        name = get_store(env, principal, single(s.name)).name
        return name, replace(context, store=name)
    name = single(s.name)
    require_acting_in(env, principal, name)
    return name, replace(context, role=name)
