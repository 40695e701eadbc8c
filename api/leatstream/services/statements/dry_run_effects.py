"""What a statement would make or delete, for the statements behind it in a dry run."""

from __future__ import annotations

from dataclasses import replace

from leatstream.model.access import AccountKind
from leatstream.model.names import quote
from leatstream.model.registered import SecretName
from leatstream.services.environment import Context, Environment
from leatstream.services.nouns.databases import PUBLIC
from leatstream.services.nouns.names import entity_name, qualify_schema, single, store_of
from leatstream.services.nouns.schemas import schema_key
from leatstream.services.planning.query_properties import query_name
from leatstream.services.relations.declarations import entity_properties, relation_definition
from leatstream.services.staging.catalog_view import Assumed, AssumedQuery, planned_registry, qualify
from leatstream.services.statements import applications as application_statements
from leatstream.services.statements.functions import assume_source, function_body
from leatstream.services.statements.secrets_and_registries import NOUN_OF
from leatstream.sql import access_statements as access
from leatstream.sql import statements as ast
from leatstream.sql.noun_statements import RELATIONS
from leatstream.sql.registered_properties import read_registry_properties
from leatstream.sql.store_properties import read_store_properties, read_store_registry


def after(
    env: Environment, statement: ast.Statement, context: Context, assumed: Assumed, planned_query: str | None
) -> Context:
    """Count what the statement would make as there, for the statements behind it; the context then.

    Args:
        env: the environment.
        statement: as it was read.
        context: database, schema and store of the session.
        assumed: takes what it would make.
        planned_query: name of the query that it would make, if that is known.
    """
    if isinstance(statement, ast.Use | ast.SetDefault):
        return _use(statement, context)
    if isinstance(statement, ast.CreateDatabase):
        assumed.databases.add(single(statement.name))
        assumed.schemas.add(schema_key(single(statement.name), PUBLIC))
    elif isinstance(statement, ast.CreateSchema):
        assumed.schemas.add(schema_key(*qualify_schema(statement.name, statement.database, context)))
    elif isinstance(statement, ast.CreateStore):
        assumed.stores[single(statement.name)] = read_store_properties(statement.properties)
        named = read_store_registry(statement.properties)
        if named is not None:
            assumed.store_registries[single(statement.name)] = named
    elif isinstance(statement, ast.CreateApplication):
        application_statements.after(statement, context, assumed)
    elif isinstance(statement, ast.CreateRegistered):
        assumed.registered.add((NOUN_OF[type(statement)], single(statement.name)))
        _assume_registry(assumed, statement)
    elif isinstance(statement, access.CreateRole):
        assumed.roles.add(single(statement.name))
    elif isinstance(statement, access.CreateAccount):
        assumed.accounts[single(statement.name)] = AccountKind(statement.noun)
    elif isinstance(statement, ast.CreateEntity):
        store = store_of(env, statement.store, context)
        properties, _ = entity_properties(statement.properties)
        assumed.entities[store, entity_name(statement.name)] = properties
    elif isinstance(statement, ast.CreateStream):
        fqn = qualify(statement.name, context)
        assumed.relations[str(fqn)] = relation_definition(statement, context)
    elif isinstance(statement, ast.CreateFunctionSource):
        assume_source(assumed, statement)
    elif isinstance(statement, ast.CreateFunction):
        body = function_body(statement)
        if body.source not in assumed.unseen_sources:
            assumed.functions[single(statement.name)] = body
    elif isinstance(statement, ast.CreateAs):
        name = planned_query or f"statement {statement.position.offset}"
        assumed.queries.append(AssumedQuery(name, statement.text, context))
        assumed.ends.add(query_name(statement.query_properties) or statement.name.parts[-1])
    elif isinstance(statement, ast.TerminateQuery):
        assumed.ends |= {single(name) for name in (statement.name, statement.savepoint) if name is not None}
    elif isinstance(statement, ast.Drop):
        assumed.dropped.add((_noun(statement.noun), _dropped(statement, context)))
    return context


def _dropped(s: ast.Drop, context: Context) -> str:
    if s.noun in RELATIONS or s.noun == "index":
        return str(qualify(s.name, context))
    if s.noun == "schema":
        return schema_key(*qualify_schema(s.name, None, context))
    return ".".join(map(quote, s.name.parts))


def _assume_registry(assumed: Assumed, s: ast.CreateRegistered) -> None:
    if isinstance(s, ast.CreateSchemaRegistry):
        read, name = read_registry_properties(s.properties), single(s.name)
        body = {"name": name, "type": read.kind, "uris": read.uris, "username": read.username}
        given = read.password
        word = {"password_secret": given.name} if isinstance(given, SecretName) else {"password": given}
        assumed.registries[name] = planned_registry({**body, **word, "ca_certificate": read.ca_certificate})


def _use(statement: ast.Use | ast.SetDefault, context: Context) -> Context:
    if statement.noun == "database":
        return replace(context, database=single(statement.name), schema=PUBLIC)
    if statement.noun == "schema":
        database, schema = qualify_schema(statement.name, None, context)
        return replace(context, database=database, schema=schema)
    return replace(context, **{statement.noun: single(statement.name)})


def _noun(noun: str) -> str:
    return "relation" if noun in RELATIONS else noun
