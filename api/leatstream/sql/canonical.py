"""SQL compared by meaning: white space, comments, trailing ``;``, case of unquoted words do not count."""

from __future__ import annotations

import hashlib

from sqlglot.tokenizer_core import Token, TokenType

from leatstream.errors import RequestError
from leatstream.sql.lexer import scan


def canonical(text: str) -> str:
    """One line per text, the same for texts of one meaning. Never raises: what cannot be read is stripped.

    Strings and quoted names keep every character.
    """
    try:
        tokens = scan(text)
    except RequestError:
        return text.strip()
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    return " ".join(map(_write, tokens))


def statement_hash(text: str) -> str:
    """SHA-256 (hex) of the canonical text."""
    return hashlib.sha256(canonical(text).encode("utf-8", "surrogatepass")).hexdigest()


def _write(token: Token) -> str:
    if token.token_type == TokenType.STRING:
        return "'" + token.text.replace("'", "''") + "'"
    if token.token_type == TokenType.IDENTIFIER:
        # Always quoted: "select" the name is not SELECT the word.
        return '"' + token.text.replace('"', '""') + '"'
    return token.text.lower()
