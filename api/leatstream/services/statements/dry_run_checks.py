"""What can be said of a statement before it runs: whether the objects it names exist already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leatstream.errors import already_exists
from leatstream.inference.sink_properties import SinkRequest, infer_sink_properties
from leatstream.model.names import quote
from leatstream.services.environment import Context, Environment
from leatstream.services.nouns.databases import require_database
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
from leatstream.services.planning.selects import plan_select
from leatstream.services.queries.views import (
    check_index,
    find_index,
    index_fqn,
)
from leatstream.services.relations.declarations import entity_properties
from leatstream.services.relations.table_shapes import check_shape, read_shape
from leatstream.services.selects import snapshots
from leatstream.services.staging.catalog_view import (
    CatalogView,
    qualify,
)
from leatstream.services.statements import access as access_statements
from leatstream.services.statements import secrets_and_registries_checks as registered_checks
from leatstream.services.statements.dry_run_objects import check_drop, require_object, require_schema
from leatstream.services.statements.functions import (
    check_create_function,
    check_create_source,
)
from leatstream.services.statements.inserted_values import check_json, check_values
from leatstream.services.statements.printed_records import wanted_of
from leatstream.services.statements.restarts import check_all, check_start
from leatstream.sql import statements as ast
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
    require_schema(view, fqn.database, fqn.schema)
    _refuse_existing(view, "relation", str(fqn), view.find_relation(fqn) is not None, _may_exist(s))


def _create_function_source(
    env: Environment, view: CatalogView, s: ast.CreateFunctionSource, context: Context
) -> None:
    check_create_source(env, view, s)


def _create_function(env: Environment, view: CatalogView, s: ast.CreateFunction, context: Context) -> None:
    check_create_function(env, view, s)


def _by_noun(
    env: Environment, view: CatalogView, s: ast.Use | ast.SetDefault | ast.Describe, context: Context
) -> None:
    require_object(env, view, s.noun, s, context)


def _of_query(
    env: Environment,
    view: CatalogView,
    s: ast.TerminateQuery | ast.DescribeQuery | ast.RollbackQuery,
    context: Context,
) -> None:
    require_object(env, view, "query", s, context)


def _restart_query(env: Environment, view: CatalogView, s: ast.RestartQuery, context: Context) -> None:
    require_object(env, view, "query", s, context)
    query = view.unit.queries.find(single(s.name))
    if query is not None:
        check_start(query, s)


def _restart_queries(_: Environment, __: CatalogView, s: ast.RestartQueries, ___: Context) -> None:
    check_all(s)


def _print(env: Environment, view: CatalogView, s: ast.Print, context: Context) -> None:
    wanted_of(s.properties)
    require_object(env, view, "entity", s, context)


def _generate(env: Environment, view: CatalogView, s: ast.Generate, context: Context) -> None:
    require_object(env, view, "entity", s, context)


def _insert_values(env: Environment, view: CatalogView, s: ast.InsertValues, context: Context) -> None:
    check_values(env, view, s, context)


def _insert_entity(env: Environment, view: CatalogView, s: ast.InsertEntity, context: Context) -> None:
    check_json(s)
    require_object(env, view, "entity", s, context)


def _update_entity(env: Environment, view: CatalogView, s: ast.UpdateEntity, context: Context) -> None:
    entity_properties(s.properties)
    require_object(env, view, "entity", s, context)


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
    require_object(env, view, "application", s, context)


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
    ast.Drop: check_drop,
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
