"""Schemas: namespaces inside a database."""

from __future__ import annotations

from leatstream.errors import not_found
from leatstream.model.names import quote
from leatstream.model.objects import Meta, Schema
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Page, Precondition, Principal, Stored
from leatstream.services.environment.authorization import READ, WRITE, authorize
from leatstream.services.environment.desk import require_ownership
from leatstream.services.environment.pages import ANY, Only, repository_page
from leatstream.services.environment.upsert import upsert
from leatstream.services.nouns.databases import require_database
from leatstream.services.nouns.dependents import refuse_dependents


def schema_key(database: str, name: str) -> str:
    """Key of a schema in its repository."""
    return f"{quote(database)}.{quote(name)}"


def put_schema(
    env: Environment,
    principal: Principal,
    database: str,
    name: str,
    comment: str | None = None,
    pre: Precondition = Precondition(),  # noqa: B008 - immutable
) -> Stored[Schema]:
    """Create or replace; CatalogError not-found if the database does not exist.

    Args:
        env: the environment.
        principal: who asks.
        database: that it is in.
        name: of the schema.
        comment: what DESCRIBE shows; None = none.
        pre: precondition.
    """
    authorize(principal, WRITE, "schema", name)
    with env.open_unit() as unit:
        require_database(unit, database)

        def make(meta: Meta, old: Schema | None) -> Schema:
            return Schema(meta=meta, database=database, name=name, comment=comment)

        key = schema_key(database, name)
        stored = upsert(env, principal, unit.schemas, key, "schema", "sch", pre, make)
        unit.commit()
    return stored


def get_schema(env: Environment, principal: Principal, database: str, name: str) -> Schema:
    """The schema; CatalogError not-found.

    Args:
        env: the environment.
        principal: who asks.
        database: that it is in.
        name: of the schema.
    """
    authorize(principal, READ, "schema", name)
    with env.open_unit(write=False) as unit:
        return require_schema(unit, database, name)


def require_schema(unit: UnitOfWork, database: str, name: str) -> Schema:
    """The schema inside a unit; CatalogError not-found for it or its database.

    Args:
        unit: an open unit of work.
        database: that it is in.
        name: of the schema.
    """
    require_database(unit, database)
    found = unit.schemas.find(schema_key(database, name))
    if found is None:
        raise not_found("schema", schema_key(database, name))
    return found


def list_schemas(
    env: Environment,
    principal: Principal,
    database: str,
    page_size: int = 100,
    page_token: str | None = None,
    only: Only = ANY,
) -> Page[Schema]:
    """One page of a database's schemas by name.

    Args:
        env: the environment.
        principal: who asks.
        database: whose schemas are wanted.
        page_size: the most items of a page.
        page_token: of the page wanted; None = the first.
        only: what the list is narrowed to.
    """
    authorize(principal, READ, "schemas")
    with env.open_unit(write=False) as unit:
        require_database(unit, database)

        def key(schema: Schema) -> str:
            return schema_key(schema.database, schema.name)

        prefix = f"{quote(database)}."
        return repository_page(unit.schemas, key, "schemas", page_size, page_token, prefix, only)


def delete_schema(
    env: Environment,
    principal: Principal,
    database: str,
    name: str,
    pre: Precondition = Precondition(),  # noqa: B008
) -> None:
    """Delete an empty schema; CatalogError has-dependents names the relations in it.

    Args:
        env: the environment.
        principal: who asks.
        database: that it is in.
        name: of the schema.
        pre: precondition.
    """
    authorize(principal, WRITE, "schema", name)
    with env.open_unit() as unit:
        schema = require_schema(unit, database, name)
        key = schema_key(database, name)
        pre.check(schema.meta.generation, "schema", key)
        require_ownership(unit.schemas, schema)
        relations = unit.unfiltered.relations.page(prefix=f"{key}.", limit=20)
        refuse_dependents(f"schema {key}", [f"stream {r.fqn}" for r in relations], unit)
        unit.schemas.delete(schema.meta.id)
        unit.commit()
