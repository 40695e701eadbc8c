"""What routes are given: environment, caller, names, preconditions, page size and token."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal, cast
from urllib.parse import quote as percent

from fastapi import Depends, Header, Path, Query, Request
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BeforeValidator
from starlette.convertors import Convertor, register_url_convertor

from leatstream.errors import Faults, RequestError, sentence
from leatstream.model.names import Fqn, parse_name, quote
from leatstream.rest import etag
from leatstream.rest.gate import SLASH
from leatstream.services.environment import Environment, Precondition, Principal
from leatstream.services.environment.pages import Only

# One part of a name: plain, or in double quotes. Control characters are no part of any name; a plain one has
# no colon either, which begins a verb. The contract contains the patterns; the readers below apply them,
# after a slash inside a segment has its own form again.
PART = r'(?:[^\s".:\x00-\x1f\x7f-\x9f]+|"(?:[^"\x00-\x1f\x7f]|"")+")'
NAME_PATTERN = f"^{PART}$"
FQN_PATTERN = rf"^{PART}\.{PART}\.{PART}$"
_ENTITY_PATTERN = r"^[^\x00-\x1f\x7f]+$"
ID_PATTERN = r"^[A-Za-z0-9_-]+$"  # Of what the server itself names: drivers, running SELECTs.
DURATION_PATTERN = r"^[0-9]{1,6}(ms|s|m)?$"


class _Noun(Convertor[str]):
    """A name at the end of a path: not one that ends in a verb, as in ``/stores/a:test``."""

    regex = r"""(?![^/"]*:[a-z]+$)[^/]+"""

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("noun", _Noun())
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, None: 1.0}
NAME_HELP = "Folds to lower case unless it stands in double quotes."


async def _environment(request: Request) -> Environment:
    env = cast("Environment", request.app.state.env)
    principal = request.scope.get("leatstream.principal")
    return env if principal is None else env.seen_by(principal)


async def _principal(request: Request) -> Principal:
    return cast("Principal", request.scope["leatstream.principal"])


async def _driver_token(request: Request) -> str:
    return cast("str", request.scope["leatstream.token"])


IfMatch = Annotated[
    str | None, Header(alias="If-Match", max_length=100, description="ETag the object must still have.")
]
IfNoneMatch = Annotated[
    Literal["*"] | None, Header(alias="If-None-Match", description="`*`: the object must not exist yet.")
]


async def _precondition(if_match: IfMatch = None, if_none_match: IfNoneMatch = None) -> Precondition:
    return etag.precondition(if_match, if_none_match)


async def _must_be_new(if_none_match: IfNoneMatch = None) -> bool:
    return if_none_match is not None


async def _if_match(if_match: IfMatch = None) -> Precondition:
    return etag.precondition(if_match, None)


async def refuse_unknown_parameters(request: Request) -> None:
    """Refuse query parameters that the operation does not have: a misspelt one is never ignored.

    Raises:
        RequestError: validation, with each of them.
    """
    known = _known_parameters(request.scope["route"])
    faults = Faults()
    for name in sorted(set(request.query_params) - known):
        hint = f"This operation takes: {', '.join(sorted(known)) or 'none'}."
        faults.add("validation", f"Query parameter {name[:100]} is not known.", hint=hint)
    faults.raise_if_any()


# By endpoint: routes cannot be keys. One entry per operation.
_KNOWN: dict[Any, frozenset[str]] = {}


def _known_parameters(route: APIRoute) -> frozenset[str]:
    if route.endpoint in _KNOWN:
        return _KNOWN[route.endpoint]
    found: set[str] = set()
    waiting = [route.dependant]
    while waiting:
        dependant = waiting.pop()
        found.update(field.alias for field in dependant.query_params)
        waiting.extend(dependant.dependencies)
    return _KNOWN.setdefault(route.endpoint, frozenset(found))


Env = Annotated[Environment, Depends(_environment)]
Caller = Annotated[Principal, Depends(_principal)]
DriverToken = Annotated[str, Depends(_driver_token)]
Pre = Annotated[Precondition, Depends(_precondition)]
MustBeNew = Annotated[bool, Depends(_must_be_new)]
PreMatch = Annotated[Precondition, Depends(_if_match)]


def read_name(text: str) -> str:
    """A path segment as an exact name.

    Raises:
        ValueError: it is no name.
    """
    text = text.replace(SLASH, "/")
    if re.match(NAME_PATTERN, text) is None:
        raise ValueError('write a name as demo or, to keep it as it is, in double quotes: "Demo"')
    return parse_name(text)


def read_entity(text: str) -> str:
    """A path segment as the name of an entity or subject: exact, quoted or not; nobody folds them.

    Raises:
        ValueError: it is no name.
    """
    text = text.replace(SLASH, "/")
    if re.match(_ENTITY_PATTERN, text) is None:
        raise ValueError("a name has no control characters")
    quoted = len(text) > 2 and text[0] == text[-1] == '"'
    return text[1:-1].replace('""', '"') if quoted else text


def read_fqn(text: str) -> Fqn:
    """A path segment as a relation's full name.

    Raises:
        RequestError: validation, it is none.
    """
    text = text.replace(SLASH, "/")
    try:
        if re.match(FQN_PATTERN, text) is None:
            raise ValueError('write database.schema.name, other than plain names as "Name"')
        return Fqn.parse(text)
    except ValueError as error:
        raise RequestError("validation", sentence(str(error))) from error


NamePath = Annotated[
    str,
    Path(
        min_length=1,
        max_length=255,
        description=NAME_HELP,
        examples=["demo"],
        json_schema_extra={"pattern": NAME_PATTERN},
    ),
    AfterValidator(read_name),
]


def _outside_name(description: str, example: str, longest: int) -> Any:
    """The path segment of a name that another system gives."""
    return Path(
        min_length=1,
        max_length=longest,
        description=description,
        examples=[example],
        json_schema_extra={"pattern": _ENTITY_PATTERN},
    )


EntityPath = Annotated[
    str,
    _outside_name("The entity's name in its store, case-sensitive.", "pageviews", 255),
    AfterValidator(read_entity),
]
SubjectPath = Annotated[
    str,
    _outside_name("The subject's name in the registry, exact.", "pageviews-value", 400),
    AfterValidator(read_entity),
]
FqnPath = Annotated[
    str,
    Path(
        min_length=5,
        max_length=767,
        description="database.schema.name; parts that are not plain lower case stand in double quotes.",
        examples=["demo.public.pageviews"],
        json_schema_extra={"pattern": FQN_PATTERN},
    ),
]
NameQuery = Annotated[
    str | None,
    Query(min_length=1, max_length=255, description=NAME_HELP, json_schema_extra={"pattern": NAME_PATTERN}),
    AfterValidator(lambda text: None if text is None else read_name(text)),
]


def _no_number(value: object) -> object:
    """A moment as text: a number says neither its unit nor its zone. ValueError."""
    try:
        float(str(value))
    except ValueError:
        return value
    raise ValueError("must be a time such as 2026-01-31T12:00:00Z")


Moment = Annotated[datetime, BeforeValidator(_no_number)]
PageSize = Annotated[int, Query(ge=1, le=1000, description="Items on one page.")]
PageToken = Annotated[
    str | None,
    Query(min_length=1, max_length=2000, description="next_page_token of the page before."),
]


NamePart = Annotated[
    str | None, Query(min_length=1, max_length=255, description="Part of the name, in any case.")
]


def only(q: str | None, **wanted: str | None) -> Only:
    """What a list is narrowed to: part of the name, and filters by name."""
    return Only(q, wanted)


def location(*path: str, raw: str = "") -> str:
    """Path of an object: nouns as they are, names quoted as SQL does, all percent-encoded.

    Args:
        *path: noun and name in turn.
        raw: a last segment that is no SQL name, such as an entity's.
    """
    parts = [part if index % 2 == 0 else quote(part) for index, part in enumerate(path)]
    return "/v1/" + "/".join(percent(part, safe="") for part in (*parts, *filter(None, [raw])))


def seconds(text: str) -> float:
    """A duration such as ``30s``, ``500ms``, ``2m`` or ``30`` (seconds)."""
    match = re.match(r"(\d+)(ms|s|m)?\Z", text)
    if match is None:
        raise RequestError("validation", "A duration must be a number with ms, s or m, such as 30s.")
    return int(match[1]) * _UNITS[match[2]]
