"""``/v1/objects:validate``"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from leatstream.errors import RequestError, sentence
from leatstream.rest.answers import WRITING_STORE
from leatstream.rest.deps import Caller, Env, read_entity, read_fqn, read_name
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.entities import EntityBody
from leatstream.rest.schemas.functions import FunctionBody, FunctionSourceBody
from leatstream.rest.schemas.objects import ObjectValidationAnswer, ObjectValidationBody
from leatstream.rest.schemas.relations import RelationBody
from leatstream.services.environment import Environment, Principal
from leatstream.services.functions import catalog as functions
from leatstream.services.queries import removal
from leatstream.services.queries.restart_callers import callers_of_source
from leatstream.services.relations import entities, relations
from leatstream.services.statements.object_dry_run import check_put

router = api_router(prefix="/v1", tags=["statements"])

_Put = Callable[[Environment, Principal], None]


@router.post("/objects:validate", responses=WRITING_STORE)
def validate_object(env: Env, caller: Caller, body: ObjectValidationBody) -> ObjectValidationAnswer:
    """Check a PUT or DELETE without doing it. The problem is the one that the request would answer."""
    try:
        assume = body.assume.to_domain() if body.assume else None
    except ValueError as error:
        raise RequestError("validation", sentence(str(error)), pointer="#/assume/relations") from error
    names, kind = _kind(body.path)
    if body.body is None:
        check_put(env, caller, _delete(kind, names), assume)
        return ObjectValidationAnswer(valid=True)
    if kind not in _MODELS:
        raise RequestError("validation", "A query is checked by statements:validate.", pointer="#/body")
    model = _MODELS[kind]
    try:
        given = model.model_validate(body.body)
    except ValidationError as error:
        # As of a PUT of this body: the pointers begin at it.
        faults = [{**fault, "loc": ("body", *fault["loc"])} for fault in error.errors(include_url=False)]
        raise RequestValidationError(faults) from error
    check_put(env, caller, _put(kind, names, given), assume)
    restarts: list[str] = []
    if isinstance(given, FunctionSourceBody) and given.restart_queries:
        restarts = callers_of_source(env, names[0], given.content)
    return ObjectValidationAnswer(valid=True, restarts=restarts)


_PATHS = {
    "relation": re.compile(r"/v1/relations/([^/]+)\Z"),
    "entity": re.compile(r"/v1/stores/([^/]+)/entities/([^/]+)\Z"),
    "function_source": re.compile(r"/v1/function-sources/([^/]+)\Z"),
    "function": re.compile(r"/v1/functions/([^/]+)\Z"),
    "query": re.compile(r"/v1/queries/([^/]+)\Z"),
}
_MODELS: dict[str, type[BaseModel]] = {
    "relation": RelationBody,
    "entity": EntityBody,
    "function_source": FunctionSourceBody,
    "function": FunctionBody,
}


def _kind(path: str) -> tuple[list[str], str]:
    """The parts of a path that are names, and what kind of object it is."""
    for kind, pattern in _PATHS.items():
        found = pattern.match(path)
        if found is not None:
            return [unquote(part) for part in found.groups()], kind
    raise RequestError(
        "validation",
        "'path' is not that of a relation, entity, function source, function or query.",
        pointer="#/path",
        hint="Write it as for a PUT, such as /v1/relations/demo.public.pageviews.",
    )


def _put(kind: str, parts: list[str], body: Any) -> _Put:
    """Puts the object into an environment."""
    try:
        if kind == "relation":
            fqn = read_fqn(parts[0])
            return lambda env, who: _done(relations.put_relation(env, who, fqn, body.to_domain()))
        name = read_name(parts[0])
        if kind == "entity":
            entity = read_entity(parts[1])
            return lambda env, who: entities.check_entity(
                env, who, name, entity, body.properties(), body.configs(), body.shape()
            )
    except ValueError as error:
        raise RequestError("validation", sentence(str(error)), pointer="#/path") from error
    if kind == "function":
        return lambda env, who: _done(functions.put_function(env, who, name, body.to_domain()))
    return lambda env, who: _done(functions.put_function_source(env, who, name, body.file, body.content))


def _delete(kind: str, parts: list[str]) -> _Put:
    """Deletes the object in an environment."""
    try:
        if kind == "relation":
            fqn = read_fqn(parts[0])
            return lambda env, who: relations.delete_relation(env, who, fqn)
        name = read_name(parts[0])
        if kind == "entity":
            entity = read_entity(parts[1])
            return lambda env, who: entities.delete_entity(env, who, name, entity)
    except ValueError as error:
        raise RequestError("validation", sentence(str(error)), pointer="#/path") from error
    if kind == "query":
        return lambda env, who: _done(removal.delete_query(env, who, name))
    if kind == "function":
        return lambda env, who: functions.delete_function(env, who, name)
    return lambda env, who: functions.delete_function_source(env, who, name)


def _done(_: object) -> None:
    """What was put is given up."""
