"""What a statement says, for comparing two of them: all of its parsed form but its text and where things stand."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from sqlglot import exp

from leatstream.errors import Position
from leatstream.model.types import parse_type
from leatstream.sql.lexer import scan
from leatstream.sql.statements import Statement

# A stretch of the text, or a clause's place in it, and nothing more.
_PLACES = ("source", "span", "name_span", "alias_span", "cte_span", "position", "properties_position")


def form(thing: Any) -> Any:
    """A statement, node, list or value without text and places; that a place is noted at all stays visible."""
    if isinstance(thing, Position):
        return "somewhere"
    if isinstance(thing, exp.Expression):
        return type(thing).__name__, _said(dict(thing.args)), _said(_noted(thing.meta))
    if is_dataclass(thing) and not isinstance(thing, type):
        left_out = ("position", "key_position", *(("text",) if isinstance(thing, Statement) else ()))
        named = {f.name: getattr(thing, f.name) for f in fields(thing) if f.name not in left_out}
        for key in {"type", "returns"} & named.keys():
            named[key] = _type(named[key])
        if named.get("signature"):
            named["signature"] = [_type(one) for one in named["signature"]]
        return type(thing).__name__, {key: form(value) for key, value in named.items()}
    if isinstance(thing, dict):
        return {key: form(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [form(item) for item in thing]
    return type(thing).__name__, thing


def _said(things: dict[str, Any]) -> dict[str, Any]:
    """What is not there, empty or no is the same."""
    return {key: form(value) for key, value in things.items() if value not in (None, False, [], (), {})}


def _noted(meta: dict[str, Any]) -> dict[str, Any]:
    noted = {key: value for key, value in meta.items() if key not in _PLACES}
    if "parts" in noted:
        noted["parts"] = [name for name, _ in noted["parts"]]
    return noted


def _type(text: str) -> Any:
    try:
        return str(parse_type(text))
    except ValueError:
        return [(token.token_type, token.text.lower()) for token in scan(text)]
