"""Statements that make databases, schemas, stores, entities, relations, queries and indexes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from leatstream.errors import CatalogError, LeatstreamError
from leatstream.model.names import quote
from leatstream.model.objects import Query
from leatstream.services.environment import Precondition, Stored
from leatstream.services.environment.results import Run, StatementResult, about_store, kind_of
from leatstream.services.nouns import databases, schemas, stores
from leatstream.services.nouns.names import entity_name, qualify_schema, single, store_of
from leatstream.services.queries import catalog as queries
from leatstream.services.queries import views
from leatstream.services.queries.definition import QueryDefinition, suggest_query_name
from leatstream.services.relations import entities, relations
from leatstream.services.relations.declarations import entity_properties, relation_definition
from leatstream.services.relations.table_shapes import read_shape
from leatstream.services.staging.catalog_view import qualify
from leatstream.services.statements.changes import replace_query
from leatstream.services.statements.waiting import wait_running
from leatstream.sql import statements as ast
from leatstream.sql.applications import placed
from leatstream.sql.store_properties import read_store_properties, read_store_registry

_NEW = Precondition(must_be_new=True)


def _unless_exists(allowed: bool, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except CatalogError as error:
        if allowed and error.code == "already-exists":
            return None
        raise


def _condition(s: ast.CreateDatabase | ast.CreateSchema | ast.CreateStore | ast.CreateStream) -> Precondition:
    """OR REPLACE puts, as PUT does; without it the object must be new."""
    return Precondition() if s.or_replace else _NEW


def create_database(run: Run, s: ast.CreateDatabase) -> StatementResult:
    """CREATE DATABASE."""
    name = single(s.name)
    _unless_exists(
        s.if_not_exists,
        lambda: databases.put_database(run.env, run.principal, name, s.comment, _condition(s)),
    )
    return StatementResult("create_database", object={"noun": "database", "name": name})


def create_schema(run: Run, s: ast.CreateSchema) -> StatementResult:
    """CREATE SCHEMA."""
    database, name = qualify_schema(s.name, s.database, run.context)
    _unless_exists(
        s.if_not_exists,
        lambda: schemas.put_schema(run.env, run.principal, database, name, s.comment, _condition(s)),
    )
    return StatementResult(
        "create_schema", object={"noun": "schema", "name": schemas.schema_key(database, name)}
    )


def create_store(run: Run, s: ast.CreateStore) -> StatementResult:
    """CREATE STORE."""
    name = single(s.name)
    kind, config = read_store_properties(s.properties)
    registry = read_store_registry(s.properties)
    plain, secrets = stores.split_secrets(run.env, kind, config)
    stored = _unless_exists(
        s.if_not_exists,
        lambda: stores.put_store(
            run.env, run.principal, name, kind, plain, secrets, s.comment, _condition(s), registry
        ),
    )
    return StatementResult("create_store", object=about_store(name, stored))


def create_entity(run: Run, s: ast.CreateEntity) -> StatementResult:
    """CREATE ENTITY."""
    store = store_of(run.env, s.store, run.context)
    name = entity_name(s.name)
    properties, configs = entity_properties(s.properties)
    try:
        found = entities.get_entity(run.env, run.principal, store, name)
    except LeatstreamError as error:
        if error.code != "entity-not-found":
            raise
        shape = read_shape(s.properties)
        entities.put_entity(run.env, run.principal, store, name, properties, configs, shape)
    else:
        if not s.if_not_exists:
            raise CatalogError(
                "already-exists", f"Store {quote(store)} has an entity '{found.name}' already."
            )
    return StatementResult("create_entity", object={"noun": "entity", "name": name, "store": store})


def create_stream(run: Run, s: ast.CreateStream) -> StatementResult:
    """CREATE STREAM, CHANGELOG or TABLE by columns."""
    fqn = qualify(s.name, run.context)
    body = relation_definition(s, run.context)
    _unless_exists(
        s.if_not_exists,
        lambda: relations.put_relation(run.env, run.principal, fqn, body, _condition(s)),
    )
    return StatementResult(kind_of(s), object={"noun": "relation", "name": str(fqn)})


def create_query(run: Run, s: ast.CreateAs | ast.InsertInto) -> StatementResult:
    """CREATE … AS SELECT and INSERT INTO … SELECT."""
    kind = kind_of(s)
    fqn = qualify(s.name, run.context)
    if isinstance(s, ast.CreateAs) and s.or_replace:
        old = queries.made_by(run.env, fqn, s.query_properties)
        if old is not None:
            return replace_query(run, s, fqn, old)
    if isinstance(s, ast.CreateAs) and s.if_not_exists:
        with run.env.open_unit(write=False) as unit:
            if unit.relations.find(str(fqn)) is not None:
                return StatementResult(kind, object={"noun": "relation", "name": str(fqn)})
    name = suggest_query_name(run.env, s, fqn)
    body = QueryDefinition(sql=s.text, context=replace(run.context, role=None))
    try:
        stored: Stored[Query] = queries.create_query(run.env, run.principal, name, body)
    except LeatstreamError as error:
        raise placed(error, s) from None
    running = wait_running(run, stored.item)
    return StatementResult(
        kind,
        status="succeeded" if running else "running",
        object={"noun": "relation", "name": str(fqn)},
        query=name,
    )


def create_index(run: Run, s: ast.CreateIndex) -> StatementResult:
    """CREATE INDEX."""
    name = views.create_index(run.env, run.principal, s, run.context)
    return StatementResult("create_index", object={"noun": "index", "name": name})
