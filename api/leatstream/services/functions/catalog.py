"""Function sources, and the functions made of them. No user's code runs here."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from leatstream.errors import AccessError, CatalogError, RequestError
from leatstream.model.functions import (
    DEFAULT_TIMEOUT_SECONDS,
    JAVA,
    LONGEST_SOURCE,
    PYTHON,
    FunctionDefinition,
    FunctionSource,
    UserFunction,
)
from leatstream.model.names import quote
from leatstream.model.objects import HIDDEN_PREFIX, Meta
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Precondition, Principal, Stored
from leatstream.services.environment.authorization import WRITE, authorize
from leatstream.services.environment.upsert import upsert
from leatstream.services.functions.java_source import check_class, check_jar
from leatstream.services.functions.python_source import check_handler, check_syntax
from leatstream.services.nouns.dependents import refuse_dependents
from leatstream.services.nouns.noun import NounService
from leatstream.sql.function_table import functions, refusals

_MOST_ARGUMENTS = 32
_LONGEST_TIMEOUT = 3600
_ANY = Precondition()


def put_function_source(
    env: Environment,
    principal: Principal,
    name: str,
    file: str,
    content: str,
    comment: str | None = None,
    pre: Precondition = _ANY,
) -> Stored[FunctionSource]:
    """Create or replace; functions that stand on it must still be there in a new text.

    Args:
        env: the environment.
        principal: who asks.
        name: of the source.
        file: name of its file.
        content: text of the file.
        comment: what DESCRIBE shows; None = none.
        pre: precondition.

    Raises:
        AccessError: the principal may not bring code to drivers.
        RequestError: validation, the text is no Python, or a function would lose its handler.
    """
    authorize(principal, WRITE, "function source", name)
    with env.open_unit(write=False) as unit:
        old = unit.function_sources.find(name)
    if old is None or (old.file, old.content) != (file, content):
        require_code(env, principal)
    language = check_source(file, content)
    with env.open_unit() as unit:
        for function in functions_of(unit, name):
            if language != function.language:
                detail = f"Function {quote(function.name)} would turn from {function.language} to {language}."
                raise RequestError("validation", detail, hint="Drop the function first.")
            aggregate = _offered(language, content, file, function.handler, len(function.arguments))
            if aggregate is not function.aggregate:
                detail = f"Function {quote(function.name)} would turn from scalar to aggregate, or back."
                raise RequestError("validation", detail, hint="Drop the function first.")

        def make(meta: Meta, old: FunctionSource | None) -> FunctionSource:
            return make_source(meta, name, file, content, comment)

        stored = upsert(env, principal, unit.function_sources, name, "function source", "fns", pre, make)
        unit.commit()
    return stored


def require_code(env: Environment, principal: Principal) -> None:
    """AccessError unless the principal may bring code to drivers, which is more than any grant gives.

    Args:
        env: the environment.
        principal: who makes a source, or changes its code.
    """
    rights = principal.rights
    if "orgadmin" in rights.roles or (env.settings.isolated_drivers and rights.everything):
        return
    if env.settings.isolated_drivers:
        where, hint = (
            "their code runs in drivers",
            "Ask a sysadmin to do it, and to grant USAGE on the source.",
        )
    else:
        # Such code can read the administrator's token, so users who bring it have the rights of an orgadmin.
        where = "their code runs with the account of this server"
        hint = "Ask an orgadmin to do it, and to grant USAGE on the source."
    detail = f"Role {principal.role} may not create or change function sources: {where}."
    raise AccessError("permission-denied", detail, hint=hint)


def check_source(file: str, content: str) -> str:
    """The language of a source; RequestError if it is none."""
    if len(content.encode()) > LONGEST_SOURCE:
        detail = f"A function source has at most {LONGEST_SOURCE // 1024} KiB."
        raise RequestError("validation", detail, pointer="#/content")
    ending = file.rsplit(".", 1)[-1].lower()
    if ending == "jar":
        check_jar(content, file)
        return JAVA
    if ending != "py":
        detail = f"The file {file} of a function source ends in .py or .jar."
        raise RequestError("validation", detail, pointer="#/file")
    check_syntax(content, file)
    return PYTHON


def put_function(
    env: Environment,
    principal: Principal,
    name: str,
    body: FunctionDefinition,
    pre: Precondition = _ANY,
) -> Stored[UserFunction]:
    """Create or replace; one that queries call keeps its arguments and type.

    Args:
        env: the environment.
        principal: who asks.
        name: of the function.
        body: its definition.
        pre: precondition.

    Raises:
        RequestError: what is wrong with it.
        CatalogError: not-found for its source; has-dependents.
    """
    authorize(principal, WRITE, "function", name)
    with env.open_unit() as unit:
        source = require_source(unit, body.source)

        def make(meta: Meta, old: UserFunction | None) -> UserFunction:
            return make_function(meta, name, body, source)

        old = unit.functions.find(name)
        if old is not None and replace(make(old.meta, old), comment=old.comment) != old:
            refuse_dependents(f"function {quote(name)}", callers(unit, name), unit)
        stored = upsert(env, principal, unit.functions, name, "function", "fn", pre, make)
        unit.commit()
    return stored


def make_source(meta: Meta, name: str, file: str, content: str, comment: str | None = None) -> FunctionSource:
    """A function source, checked; RequestError if it is none.

    Args:
        meta: of the object.
        name: of the source.
        file: name of its file.
        content: text of the file.
        comment: what DESCRIBE shows; None = none.
    """
    return FunctionSource(
        meta=meta,
        name=name,
        file=file,
        language=check_source(file, content),
        content=content,
        digest=hashlib.sha256(content.encode()).hexdigest(),
        comment=comment,
    )


def make_function(meta: Meta, name: str, body: FunctionDefinition, source: FunctionSource) -> UserFunction:
    """A function, checked against its source; RequestError with what is wrong.

    Args:
        meta: of the object.
        name: of the function.
        body: its definition.
        source: what it is made of.
    """
    return UserFunction(
        meta=meta,
        name=name,
        arguments=body.arguments,
        returns=body.returns,
        source=body.source,
        handler=body.handler,
        aggregate=check_function(name, body, source),
        timeout_seconds=body.timeout_seconds,
        comment=body.comment,
        language=source.language,
    )


def check_function(name: str, body: FunctionDefinition, source: FunctionSource) -> bool:
    """Check a definition against its source; whether it is an aggregate.

    Args:
        name: of the function.
        body: its definition.
        source: what it is made of.
    """
    if name.lower() in functions() or name.lower() in refusals():
        raise CatalogError(
            "already-exists", f"{name} is a built-in function.", hint="Choose another name.", noun="function"
        )
    if name.startswith(HIDDEN_PREFIX):
        raise RequestError("validation", f"Names that start with {HIDDEN_PREFIX} belong to leatstream.")
    names = [a.name for a in body.arguments]
    if len(set(names)) < len(names):
        raise RequestError("validation", "Two arguments have the same name.", pointer="#/arguments")
    if len(names) > _MOST_ARGUMENTS:
        raise RequestError("validation", f"A function has at most {_MOST_ARGUMENTS} arguments.")
    if not 1 <= body.timeout_seconds <= _LONGEST_TIMEOUT:
        detail = f"A function's time-out is 1 to {_LONGEST_TIMEOUT} seconds."
        raise RequestError("validation", detail, pointer="#/timeout_seconds")
    if body.language not in (None, source.language):
        detail = f"Function source {quote(source.name)} holds {source.language}, not {body.language}."
        hint = f"Write LANGUAGE {source.language.upper()}."
        raise RequestError("validation", detail, pointer="#/source", hint=hint)
    if source.language == JAVA and body.timeout_seconds != DEFAULT_TIMEOUT_SECONDS:
        detail = "Functions in Java have no time-out: the driver's JVM, where they run, cannot stop them."
        raise RequestError("unsupported", detail, pointer="#/timeout_seconds", hint="Leave it out.")
    aggregate = _offered(source.language, source.content, source.file, body.handler, len(names))
    if aggregate and not names:
        raise RequestError("validation", "An aggregate takes at least one argument.", pointer="#/arguments")
    return aggregate


def _offered(language: str, content: str, file: str, handler: str, arguments: int) -> bool:
    """Check that a function can be made of what a source calls so; whether it is an aggregate."""
    if language == JAVA:
        check_class(content, file, handler, arguments)
        return False
    return check_handler(content, file, handler, arguments)


def functions_of(unit: UnitOfWork, source: str) -> list[UserFunction]:
    """The functions that stand on a source."""
    return [f for f in unit.unfiltered.functions.page(limit=100_000) if f.source == source]


def callers(unit: UnitOfWork, name: str) -> list[str]:
    """The queries that call a function, as messages name them."""
    return [
        f"query {quote(q.name)}"
        for q in unit.unfiltered.queries.page(limit=100_000)
        if any(f["function"] == name for f in q.job.get("functions") or ())
    ]


SOURCES = NounService(
    "function source",
    "function sources",
    "function-sources",
    lambda unit: unit.function_sources,
    lambda unit, source: [f"function {quote(f.name)}" for f in functions_of(unit, source.name)],
)
get_function_source, require_source = SOURCES.get, SOURCES.require
list_function_sources, delete_function_source = SOURCES.list, SOURCES.delete

FUNCTIONS = NounService(
    "function",
    "functions",
    "functions",
    lambda unit: unit.functions,
    lambda unit, function: callers(unit, function.name),
)
get_function, require_function = FUNCTIONS.get, FUNCTIONS.require
list_functions, delete_function = FUNCTIONS.list, FUNCTIONS.delete
