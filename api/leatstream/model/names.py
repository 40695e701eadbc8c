"""Names: how they are folded, quoted and joined.

Unquoted identifiers fold to lower case; double quotes keep a name as written (any UTF-8, ``""`` for a quote).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches

PLAIN = re.compile(r"[a-z_][a-z0-9_$]*\Z")
MAX_LENGTH = 255
_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^\s".]+))\s*(\.|\Z)')


def quote(name: str) -> str:
    """Write a name so that it reads back as itself: plain where it may stand so, else in double quotes."""
    if PLAIN.match(name):
        return name
    return '"' + name.replace('"', '""') + '"'


def nearest(name: str, names: Collection[str]) -> str | None:
    """The one of the names that was probably meant, or None."""
    return next(iter(get_close_matches(name, names, n=1, cutoff=0.6)), None)


def did_you_mean(name: str, names: Collection[str]) -> str | None:
    """A hint with the nearest of the names, or None."""
    near = nearest(name, names)
    return f"Did you mean {quote(near)}?" if near is not None else None


def split(text: str) -> tuple[str, ...]:
    """Read a dotted name into its parts, folding the unquoted ones.

    Raises:
        ValueError: the text is not a dotted name.
    """
    parts: list[str] = []
    at = 0
    while True:
        match = _PART.match(text, at)
        if match is None:
            raise ValueError(f'{text!r} is not a name; write parts as name or "Name", joined by dots')
        quoted, plain, dot = match.groups()
        part = quoted.replace('""', '"') if quoted is not None else plain.lower()
        if len(part) > MAX_LENGTH or any(ord(c) < 32 for c in part):
            raise ValueError(f"a name has at most {MAX_LENGTH} characters and no control characters")
        parts.append(part)
        at = match.end()
        if dot != ".":
            return tuple(parts)


def parse_name(text: str) -> str:
    """Read a name of one part: ``Demo`` gives demo, ``"Demo"`` gives Demo.

    Raises:
        ValueError: the text is no such name.
    """
    parts = split(text)
    if len(parts) != 1:
        raise ValueError(f"{text!r} has {len(parts)} parts; one is expected")
    return parts[0]


@dataclass(frozen=True, slots=True, order=True)
class Fqn:
    """A relation's full name, each part exact (already folded)."""

    database: str
    schema: str
    name: str

    def __str__(self) -> str:
        return f"{quote(self.database)}.{quote(self.schema)}.{quote(self.name)}"

    @classmethod
    def parse(cls, text: str) -> Fqn:
        """Read ``database.schema.name``.

        Raises:
            ValueError: there are not three parts.
        """
        parts = split(text)
        if len(parts) != 3:
            raise ValueError(f"{text!r} has {len(parts)} parts; database.schema.name is expected")
        return cls(*parts)
