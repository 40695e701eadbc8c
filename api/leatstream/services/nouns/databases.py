"""Databases."""

from __future__ import annotations

from leatstream.errors import CatalogError, Fault, not_found, sentence
from leatstream.model.names import quote
from leatstream.model.objects import Database, Meta, Schema
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
from leatstream.services.environment.pages import repository_page
from leatstream.services.environment.upsert import upsert

PUBLIC = "public"


def put_database(
    env: Environment,
    principal: Principal,
    name: str,
    comment: str | None = None,
    pre: Precondition = Precondition(),  # noqa: B008 - immutable
) -> Stored[Database]:
    """Create or replace. A new database gets a schema ``public``."""
    authorize(principal, WRITE, "database", name)
    with env.open_unit() as unit:

        def make(meta: Meta, old: Database | None) -> Database:
            return Database(meta=meta, name=name, comment=comment)

        stored = upsert(env, principal, unit.databases, name, "database", "db", pre, make)
        if stored.created:
            meta = new_meta("sch", principal, env.clock.now())
            unit.schemas.add(Schema(meta=meta, database=name, name=PUBLIC))
        unit.commit()
    return stored


def create_database(
    env: Environment, principal: Principal, name: str, comment: str | None = None
) -> Stored[Database]:
    """Create; CatalogError already-exists if it is there."""
    return put_database(env, principal, name, comment, Precondition(must_be_new=True))


def get_database(env: Environment, principal: Principal, name: str) -> Database:
    """The database; CatalogError not-found."""
    authorize(principal, READ, "database", name)
    with env.open_unit(write=False) as unit:
        return require_database(unit, name)


def require_database(unit: UnitOfWork, name: str) -> Database:
    """The database inside a unit; CatalogError not-found."""
    found = unit.databases.find(name)
    if found is None:
        raise not_found("database", quote(name))
    return found


def list_databases(
    env: Environment, principal: Principal, page_size: int = 100, page_token: str | None = None
) -> Page[Database]:
    """One page of databases by name."""
    authorize(principal, READ, "databases")
    with env.open_unit(write=False) as unit:
        return repository_page(unit.databases, lambda d: d.name, "databases", page_size, page_token)


def delete_database(
    env: Environment,
    principal: Principal,
    name: str,
    pre: Precondition = Precondition(),  # noqa: B008
) -> None:
    """Delete a database that holds nothing but an empty schema ``public``.

    Raises:
        CatalogError: ``not-found``, ``stale``, or ``has-dependents`` naming them.
    """
    authorize(principal, WRITE, "database", name)
    with env.open_unit() as unit:
        database = require_database(unit, name)
        pre.check(database.meta.generation, "database", name)
        prefix = f"{quote(name)}."
        relations = unit.relations.page(prefix=prefix, limit=20)
        schemas = unit.schemas.page(prefix=prefix, limit=20)
        dependents = [f"stream {r.fqn}" for r in relations]
        dependents += [f"schema {prefix}{quote(s.name)}" for s in schemas if s.name != PUBLIC]
        refuse_dependents(f"database {quote(name)}", dependents)
        for schema in schemas:
            unit.schemas.delete(schema.meta.id)
        unit.databases.delete(database.meta.id)
        unit.commit()


def refuse_dependents(what: str, dependents: list[str]) -> None:
    """Raise ``has-dependents`` naming each, if there are any."""
    if dependents:
        faults = [
            Fault(sentence(f"{d} depends on {what}"), "has-dependents", sqlstate="2BP01") for d in dependents
        ]
        others = " and others" if len(dependents) > 5 else ""
        raise CatalogError(
            "has-dependents",
            sentence(f"{what} is used by {', '.join(dependents[:5])}{others}"),
            faults=faults,
            hint="Drop those first.",
            dependents=dependents,
        )
