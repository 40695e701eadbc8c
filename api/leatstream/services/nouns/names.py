"""The names in a statement: databases, schemas, stores and entities that it means."""

from __future__ import annotations

from leatstream.errors import MISSING, RequestError
from leatstream.model.names import quote
from leatstream.services.environment import Context, Environment
from leatstream.sql import statements as ast


def single(name: ast.Name) -> str:
    """The part of a name of one part."""
    if len(name.parts) != 1:
        raise RequestError(
            "sql-syntax",
            f"{'.'.join(name.parts)} has {len(name.parts)} parts; one is expected.",
            position=name.position,
        )
    return name.parts[0]


def entity_name(name: ast.Name) -> str:
    """A topic's name. Dots are part of it: Kafka topics often have them."""
    return ".".join(name.parts)


def qualify_schema(name: ast.Name, database: ast.Name | None, context: Context) -> tuple[str, str]:
    """Database and schema that ``[db.]schema [IN DATABASE db]`` means.

    Args:
        name: as it is written.
        database: behind IN DATABASE, if that is written.
        context: database, schema and store of the session.
    """
    if len(name.parts) == 2 and database is None:
        return name.parts[0], name.parts[1]
    schema = single(name)
    chosen = single(database) if database else context.database
    if chosen is None:
        raise RequestError(
            "unknown-relation",
            f"No database is chosen for schema {quote(schema)}.",
            position=name.position,
            hint="Write database.schema, or USE DATABASE first.",
            sqlstate=MISSING["database"],
        )
    return chosen, schema


def store_of(env: Environment, name: ast.Name | None, context: Context) -> str:
    """The store a statement means: named, else of the context, else the default.

    Args:
        env: the environment.
        name: as it is written; None = it is left out.
        context: database, schema and store of the session.
    """
    if name is not None:
        return single(name)
    chosen = context.store or env.settings.default_store
    if chosen is None:
        raise RequestError(
            "property-required",
            "No store is named and the session has none.",
            hint="IN STORE …, or USE STORE first",
        )
    return chosen
