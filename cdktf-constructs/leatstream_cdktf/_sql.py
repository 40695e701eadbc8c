"""SQL text with names in braces: pure functions, no library, no Node.js.

Only code is looked at: string literals, quoted names and comments pass unchanged, so braces in them survive.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping

PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_$]*\Z")
_PART = r'(?:"(?:[^"]|"")+"|[A-Za-z_][A-Za-z0-9_$]*)'
PLAIN_FQN = re.compile(rf"{_PART}(?:\.{_PART}){{0,2}}\Z")
#: Properties of a WITH clause that are names.
_NAMES = frozenset({"store", "timestamp"})

# The CDK library's tokens stand in text as ${TfToken[TOKEN.7]}; it puts references there when it synthesizes.
_REFERENCE = r"[$#&]\{TfToken\[[^\]]*\]\}"
_PIECE = re.compile(
    rf"""
    (?P<token>{_REFERENCE})
    | (?P<opaque> '(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z) | --[^\n]* | /\*.*?(?:\*/|\Z) )
    | (?P<template> [$%]\{{ )
    | \{{(?P<name>[A-Za-z_]\w*)\}}
    | (?P<code> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_TEMPLATE = re.compile(rf"(?P<token>{_REFERENCE})|(?P<open>[$%]\{{)")
_LEADING = re.compile(r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/|\()*(\w*)", re.DOTALL)


def has_token(text: str) -> bool:
    """Whether a part of the text is known only when Terraform runs."""
    return re.search(_REFERENCE, text) is not None


def quote_name(name: str) -> str:
    """Write an exact name so that SQL reads it back as itself."""
    return name if PLAIN_NAME.match(name) else quote_exact(name)


def quote_exact(name: str) -> str:
    """Write an exact name in double quotes, as one must that only Terraform knows: it may be of any kind."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Write a string literal."""
    return "'" + text.replace("'", "''") + "'"


def quote_property(key: str, text: str) -> str:
    """Write a text of a WITH clause: a name as the exact one, anything else as a string literal."""
    # SQL folds a name in single quotes to lower case; names that constructs are given are exact.
    return quote_exact(text) if key.lower() in _NAMES else quote_text(text)


def escape_templates(text: str) -> str:
    """Keep Terraform from reading ``${`` and ``%{`` in the text as its own; the library's tokens stay."""
    return _TEMPLATE.sub(lambda m: m["token"] or f"{m['open'][0] * 2}{{", text)


def place_holders(sql: str) -> list[str]:
    """The names in braces, in the order of the text, each once."""
    return list(dict.fromkeys(m["name"] for m in _PIECE.finditer(sql) if m["name"]))


def first_word(sql: str) -> str:
    """The statement's first keyword in capitals; comments and opening parentheses are passed over."""
    match = _LEADING.match(sql)
    return match[1].upper() if match else ""


def tidy(sql: str) -> str:
    """Remove the margin that a text in triple quotes has in a program; kept when a literal spans lines."""
    lines = sql.split("\n")
    if any("\n" in m["opaque"] for m in _PIECE.finditer(sql) if m["opaque"] and m["opaque"][0] in "'\""):
        return sql.strip()
    # The first line stands after the opening quotes, so it has no margin of its own.
    margin = min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)
    return "\n".join([lines[0], *(line[margin:] for line in lines[1:])]).strip()


def split_name(name: str) -> tuple[str, ...]:
    """The exact parts of a dotted name that ``PLAIN_FQN`` matches; unquoted ones fold to lower case."""
    parts = re.findall(_PART, name)
    return tuple(part[1:-1].replace('""', '"') if part.startswith('"') else part.lower() for part in parts)


def position(sql: str, offset: int) -> str:
    """Say where in the text an offset is."""
    line = sql.count("\n", 0, offset) + 1
    return f"line {line}, column {offset - (sql.rfind(chr(10), 0, offset) + 1) + 1}"


def fill(sql: str, names: Mapping[str, str]) -> str:
    """Put references into the text.

    Args:
        sql: text with ``{name}`` where a relation belongs.
        names: the text that each name stands for.

    Raises:
        ValueError: a name in the text is not among ``names``, one of ``names`` is not in the text, or the
            text holds a Terraform template. All faults are reported at once.
    """
    faults = list(_faults(sql, names))
    if faults:
        raise ValueError("; ".join(faults))

    def piece(match: re.Match[str]) -> str:
        if match["name"]:
            return names[match["name"]]
        return escape_templates(match["opaque"]) if match["opaque"] else match[0]

    return _PIECE.sub(piece, sql)


def _faults(sql: str, names: Mapping[str, object]) -> Iterator[str]:
    declared = ", ".join(names) or "none"
    unused = [name for name in names if name not in place_holders(sql)]
    meant: set[str] = set()
    for match in _PIECE.finditer(sql):
        where = position(sql, match.start())
        if match["template"]:
            yield (
                f"{match[0]!r} at {where} is Terraform's template syntax, which SQL text does not take: "
                "write {name} for a relation given in sources, or format a token, such as a variable's "
                "string_value, into the text"
            )
        elif (name := match["name"]) and name not in names:
            near = difflib.get_close_matches(name, [*names], n=1)
            meant.update(near)
            hint = f"did you mean {{{near[0]}}}?" if near else f"add sources={{{name!r}: <the relation>}}"
            yield f"{{{name}}} at {where} is not declared in sources (declared: {declared}); {hint}"
    for name in (name for name in unused if name not in meant):
        yield (
            f"the source {name!r} is not used in the SQL: write {{{name}}} where the relation belongs, "
            "outside quotes and comments, or use depends_on when only the order matters"
        )
