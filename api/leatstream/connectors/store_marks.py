"""A StoreError's way through Spark: as marked text in the error of a Python worker, and back."""

from __future__ import annotations

import re

from leatstream.errors import StoreError

_MARK = re.compile(r"LEAT_STORE (source|sink|table) ([a-z-]+) (.*?) LEAT_STORE_END", re.S)


def marked(role: str, error: StoreError) -> str:
    """Text that ``find_mark`` reads back.

    Args:
        role: ``source``, ``sink``, or ``table`` for one that rows are looked up in.
        error: holds no secret, as every StoreError.
    """
    hint = error.faults[0].hint
    return f"LEAT_STORE {role} {error.code} {error.detail}{' ' + hint if hint else ''} LEAT_STORE_END"


def find_mark(text: str) -> tuple[str, str, str] | None:
    """Role, code and sentence of the first mark in a text; None when there is none."""
    found = _MARK.search(text)
    return (found[1], found[2], found[3]) if found else None
