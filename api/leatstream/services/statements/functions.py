"""Statements about users' functions: what their properties mean, and what they do."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from leatstream.errors import CatalogError, Faults, RequestError, already_exists, sentence
from leatstream.model.functions import DEFAULT_TIMEOUT_SECONDS, JAVA, FunctionDefinition
from leatstream.model.names import quote
from leatstream.model.objects import Column
from leatstream.model.types import DataType, parse_type
from leatstream.services.environment import Environment, Precondition, Principal, Stored
from leatstream.services.environment.results import Run, StatementResult
from leatstream.services.functions import catalog as service
from leatstream.services.nouns.names import single
from leatstream.services.staging.catalog_view import Assumed, CatalogView
from leatstream.sql import statements as ast

_SOURCE_PROPERTIES = ("file", "content", "description")
_FUNCTION_PROPERTIES = ("source.name", "class.name", "handler", "timeout.seconds", "description")


def create_function_source(run: Run, s: ast.CreateFunctionSource) -> StatementResult:
    """CREATE FUNCTION_SOURCE"""
    name = single(s.name)
    file, content, comment = source_body(s, run.files)
    if not (s.if_not_exists and _is_there(run, name, "source")):
        pre = Precondition(must_be_new=not s.or_replace)
        service.put_function_source(run.env, run.principal, name, file, content, comment, pre)
    return StatementResult("create_function_source", object={"noun": "function_source", "name": name})


def create_function(run: Run, s: ast.CreateFunction) -> StatementResult:
    """CREATE FUNCTION"""
    name = single(s.name)
    body = function_body(s)
    if not (s.if_not_exists and _is_there(run, name, "function")):
        stored: Stored[Any] = service.put_function(
            run.env, run.principal, name, body, Precondition(must_be_new=not s.or_replace)
        )
        name = stored.item.name
    return StatementResult("create_function", object={"noun": "function", "name": name})


def drop_function(env: Environment, who: Principal, s: ast.Drop) -> None:
    """DROP FUNCTION name[(types)]: with types, only the function that has them.

    Args:
        env: the environment.
        who: who asks.
        s: the statement.
    """
    name = single(s.name)
    if s.signature is not None:
        found = service.get_function(env, who, name)
        given = tuple(_type(text, s) for text in s.signature)
        if given != tuple(a.type for a in found.arguments):
            shown = ", ".join(map(str, given))
            hint = f"It is {name}({found.signature})."
            detail = f"There is no function {name}({shown})."
            raise CatalogError("not-found", detail, hint=hint, noun="function")
    service.delete_function(env, who, name)


def check_create_source(env: Environment, view: CatalogView, s: ast.CreateFunctionSource) -> None:
    """What CREATE FUNCTION_SOURCE would refuse; a file that was not sent along counts as there.

    Args:
        env: the environment.
        view: the catalog, with what is assumed.
        s: the statement.
    """
    service.require_code(env, env.caller)
    if _sent(s, {}) is not None:
        file, content, _ = source_body(s, {})
        service.check_source(file, content)
    name = single(s.name)
    _refuse_taken("function source", name, view.find_source(name) is not None, s)


def check_create_function(env: Environment, view: CatalogView, s: ast.CreateFunction) -> None:
    """What CREATE FUNCTION would refuse.

    Args:
        env: the environment.
        view: the catalog, with what is assumed.
        s: the statement.
    """
    name, body = single(s.name), function_body(s)
    if body.source not in view.assumed.unseen_sources:
        source = view.find_source(body.source) or service.require_source(view.unit, body.source)
        service.check_function(name, body, source)
    _refuse_taken("function", name, view.find_function(name) is not None, s)


def assume_source(assumed: Assumed, s: ast.CreateFunctionSource) -> None:
    """Count a source as there for the statements behind it; a file that was not sent is a source unseen."""
    if _sent(s, {}) is None:
        assumed.unseen_sources.add(single(s.name))
    else:
        assumed.function_sources[single(s.name)] = source_body(s, {})[:2]


def source_body(s: ast.CreateFunctionSource, files: Mapping[str, str]) -> tuple[str, str, str | None]:
    """File name, content and comment; RequestError with what is wrong in the properties."""
    _refuse_unknown(s.properties, _SOURCE_PROPERTIES)
    file = s.properties.get("file")
    if file is None:
        raise RequestError("missing-property", "A function source needs 'file'.", position=s.position)
    name = str(file.value).removeprefix("@").rsplit("/", 1)[-1]
    content = _sent(s, files)
    if content is None:
        raise RequestError(
            "invalid-property",
            f"The file {file.value} was not sent with the statement.",
            position=file.position,
            hint="Write 'file' = '@path' in `leat sql`, which sends it, or give the text in 'content'.",
        )
    return name, content, _comment(s)


def _sent(s: ast.CreateFunctionSource, files: Mapping[str, str]) -> str | None:
    """The source's content: given in the statement, or sent along under the name behind the @."""
    inline = s.properties.get("content")
    if inline is not None:
        return str(inline.value)
    file = s.properties.get("file")
    path = str(file.value) if file is not None else ""
    raw = files.get(path.removeprefix("@")) if path.startswith("@") else None
    if raw is None or file is None:
        return None
    if path.lower().endswith(".jar"):
        return raw
    try:
        return base64.b64decode(raw, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise RequestError("validation", f"{path} is no UTF-8 text.", position=file.position) from None


def function_body(s: ast.CreateFunction) -> FunctionDefinition:
    """The definition a CREATE FUNCTION gives; RequestError with every fault."""
    _refuse_unknown(s.properties, _FUNCTION_PROPERTIES)
    faults = Faults()
    arguments = tuple(Column(a.name, _typed(a.type, a.type_position, faults)) for a in s.arguments)
    returns = _typed(s.returns, s.returns_position, faults)
    source = s.properties.get("source.name")
    handler = s.properties.get("handler") or s.properties.get("class.name")
    for found, name in ((source, "source.name"), (handler, "handler")):
        if found is None:
            faults.add("missing-property", f"A function needs '{name}'.", position=s.position)
    timeout = s.properties.get("timeout.seconds")
    seconds = DEFAULT_TIMEOUT_SECONDS if timeout is None else timeout.value
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        faults.add("invalid-property", "timeout.seconds must be a whole number.", position=s.position)
        seconds = DEFAULT_TIMEOUT_SECONDS
    faults.raise_if_any()
    return FunctionDefinition(
        arguments=arguments,
        returns=returns,
        source=str(source.value) if source else "",
        handler=_handler(str(handler.value), s.language) if handler else "",
        timeout_seconds=seconds,
        comment=_comment(s),
        language=s.language,
    )


def _handler(text: str, language: str) -> str:
    return text if language == JAVA else text.rsplit(".", 1)[-1]


def _typed(text: str, position: Any, faults: Faults) -> DataType:
    try:
        return parse_type(text)
    except ValueError as error:
        faults.add("type-mismatch", sentence(str(error)), position=position)
        return parse_type("VARCHAR")


def _type(text: str, s: ast.Drop) -> DataType:
    try:
        return parse_type(text)
    except ValueError as error:
        raise RequestError("type-mismatch", sentence(str(error)), position=s.position) from None


def _comment(s: ast.CreateFunctionSource | ast.CreateFunction) -> str | None:
    description = s.properties.get("description")
    return s.comment or (str(description.value) if description else None)


def _refuse_unknown(properties: ast.Properties, known: tuple[str, ...]) -> None:
    faults = Faults()
    for key, value in properties.items():
        if key not in known:
            detail = f"Property {key} is not known here; known: {', '.join(known)}."
            faults.add("invalid-property", detail, position=value.key_position or value.position)
    faults.raise_if_any()


def _is_there(run: Run, name: str, what: str) -> bool:
    with run.env.open_unit(write=False) as unit:
        repository: Any = unit.function_sources if what == "source" else unit.functions
        return repository.find(name) is not None


def _refuse_taken(
    noun: str, name: str, there: bool, s: ast.CreateFunction | ast.CreateFunctionSource
) -> None:
    if there and not (s.if_not_exists or s.or_replace):
        raise already_exists(noun, quote(name))
