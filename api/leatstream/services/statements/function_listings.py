"""What LIST and DESCRIBE tell of functions, built in and users', and of function sources."""

from __future__ import annotations

from typing import Any

from leatstream.errors import CatalogError
from leatstream.model.functions import PYTHON, UserFunction
from leatstream.services.environment import Environment, Principal
from leatstream.services.environment.authorization import READ, authorize
from leatstream.services.functions import catalog as service
from leatstream.sql.function_table import Function, functions, known_names, table
from leatstream.sql.passes.columns import suggestion
from leatstream.sql.statements import Name

Table = tuple[list[dict[str, str]], list[list[Any]]]
_MINE = "User"


def listed_functions(env: Environment, who: Principal) -> Table:
    """A row for each function: the built-in ones in the order of the reference page, then the users'."""
    authorize(who, READ, "functions")
    names = ("name", "aliases", "arguments", "returns", "kind", "category", "comment")
    rows = [
        [f.name, ", ".join(f.aliases) or None, f.signature, f.returns, _kind(f), f.category, f.meaning]
        for f in table()
    ]
    with env.open_unit(write=False) as unit:
        mine = unit.functions.page(limit=10_000)
    rows += [[f.name, None, f.signature, str(f.returns), _kind(f), _MINE, f.comment] for f in mine]
    return _columns(*names), rows


def described_function(env: Environment, who: Principal, name: Name) -> Table:
    """The properties of one function; CatalogError not-found.

    Args:
        env: the environment.
        who: who asks.
        name: as it is written.
    """
    authorize(who, READ, "function", ".".join(name.parts))
    with env.open_unit(write=False) as unit:
        mine = unit.functions.find(name.parts[-1]) if len(name.parts) == 1 else None
    if mine is not None:
        return _pairs(
            ("name", mine.name),
            ("arguments", mine.signature),
            ("returns", str(mine.returns)),
            ("kind", _kind(mine)),
            ("category", _MINE),
            ("comment", mine.comment),
            ("source.name", mine.source),
            ("language", mine.language),
            ("handler", mine.handler),
            ("timeout.seconds", mine.timeout_seconds if mine.language == PYTHON else None),
            ("owner", mine.meta.owner),
        )
    f = find_builtin(name)
    return _pairs(
        ("name", f.name),
        ("aliases", ", ".join(f.aliases) or None),
        ("arguments", f.signature),
        ("returns", f.returns),
        ("kind", _kind(f)),
        ("category", f.category),
        ("comment", f.meaning),
        *(("example", f"{example} = {result}") for example, result in f.examples),
    )


def listed_sources(env: Environment, who: Principal) -> Table:
    """A row for each function source."""
    found = service.list_function_sources(env, who, 1000).items
    rows = [[s.name, s.file, s.language, len(s.content), s.digest, s.comment, s.meta.owner] for s in found]
    return _columns("name", "file", "language", "size", "digest", "comment", "owner"), rows


def described_source(env: Environment, who: Principal, name: str) -> Table:
    """The properties of one function source, and the functions made of it; CatalogError not-found.

    Args:
        env: the environment.
        who: who asks.
        name: of the source.
    """
    s = service.get_function_source(env, who, name)
    with env.open_unit(write=False) as unit:
        made = [f.name for f in service.functions_of(unit, name)]
    return _pairs(
        ("name", s.name),
        ("file", s.file),
        ("language", s.language),
        ("size", len(s.content)),
        ("digest", s.digest),
        ("functions", ", ".join(made) or None),
        ("comment", s.comment),
        ("owner", s.meta.owner),
    )


def find_builtin(name: Name) -> Function:
    """The function that is built in under this name.

    Raises:
        CatalogError: not-found, with the nearest name.
    """
    word = name.parts[-1]
    found = functions().get(word) if len(name.parts) == 1 else None
    if found is None:
        hint = suggestion(word, known_names())
        detail = f"There is no function {'.'.join(name.parts)}."
        raise CatalogError("not-found", detail, hint=hint, noun="function", position=name.position)
    return found


def _kind(function: Function | UserFunction) -> str:
    return "aggregate" if function.aggregate else "scalar"


def _columns(*names: str) -> list[dict[str, str]]:
    return [{"name": n, "type": "VARCHAR"} for n in names]


def _pairs(*pairs: tuple[str, Any]) -> Table:
    return _columns("property", "value"), [[k, v if v is None else str(v)] for k, v in pairs]
