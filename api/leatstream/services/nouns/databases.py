"""Databases."""

from __future__ import annotations

from leatstream.model.names import quote
from leatstream.model.objects import Database, Meta, Schema
from leatstream.ports import UnitOfWork
from leatstream.services.environment import (
    Environment,
    Precondition,
    Principal,
    Stored,
    new_meta,
)
from leatstream.services.environment.authorization import WRITE, authorize
from leatstream.services.environment.upsert import upsert
from leatstream.services.nouns.noun import NounService

PUBLIC = "public"


def put_database(
    env: Environment,
    principal: Principal,
    name: str,
    comment: str | None = None,
    pre: Precondition = Precondition(),  # noqa: B008 - immutable
) -> Stored[Database]:
    """Create or replace. A new database gets a schema ``public``.

    Args:
        env: the environment.
        principal: who asks.
        name: of the database.
        comment: what DESCRIBE shows; None = none.
        pre: precondition.
    """
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
    """Create; CatalogError already-exists if it is there.

    Args:
        env: the environment.
        principal: who asks.
        name: of the database.
        comment: what DESCRIBE shows; None = none.
    """
    return put_database(env, principal, name, comment, Precondition(must_be_new=True))


def _dependents(unit: UnitOfWork, database: Database) -> list[str]:
    prefix = f"{quote(database.name)}."
    relations = unit.unfiltered.relations.page(prefix=prefix, limit=20)
    schemas = unit.unfiltered.schemas.page(prefix=prefix, limit=20)
    found = [f"stream {r.fqn}" for r in relations]
    return found + [f"schema {prefix}{quote(s.name)}" for s in schemas if s.name != PUBLIC]


def _release(unit: UnitOfWork, database: Database) -> None:
    for schema in unit.unfiltered.schemas.page(prefix=f"{quote(database.name)}."):
        unit.schemas.delete(schema.meta.id)


DATABASES = NounService(
    "database", "databases", "databases", lambda unit: unit.databases, _dependents, _release
)
get_database, require_database = DATABASES.get, DATABASES.require
list_databases, delete_database = DATABASES.list, DATABASES.delete
