"""SQL compared by meaning.

White space, comments, a final ``;``, the case of unquoted words, the order of WITH lists, old and short words
(TOPIC, SHOW) and quotes that a name does not need do not count.
"""

from __future__ import annotations

import hashlib

from sqlglot.tokenizer_core import TokenType

from leatstream.errors import RequestError
from leatstream.sql.generation.statements import generate
from leatstream.sql.generation.words import spelled
from leatstream.sql.lexer import scan
from leatstream.sql.parser import parse


def canonical(text: str) -> str:
    """One line per text, the same for texts of one meaning: its statements as they are generated.

    Never raises: what is no statement is spelt word by word, and what has no words is stripped. Strings keep
    every character, and bare words of a WITH list their case, which some properties heed.
    """
    try:
        return "; ".join(map(generate, parse(text)))
    except RequestError:
        return _by_words(text)


def statement_hash(text: str) -> str:
    """SHA-256 (hex) of the canonical text."""
    return hashlib.sha256(canonical(text).encode("utf-8", "surrogatepass")).hexdigest()


def same_meaning(one: str, other: str) -> bool:
    """Whether two texts have one canonical text.

    Kept hashes are shown, not compared: what is canonical may change with a release.
    """
    return one == other or canonical(one) == canonical(other)


def _by_words(text: str) -> str:
    try:
        tokens = scan(text)
    except RequestError:
        return text.strip()
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    return spelled(tokens)
