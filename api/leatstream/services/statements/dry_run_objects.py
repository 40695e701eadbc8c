"""Whether the objects that a statement names exist, or would by then, and whether they can be dropped."""

from __future__ import annotations

from typing import Any

from leatstream.errors import no_entity, not_found
from leatstream.model.names import quote
from leatstream.model.objects import RelationKind
from leatstream.services.applications.catalog import require_application
from leatstream.services.environment import Context, Environment
from leatstream.services.functions.catalog import callers, functions_of, require_function, require_source
from leatstream.services.nouns.databases import require_database
from leatstream.services.nouns.dependents import refuse_dependents
from leatstream.services.nouns.names import entity_name, qualify_schema, single, store_of
from leatstream.services.nouns.schemas import schema_key
from leatstream.services.planning.live_stores import LiveStores
from leatstream.services.queries.catalog import require_query
from leatstream.services.queries.checkpoints.origin import require_savepoint
from leatstream.services.queries.views import refuse_other_kind, require_index
from leatstream.services.relations.relations import query_dependents
from leatstream.services.staging.catalog_view import CatalogView, qualify
from leatstream.services.statements import access as access_statements
from leatstream.services.statements import secrets_and_registries_checks as registered_checks
from leatstream.services.statements.function_listings import find_builtin
from leatstream.sql import statements as ast
from leatstream.sql.noun_statements import RELATIONS


def require_schema(view: CatalogView, database: str, schema: str) -> None:
    """Raise not-found unless the schema exists or is planned.

    Args:
        view: the catalog, with what is assumed.
        database: the schema's.
        schema: its name.
    """
    if not view.has_database(database):
        raise not_found("database", quote(database))
    if not view.has_schema(database, schema):
        raise not_found("schema", schema_key(database, schema))


def require_object(env: Environment, view: CatalogView, noun: str, s: Any, context: Context) -> None:
    """Raise not-found unless the object exists or is planned.

    Args:
        env: the environment.
        view: the catalog, with what is assumed.
        noun: of the object.
        s: the statement that names it.
        context: database, schema and store of the session.
    """
    if noun == "database":
        if not view.has_database(single(s.name)):
            require_database(view.unit, single(s.name))
    elif noun == "schema":
        require_schema(view, *qualify_schema(s.name, None, context))
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


def check_drop(env: Environment, view: CatalogView, s: ast.Drop, context: Context) -> None:
    """Raise unless the object exists and nothing uses it.

    Args:
        env: the environment.
        view: the catalog, with what is assumed.
        s: the statement.
        context: database, schema and store of the session.
    """
    if s.noun in access_statements.DELETE:
        access_statements.check_drop(env, view, s)
        return
    if s.if_exists:
        found = view.find_relation(qualify(s.name, context)) if s.noun in RELATIONS else None
        if found is not None:
            refuse_other_kind(found, s.noun, "DROP", s.name.position)
        return
    require_object(env, view, s.noun, s, context)
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
