"""Words that open or join parts of a SELECT, and what to say of one that stands in another's place."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

# No alias without AS, no column without quotes.
_RESERVED = """
all and as between case cross distinct else end except exists from full group having in inner intersect is
join left like limit natural not null on or order outer qualify rlike ilike right select then union using when
where with within
"""
RESERVED = frozenset(_RESERVED.split())
# Only no alias without AS: elsewhere they are plain names.
NO_ALIAS = RESERVED | {
    "anti",
    "fetch",
    "for",
    "lateral",
    "match_recognize",
    "minus",
    "offset",
    "semi",
    "window",
}

# A clause continues with a name or a value after these,
_BEFORE_VALUES = """
and else from having join limit on or qualify select then using when where within
"""
_VALUES = (TokenType.IDENTIFIER, TokenType.L_PAREN, TokenType.NUMBER, TokenType.STRING)
_OPENING_VALUES = frozenset(("case", "distinct", "exists", "not"))
# and with one of a few words behind those.
_JOINS = ("anti", "full", "inner", "join", "left", "outer", "right", "semi")
_BEFORE_WORDS = {
    **dict.fromkeys(("cross", "full", "inner", "left", "natural", "right"), _JOINS),
    **dict.fromkeys(("except", "intersect", "union"), ("all", "distinct", "select")),
    **dict.fromkeys(("group", "order"), ("by",)),
}


def advice(word: Token, before: Token, after: Token) -> str | None:
    """What to do about a reserved word where an expression or a relation is wanted.

    Args:
        word: the word.
        before: the token before it.
        after: the token after it; the end's is empty.
    """
    if not _opens_clause(word, after):
        return quoting(word)
    if before.token_type == TokenType.COMMA:
        return f"Remove the comma before {word.text}."
    return None


def quoting(word: Token) -> str:
    """How a reserved word becomes a name."""
    return f'To use it as a name, write it in double quotes: "{word.text.lower()}".'


def _opens_clause(word: Token, after: Token) -> bool:
    """Whether the word's clause continues after it; else a name is meant, as in ``SELECT from, to``."""
    opening = word.text.lower()
    following = after.text.lower() if after and after.token_type == TokenType.VAR else ""
    if opening in _BEFORE_WORDS:
        return following in _BEFORE_WORDS[opening]
    if opening not in _BEFORE_VALUES.split() or not after:
        return False
    if following:
        return following not in RESERVED or following in _OPENING_VALUES
    return after.token_type in _VALUES
