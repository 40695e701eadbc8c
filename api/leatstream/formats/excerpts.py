"""What an error may show of a record: a short piece of a value, and never one that may be a secret.

A value is described by its kind and size instead where its column's name hints at a secret or at a person, or
where the value itself looks like a key or token. A setting (``LEATSTREAM_ERROR_EXCERPTS``) hides all of them.
"""

from __future__ import annotations

import json
import re
from typing import Any

_LONGEST = 40
_PRIVATE = re.compile(
    r"pass(?:word|wd|phrase|code)?$|pass(?:word|wd|phrase)|pwd|secret|token|credential|auth|api_?key|private"
    r"|signature|cookie|session|^pin$|_pin$|ssn|social_?sec|iban|card|cvv|cvc|account_?n|e?mail|phone|mobile"
    r"|address|birth|passport|licen[cs]e|salary|tax_?id|^ip$|_ip$",
    re.I,
)
# Keys and tokens: one long word with letters and digits, or an address that holds a login.
_TOKEN = re.compile(r"(?=\S*[0-9])(?=\S*[A-Za-z])[A-Za-z0-9+/_=.~-]{20,}\Z|\w+://[^\s/]*@")
_WORDS = {True: "true", False: "false", None: "null"}


class Number(str):
    """A JSON number as it was written."""

    __slots__ = ()


def is_private(column: str) -> bool:
    """Whether values of a column of this name are not shown; ``column`` may be a path, such as ``a.b[0]``."""
    return any(_PRIVATE.search(part) for part in re.split(r"[.\[\]]+", column))


def described(value: Any, column: str, *, shown: bool) -> str:
    """A JSON value in words, such as ``the string "yesterday"``.

    Args:
        value: as ``json`` reads it; numbers may be ``Number``.
        column: the column or path it stands in.
        shown: whether the server lets errors show values at all.
    """
    kind = _kind(value)
    if isinstance(value, list | dict) or value is None:
        return kind
    text = str(value)
    if not shown or is_private(column) or (not isinstance(value, bool) and _looks_secret(value)):
        return (
            f"{kind} of {len(text)} characters (not shown)"
            if isinstance(value, str)
            else f"{kind} (not shown)"
        )
    if isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, Number) or not isinstance(value, str):
        return f"{kind} {_cut(text)}"
    return f"{kind} {json.dumps(_cut(text), ensure_ascii=False)}"


def _looks_secret(value: Any) -> bool:
    return bool(_TOKEN.search(str(value))) and not isinstance(value, Number)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a BOOLEAN"
    if isinstance(value, Number | int | float):
        return "the number"
    if isinstance(value, str):
        return "the string"
    return "an object" if isinstance(value, dict) else "an array"


def _cut(text: str) -> str:
    text = "".join(c if c.isprintable() else "\ufffd" for c in text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
