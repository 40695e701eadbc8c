"""What LIST FUNCTIONS and DESCRIBE FUNCTION tell."""

from __future__ import annotations

from typing import Any

from leatstream.errors import CatalogError
from leatstream.services.authorization import READ, authorize
from leatstream.services.environment import Environment, Principal
from leatstream.sql.function_table import Function, functions, known_names, table
from leatstream.sql.passes.columns import suggestion
from leatstream.sql.statements import Name

Table = tuple[list[dict[str, str]], list[list[Any]]]


def listed_functions(env: Environment, who: Principal) -> Table:
    """A row for each function, in the order of the reference page."""
    authorize(who, READ, "functions")
    names = ("name", "aliases", "arguments", "returns", "kind", "category", "comment")
    return [{"name": n, "type": "VARCHAR"} for n in names], [
        [f.name, ", ".join(f.aliases) or None, f.signature, f.returns, _kind(f), f.category, f.meaning]
        for f in table()
    ]


def described_function(env: Environment, who: Principal, name: Name) -> Table:
    """The properties of one function; CatalogError not-found."""
    authorize(who, READ, "function", ".".join(name.parts))
    f = find_builtin(name)
    pairs = [
        ("name", f.name),
        ("aliases", ", ".join(f.aliases) or None),
        ("arguments", f.signature),
        ("returns", f.returns),
        ("kind", _kind(f)),
        ("category", f.category),
        ("comment", f.meaning),
        *(("example", f"{example} = {result}") for example, result in f.examples),
    ]
    return [{"name": n, "type": "VARCHAR"} for n in ("property", "value")], [list(pair) for pair in pairs]


def find_builtin(name: Name) -> Function:
    """The function that is built in under this name.

    Raises:
        CatalogError: not-found, with the nearest name.
    """
    word = name.parts[-1]
    found = functions().get(word) if len(name.parts) == 1 else None
    if found is None:
        hint = suggestion(word, known_names())
        detail = f"there is no function {'.'.join(name.parts)}"
        raise CatalogError("not-found", detail, hint=hint, sqlstate="3D017", position=name.position)
    return found


def _kind(function: Function) -> str:
    return "aggregate" if function.aggregate else "scalar"
