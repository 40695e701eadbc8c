"""Names, strings, types, lengths of time and WITH lists, as the grammar reads them back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import copysign

from sqlglot.tokenizer_core import Token, TokenType

from leatstream.model.names import PLAIN
from leatstream.model.types import parse_type
from leatstream.sql.lexer import scan
from leatstream.sql.reserved_words import NO_ALIAS, RESERVED
from leatstream.sql.statements import Name, Value
from leatstream.sql.tokens_reader import MAX_NUMBER
from leatstream.sql.windows import UNITS_MS

# Words that mean something where a name may stand too: a name that is one of them stands in quotes.
_MEANT = """
array both case current_date current_time current_timestamp entity false final if key leading localtime
localtimestamp map null pattern permute primary recursive running topic trailing true unnest values
"""
_QUOTED = NO_ALIAS | frozenset(_MEANT.split())
_NOT_CALLED = RESERVED - {"left", "right"} | {"cast", "cube", "false", "null", "rollup", "true", "try_cast"}


def name(text: str) -> str:
    """One part of a name, in quotes if it would not read back as itself without."""
    return text if PLAIN.match(text) and text not in _QUOTED else quoted(text)


def called(text: str) -> str:
    """A function's name before its parenthesis."""
    return text if PLAIN.match(text) and text not in _NOT_CALLED else quoted(text)


def quoted(text: str) -> str:
    """A name in quotes."""
    return '"' + text.replace('"', '""') + '"'


def dotted(given: Name) -> str:
    """A name with all its parts."""
    return ".".join(map(name, given.parts))


def string(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("'", "''") + "'"


def duration(milliseconds: int) -> str:
    """A length of time in the largest unit it is a whole number of."""
    units = [(size, word) for word, size in UNITS_MS.items() if milliseconds % size == 0]
    size, word = max(units)
    number = milliseconds // size
    return f"{number} {word.upper()}{'' if number == 1 else 'S'}" if number else "0 SECONDS"


def type_text(text: str) -> str:
    """A column type in its one spelling; of what is no type, its words and signs."""
    try:
        return str(parse_type(text))
    except ValueError:
        return spelled(scan(text))


def spelled(tokens: Iterable[Token]) -> str:
    """Words and signs in one spelling: unquoted words in lower case, quoted ones as they are."""
    return " ".join(map(_token, tokens))


def properties(given: Mapping[str, Value]) -> str:
    """``('key' = value, …)`` in the order of the keys, as theirs means nothing."""
    return "(" + ", ".join(f"{string(key)} = {value(given[key])}" for key in sorted(given)) + ")"


def value(given: Value) -> str:
    """What stands right of = in a WITH list."""
    if isinstance(given.value, bool):
        return str(given.value).upper()
    if isinstance(given.value, float):
        return _number(given.value)
    if given.kind == "string":
        return string(str(given.value))
    if given.kind == "identifier":
        return quoted(str(given.value))
    # A bare word as it was written: some properties take it for a text.
    return str(given.value)


def _number(number: float) -> str:
    """The number in at most ``MAX_NUMBER`` characters, its sign not counted."""
    sign, text = "-" if copysign(1, number) < 0 else "", repr(abs(number))
    if len(text) <= MAX_NUMBER:
        return sign + text
    figures, _, power = text.partition("e")
    whole, _, fraction = figures.partition(".")
    return f"{sign}{(whole + fraction).lstrip('0')}e{int(power or 0) - len(fraction)}"


def _token(token: Token) -> str:
    if token.token_type == TokenType.STRING:
        return string(token.text)
    if token.token_type == TokenType.IDENTIFIER:
        # Always quoted: "select" the name is not SELECT the word.
        return quoted(token.text)
    return token.text.lower()
