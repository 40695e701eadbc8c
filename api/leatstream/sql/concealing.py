"""Statements as they may be shown: answers end up in logs and in files of plans, and passwords must not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from leatstream.errors import RequestError
from leatstream.sql import statements as s
from leatstream.sql.generation.statements import generate
from leatstream.sql.parser import parse

TELLING = ("secret", "password", "passphrase", "token", "credential", "private")
CONCEALED = "***"
# Of these any property may be a misspelt secret, so what is shown is listed.
_KEEPERS = (s.CreateStore, s.UpdateStore, s.CreateRegistered, s.UpdateSecret, s.UpdateSchemaRegistry)
_SHOWN = ("type", "uris", "file", "description", "schema_registry.name")
_WORD = re.compile(r"\w+\Z")
_USER = re.compile(r"[^,\s/]*@")  # of an address; the @ of a file stands first
_MORE = ("jaas", "pwd", "passwd", "key_file")


def shown(text: str) -> str:
    """The canonical text without secrets; empty for a text that cannot be read. Never raises."""
    try:
        return "; ".join(generate(_concealed(statement)) for statement in parse(text))
    except RequestError:
        return ""


def _concealed(statement: s.Statement) -> s.Statement:
    changed: dict[str, Any] = {}
    for one in fields(statement):
        value = getattr(statement, one.name)
        if isinstance(value, s.Statement):
            changed[one.name] = _concealed(value)
        elif isinstance(value, tuple) and any(isinstance(item, s.Statement) for item in value):
            changed[one.name] = tuple(_concealed(item) for item in value)
        elif isinstance(value, Mapping):
            keeper = isinstance(statement, _KEEPERS)
            changed[one.name] = {k: _value(k, v, keeper=keeper) for k, v in value.items()}
    return replace(statement, **changed)


def _value(key: str, value: Any, *, keeper: bool) -> Any:
    if not isinstance(value, s.Value) or isinstance(value.value, bool):
        return value
    text, hidden = str(value.value), replace(value, value=CONCEALED, kind="string")
    if not keeper:
        return hidden if any(word in key for word in (*TELLING, *_MORE)) else value
    if key not in _SHOWN or (key == "type" and not _WORD.match(text)):
        return hidden
    plain = _USER.sub(f"{CONCEALED}@", text) if key == "uris" else text
    return value if plain == text else replace(value, value=plain)
