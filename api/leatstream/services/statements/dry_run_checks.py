"""What can be said of a statement before it runs: whether the objects it names exist already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from leatstream.errors import already_exists, no_entity, not_found
from leatstream.inference.sink_properties import SinkRequest, infer_sink_properties
from leatstream.model.access import AccountKind
from leatstream.model.names import quote
from leatstream.model.objects import RelationKind
from leatstream.model.registered import SecretName
from leatstream.services.applications.catalog import require_application
from leatstream.services.environment import Context, Environment
from leatstream.services.functions.catalog import callers, functions_of, require_function, require_source
from leatstream.services.nouns.databases import PUBLIC, require_database
from leatstream.services.nouns.dependents import refuse_dependents
from leatstream.services.nouns.external_ids import with_generated
from leatstream.services.nouns.names import entity_name, qualify_schema, single, store_of
from leatstream.services.nouns.places import refuse_hosts, store_hosts
from leatstream.services.nouns.schemas import schema_key
from leatstream.services.nouns.stores import (
    check_config,
    refuse_moved_secrets,
    require_credentials,
    split_secrets,
)
from leatstream.services.planning.live_stores import LiveStores
from leatstream.services.planning.query_properties import query_name
from leatstream.services.planning.selects import plan_select
from leatstream.services.queries.catalog import require_query
from leatstream.services.queries.checkpoints.origin import require_savepoint
from leatstream.services.queries.views import (
    check_index,
    find_index,
    index_fqn,
    refuse_other_kind,
    require_index,
)
from leatstream.services.relations.declarations import entity_properties, relation_definition
from leatstream.services.relations.relations import query_dependents
from leatstream.services.relations.table_shapes import check_shape, read_shape
from leatstream.services.selects import snapshots
from leatstream.services.staging.catalog_view import (
    Assumed,
    AssumedQuery,
    CatalogView,
    planned_registry,
    qualify,
)
from leatstream.services.statements import access as access_statements
from leatstream.services.statements import applications as application_statements
from leatstream.services.statements import secrets_and_registries_checks as registered_checks
from leatstream.services.statements.function_listings import find_builtin
from leatstream.services.statements.functions import (
    assume_source,
    check_create_function,
    check_create_source,
    function_body,
)
from leatstream.services.statements.inserted_values import check_json, check_values
from leatstream.services.statements.printed_records import wanted_of
from leatstream.services.statements.restarts import check_all, check_start
from leatstream.services.statements.secrets_and_registries import NOUN_OF
from leatstream.sql import access_statements as access
from leatstream.sql import statements as ast
from leatstream.sql.noun_statements import RELATIONS
from leatstream.sql.registered_properties import read_registry_properties
from leatstream.sql.store_properties import read_store_properties, read_store_registry, read_store_update


def check_statement(env: Environment, view: CatalogView, statement: ast.Statement, context: Context) -> None:
    """Raise what running the statement would raise, as far as that shows without running it.

    Args:
        env: the environment.
        view: the catalog, with what is assumed.
        statement: that would run.
        context: database, schema and store of the session.

    Raises:
        LeatstreamError: the first thing that is wrong.
    """
    check = _CHECKS.get(type(statement))
    if check is not None:
        check(env, view, statement, context)


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


def _refuse_existing(view: CatalogView, noun: str, name: str, there: bool, allowed: bool) -> None:
    if there and not allowed and (noun, name) not in view.assumed.dropped:
        raise already_exists(noun, name)


def _may_exist(s: ast.CreateDatabase | ast.CreateSchema | ast.CreateStore | ast.CreateStream) -> bool:
    return s.if_not_exists or s.or_replace


def _create_database(env: Environment, view: CatalogView, s: ast.CreateDatabase, context: Context) -> None:
    name = single(s.name)
    _refuse_existing(view, "database", quote(name), view.has_database(name), _may_exist(s))


def _create_schema(env: Environment, view: CatalogView, s: ast.CreateSchema, context: Context) -> None:
    database, name = qualify_schema(s.name, s.database, context)
    if not view.has_database(database):
        require_database(view.unit, database)
    key = schema_key(database, name)
    _refuse_existing(view, "schema", key, view.has_schema(database, name), _may_exist(s))


def _create_store(env: Environment, view: CatalogView, s: ast.CreateStore, context: Context) -> None:
    name = single(s.name)
    kind, config = read_store_properties(s.properties)
    plain, secrets = split_secrets(env, kind, config)
    plain = with_generated(kind, plain, view.unit.stores.find(name))
    values = {k: registered_checks.secret_value(view, s, v) for k, v in secrets.items() if v is not None}
    refuse_hosts(env, "store", name, store_hosts(env, kind, plain), f"#/{kind}")
    check_config(env, kind, plain, values)
    require_credentials(env, env.caller, kind, plain)
    registered_checks.require_registry_named(view, read_store_registry(s.properties), s)
    _refuse_existing(view, "store", quote(name), view.find_store(name) is not None, _may_exist(s))


def _create_entity(env: Environment, view: CatalogView, s: ast.CreateEntity, context: Context) -> None:
    live = LiveStores(env, view)
    store = live.store(store_of(env, s.store, context), s.store.position if s.store else None)
    name = entity_name(s.name)
    existing = live.entity(store.name, name)
    _refuse_existing(view, "entity", name, existing is not None, s.if_not_exists)
    if existing is None:
        connector = live.connector(store.name)
        properties, configs = entity_properties(s.properties)
        if connector.tables:
            check_shape(connector, read_shape(s.properties))
        limits = connector.property_limits(env.settings.store_timeout)
        infer_sink_properties(
            SinkRequest(
                kind=store.kind,
                store=store.name,
                declared=connector.needed_properties(configs),
                explicit=properties,
                limits=limits,
                entity=name,
            )
        )


def _create_stream(env: Environment, view: CatalogView, s: ast.CreateStream, context: Context) -> None:
    fqn = qualify(s.name, context)
    _require_schema(view, fqn.database, fqn.schema)
    _refuse_existing(view, "relation", str(fqn), view.find_relation(fqn) is not None, _may_exist(s))


def _require_schema(view: CatalogView, database: str, schema: str) -> None:
    if not view.has_database(database):
        raise not_found("database", quote(database))
    if not view.has_schema(database, schema):
        raise not_found("schema", schema_key(database, schema))


def _exists(env: Environment, view: CatalogView, noun: str, s: Any, context: Context) -> None:
    """Raise not-found unless the object exists or is planned."""
    if noun == "database":
        if not view.has_database(single(s.name)):
            require_database(view.unit, single(s.name))
    elif noun == "schema":
        _require_schema(view, *qualify_schema(s.name, None, context))
    elif noun == "store":
        view.require_store(single(s.name), s.name.position)
    elif noun == "query":
        require_query(view.unit, single(s.name))
    elif noun in RELATIONS:
        verb = "DESCRIBE" if isinstance(s, ast.Describe) else "DROP"
        refuse_other_kind(view.resolve(s.name, context), noun, verb, s.name.position)
    elif noun == "index":
        require_index(view.unit, qualify(s.name, context))
    elif noun == "role":
        return
    elif noun == "function":
        _function_exists(view, s)
    elif noun == "function_source":
        if view.find_source(single(s.name)) is None:
            require_source(view.unit, single(s.name))
    elif noun == "application":
        require_application(view.unit, single(s.name))
    elif noun == "savepoint":
        require_savepoint(view.unit, single(s.name))
    elif noun in registered_checks.REQUIRE:
        registered_checks.exists(view, noun, single(s.name))
    else:
        store = store_of(env, s.store, context)
        name = entity_name(s.name)
        if LiveStores(env, view).entity(store, name) is None:
            raise no_entity(quote(store), name)


def _function_exists(view: CatalogView, s: Any) -> None:
    if view.find_function(single(s.name)) is not None:
        return
    if isinstance(s, ast.Describe):
        find_builtin(s.name)
    else:
        require_function(view.unit, single(s.name))


def _create_function_source(
    env: Environment, view: CatalogView, s: ast.CreateFunctionSource, context: Context
) -> None:
    check_create_source(env, view, s)


def _create_function(env: Environment, view: CatalogView, s: ast.CreateFunction, context: Context) -> None:
    check_create_function(env, view, s)


def _drop(env: Environment, view: CatalogView, s: ast.Drop, context: Context) -> None:
    if s.noun in access_statements.DELETE:
        access_statements.check_drop(env, view, s)
        return
    if s.if_exists:
        found = view.find_relation(qualify(s.name, context)) if s.noun in RELATIONS else None
        if found is not None:
            refuse_other_kind(found, s.noun, "DROP", s.name.position)
        return
    _exists(env, view, s.noun, s, context)
    if s.noun in RELATIONS:
        fqn = qualify(s.name, context)
        found = view.unit.relations.find(str(fqn))
        own = view.unit.queries.find_by_id(found.created_by_query or "") if found else None
        kept = found is not None and found.kind is RelationKind.MATERIALIZED_VIEW and own is not None
        mine = f"query {own.name}" if own is not None and kept else ""
        used = [d for d in query_dependents(view.unit, fqn) if d != mine]
        refuse_dependents(f"{found.kind.value.replace('_', ' ') if found else s.noun} {fqn}", used, view.unit)
    elif s.noun == "function":
        refuse_dependents(f"function {quote(single(s.name))}", callers(view.unit, single(s.name)), view.unit)
    elif s.noun == "function_source":
        made = [f"function {quote(f.name)}" for f in functions_of(view.unit, single(s.name))]
        refuse_dependents(f"function source {quote(single(s.name))}", made, view.unit)
    elif s.noun == "store":
        name = single(s.name)
        used = [
            f"stream {r.fqn}" for r in view.unit.unfiltered.relations.page(limit=100_000) if r.store == name
        ]
        refuse_dependents(f"store {quote(name)}", used, view.unit)
    elif s.noun in registered_checks.REQUIRE:
        registered_checks.refuse_used(view, s.noun, single(s.name))


def _by_noun(
    env: Environment, view: CatalogView, s: ast.Use | ast.SetDefault | ast.Describe, context: Context
) -> None:
    _exists(env, view, s.noun, s, context)


def _of_query(
    env: Environment,
    view: CatalogView,
    s: ast.TerminateQuery | ast.DescribeQuery | ast.RollbackQuery,
    context: Context,
) -> None:
    _exists(env, view, "query", s, context)


def _restart_query(env: Environment, view: CatalogView, s: ast.RestartQuery, context: Context) -> None:
    _exists(env, view, "query", s, context)
    query = view.unit.queries.find(single(s.name))
    if query is not None:
        check_start(query, s)


def _restart_queries(_: Environment, __: CatalogView, s: ast.RestartQueries, ___: Context) -> None:
    check_all(s)


def _print(env: Environment, view: CatalogView, s: ast.Print, context: Context) -> None:
    wanted_of(s.properties)
    _exists(env, view, "entity", s, context)


def _generate(env: Environment, view: CatalogView, s: ast.Generate, context: Context) -> None:
    _exists(env, view, "entity", s, context)


def _insert_values(env: Environment, view: CatalogView, s: ast.InsertValues, context: Context) -> None:
    check_values(env, view, s, context)


def _insert_entity(env: Environment, view: CatalogView, s: ast.InsertEntity, context: Context) -> None:
    check_json(s)
    _exists(env, view, "entity", s, context)


def _update_entity(env: Environment, view: CatalogView, s: ast.UpdateEntity, context: Context) -> None:
    entity_properties(s.properties)
    _exists(env, view, "entity", s, context)


def _update_store(env: Environment, view: CatalogView, s: ast.UpdateStore, context: Context) -> None:
    store = view.require_store(single(s.name), s.name.position)
    config = read_store_update(s.properties, store.kind, store.config, store.secret_names)
    plain, secrets = split_secrets(env, store.kind, config)
    plain = with_generated(store.kind, plain, store)
    refuse_moved_secrets(env, store, plain, secrets)
    refuse_hosts(env, "store", store.name, store_hosts(env, store.kind, plain), f"#/{store.kind}")
    if plain != dict(store.config):
        require_credentials(env, env.caller, store.kind, plain)
    for value in secrets.values():
        if value is not None:
            registered_checks.secret_value(view, s, value)
    registered_checks.require_registry_named(view, read_store_registry(s.properties), s)


def _select(env: Environment, view: CatalogView, s: ast.Select, context: Context) -> None:
    if snapshots.reads_views(view, s.select, context):
        snapshots.check(env, view, s, context)
    else:
        plan_select(env, view, s, context)


def _create_index(env: Environment, view: CatalogView, s: ast.CreateIndex, context: Context) -> None:
    check_index(view.resolve(s.view, context), s)
    fqn = index_fqn(s, context)
    taken = find_index(view.unit, fqn) is not None
    _refuse_existing(view, "index", str(fqn), taken, s.if_not_exists)


def _of_application(
    env: Environment,
    view: CatalogView,
    s: ast.TerminateApplication | ast.RestartApplication,
    context: Context,
) -> None:
    _exists(env, view, "application", s, context)


_Check = Callable[[Environment, CatalogView, Any, Context], None]
_CHECKS: dict[type[ast.Statement], _Check] = {
    ast.CreateDatabase: _create_database,
    ast.CreateSchema: _create_schema,
    ast.CreateStore: _create_store,
    ast.CreateEntity: _create_entity,
    ast.TerminateApplication: _of_application,
    ast.RestartApplication: _of_application,
    ast.CreateSecret: registered_checks.create,
    ast.CreateSchemaRegistry: registered_checks.create,
    ast.CreateDescriptorSource: registered_checks.create,
    ast.UpdateSecret: registered_checks.update,
    ast.UpdateSchemaRegistry: registered_checks.update,
    ast.CreateFunctionSource: _create_function_source,
    ast.CreateFunction: _create_function,
    ast.CreateStream: _create_stream,
    ast.CreateChangelog: _create_stream,
    ast.CreateTable: _create_stream,
    ast.CreateIndex: _create_index,
    ast.InsertValues: _insert_values,
    ast.InsertEntity: _insert_entity,
    ast.UpdateStore: _update_store,
    ast.UpdateEntity: _update_entity,
    ast.Drop: _drop,
    ast.Use: _by_noun,
    ast.SetDefault: _by_noun,
    ast.Describe: _by_noun,
    ast.Print: _print,
    ast.Generate: _generate,
    ast.DescribeQuery: _of_query,
    ast.TerminateQuery: _of_query,
    ast.RestartQuery: _restart_query,
    ast.RestartQueries: _restart_queries,
    ast.RollbackQuery: _of_query,
    ast.Select: _select,
    **dict.fromkeys(access_statements.HANDLERS, access_statements.check),
}
