"""Text to tokens, and offsets to positions. One scanner serves the dialect, the statements and ``canonical``.

sqlglot's own scanner guesses (backslash escapes, numbers as names, open comments); this one follows
standard SQL: ``''`` doubled in strings, ``""`` in names, a backslash is a backslash.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any

from sqlglot.tokenizer_core import Token, TokenType

from leatstream.errors import Position, RequestError

MAX_TOKENS = 20_000
_TOKEN = re.compile(
    r"""
    (?P<blank>\s+|--[^\n]*|/\*[\s\S]*?\*/)
  | (?P<string>'[^']*+(?:''[^']*+)*+')
  | (?P<quoted>"[^"]*+(?:""[^"]*+)*+"|`[^`]*+(?:``[^`]*+)*+`)
  | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?P<tail>[^\W\d][\w$]*)?
  | (?P<word>[^\W\d][\w$]*)
  | (?P<mark>->|<=>|<>|!=|<=|>=|==|\|\||::|=>|/(?!\*)|[-+*%=<>(),.;\[\]&|^~:{}?$])
    """,
    re.VERBOSE,
)
MARKS = {
    "(": TokenType.L_PAREN,
    ")": TokenType.R_PAREN,
    "[": TokenType.L_BRACKET,
    "]": TokenType.R_BRACKET,
    ",": TokenType.COMMA,
    ".": TokenType.DOT,
    ";": TokenType.SEMICOLON,
    "->": TokenType.ARROW,
    "::": TokenType.DCOLON,
    "=": TokenType.EQ,
    "==": TokenType.EQ,
    "<=>": TokenType.NULLSAFE_EQ,
    "<>": TokenType.NEQ,
    "!=": TokenType.NEQ,
    "<": TokenType.LT,
    "<=": TokenType.LTE,
    ">": TokenType.GT,
    ">=": TokenType.GTE,
    "+": TokenType.PLUS,
    "-": TokenType.DASH,
    "||": TokenType.DPIPE,
    "*": TokenType.STAR,
    "/": TokenType.SLASH,
    "%": TokenType.MOD,
    "&": TokenType.AMP,
    "|": TokenType.PIPE,
    "^": TokenType.CARET,
    "~": TokenType.TILDE,
    ":": TokenType.COLON,
    "=>": TokenType.FARROW,
    "{": TokenType.L_BRACE,
    "}": TokenType.R_BRACE,
    "?": TokenType.PLACEHOLDER,
    "$": TokenType.DOLLAR,
}
_OPEN = {
    "'": ("string", "End it with '; a quote inside is written ''."),
    '"': ("quoted name", 'End it with "; a quote inside is written "".'),
    "`": ("quoted name", "End it with `."),
}
# What word processors and chats make of straight quotes.
_TYPOGRAPHIC = "‘’‚‛“”„‟«»‹›´"
_STRAIGHT = "Write straight quotes: 'text', \"name\"."


class Source:
    """A text with its line starts, for turning offsets into positions."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(m.end() for m in re.finditer(r"\r\n|\n|\r", text))]

    def __deepcopy__(self, _: dict[int, Any]) -> Source:
        return self

    def position(self, start: int, stop: int) -> Position:
        """The stretch from ``start`` up to ``stop`` (exclusive), in characters."""
        line = bisect_right(self._starts, start)
        return Position(line, start - self._starts[line - 1] + 1, start, max(stop - start, 0))


def scan(text: str) -> list[Token]:
    """Split text into sqlglot tokens: VAR, IDENTIFIER, STRING, NUMBER and marks; comments are dropped.

    A token's ``start`` and ``end`` (inclusive) are offsets of the raw text, its ``text`` is unquoted.

    Raises:
        RequestError: sql-syntax for what is no token, too-complex above ``MAX_TOKENS`` tokens.
    """
    source = Source(text)
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unexpected(source, at)
        if match["tail"]:
            raise RequestError(
                "sql-syntax",
                f"A number cannot be followed by {match['tail']!r}.",
                position=source.position(at, match.end()),
                hint="Put a space or an operator between them, or quote the name.",
            )
        if match.lastgroup != "blank":
            tokens.append(_token(match, source))
        if len(tokens) > MAX_TOKENS:
            raise RequestError(
                "too-complex",
                f"The text has more than {MAX_TOKENS} words and signs.",
                position=source.position(at, match.end()),
            )
        at = match.end()
    return tokens


def _token(match: re.Match[str], source: Source) -> Token:
    raw = match.group()
    kind = match.lastgroup
    place = source.position(match.start(), match.end())
    if kind == "string":
        token_type, text = TokenType.STRING, raw[1:-1].replace("''", "'")
    elif kind == "quoted":
        token_type, text = TokenType.IDENTIFIER, raw[1:-1].replace(raw[0] * 2, raw[0])
    elif kind == "mark":
        token_type, text = MARKS[raw], raw
    else:
        token_type, text = (TokenType.NUMBER if kind == "number" else TokenType.VAR), raw
    return Token(token_type, text, place.line, place.column, match.start(), match.end() - 1)


def _unexpected(source: Source, at: int) -> RequestError:
    char = source.text[at]
    if char in _OPEN:
        what, hint = _OPEN[char]
        return RequestError(
            "sql-syntax", f"This {what} has no end.", position=source.position(at, at + 1), hint=hint
        )
    if source.text.startswith("/*", at):
        return RequestError(
            "sql-syntax",
            "This comment has no end.",
            position=source.position(at, at + 2),
            hint="End it with */.",
        )
    advice = _STRAIGHT if char in _TYPOGRAPHIC else None
    return RequestError(
        "sql-syntax", f"{char!r} has no meaning here.", position=source.position(at, at + 1), hint=advice
    )
