"""Statements that drop objects of any kind."""

from __future__ import annotations

from collections.abc import Callable

from leatstream.errors import LeatstreamError
from leatstream.model.names import quote
from leatstream.services.applications import removal as application_removal
from leatstream.services.environment import Environment, Principal
from leatstream.services.environment.results import Run, StatementResult
from leatstream.services.functions.catalog import delete_function_source
from leatstream.services.nouns import databases, schemas, stores
from leatstream.services.nouns.names import entity_name, qualify_schema, single, store_of
from leatstream.services.queries import views
from leatstream.services.queries.checkpoints import savepoints
from leatstream.services.queries.removal import delete_query
from leatstream.services.relations import entities, relations
from leatstream.services.staging.catalog_view import qualify
from leatstream.services.statements import access as access_statements
from leatstream.services.statements import secrets_and_registries as registered
from leatstream.services.statements.functions import drop_function
from leatstream.sql import statements as ast

# Objects with a name of one part that are deleted when the function returns.
_BY_NAME: dict[str, Callable[[Environment, Principal, str], object]] = {
    "database": databases.delete_database,
    "store": stores.delete_store,
    "function_source": delete_function_source,
    "query": delete_query,
    "savepoint": savepoints.delete_savepoint,
    **registered.DELETE,
    **access_statements.DELETE,
}


_OTHERS = ("schema", "entity", "function", "application", "index")


def drop(run: Run, s: ast.Drop) -> StatementResult:
    """DROP; its status is ``running`` where a job has to end before the object is deleted."""
    named = s.noun in _BY_NAME or s.noun in _OTHERS
    name, gone = ".".join(map(quote, s.name.parts)) if named else str(qualify(s.name, run.context)), True
    try:
        if s.noun == "index":
            name = views.drop_index(run.env, run.principal, qualify(s.name, run.context))
        else:
            gone = _drop(run, s) if named else _drop_relation(run, s)
    except LeatstreamError as error:
        if not (s.if_exists and error.code in ("not-found", "entity-not-found")):
            raise
    status = "succeeded" if gone else "running"
    return StatementResult(f"drop_{s.noun}", status, object={"noun": s.noun, "name": name})


def _drop(run: Run, s: ast.Drop) -> bool:
    """Whether it is already deleted."""
    env, who = run.env, run.principal
    if s.noun in _BY_NAME:
        _BY_NAME[s.noun](env, who, single(s.name))
    elif s.noun == "schema":
        schemas.delete_schema(env, who, *qualify_schema(s.name, None, run.context))
    elif s.noun == "entity":
        entities.delete_entity(env, who, store_of(env, s.store, run.context), entity_name(s.name))
    elif s.noun == "function":
        drop_function(env, who, s)
    else:
        return application_removal.drop_application(env, who, single(s.name), run.deadline)
    return True


def _drop_relation(run: Run, s: ast.Drop) -> bool:
    fqn = qualify(s.name, run.context)
    if views.is_view(run.env, run.principal, fqn, s):
        return views.drop_view(run.env, run.principal, fqn, run.deadline)
    relations.delete_relation(run.env, run.principal, fqn)
    return True
