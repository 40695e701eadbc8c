"""Finds the end of a statement while it is being typed. The service parses; this only sees quotes."""

from __future__ import annotations

import re

# What may hold a semicolon that ends nothing. An open string or comment runs to the end of the text.
_TOKEN = re.compile(
    r"""'(?:[^']|'')*('?)|"(?:[^"]|"")*("?)|`[^`]*(`?)|--[^\n]*|/\*.*?(\*/|\Z)|;|\s+|.""", re.DOTALL
)


def is_complete(text: str) -> bool:
    """Whether the text ends with a semicolon outside strings, quoted names and comments."""
    last = ""
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token.isspace() or token.startswith(("--", "/*")):
            if token.startswith("/*") and not token.endswith("*/"):
                return False
            continue
        if token[0] in "'\"`" and not (len(token) > 1 and token.endswith(token[0])):
            return False
        last = token
    return last == ";"


def is_blank(text: str) -> bool:
    """Whether there is nothing to run: white space, comments and semicolons only."""
    return all(
        match.group().startswith((";", "--", "/*")) or match.group().isspace()
        for match in _TOKEN.finditer(text)
    )
