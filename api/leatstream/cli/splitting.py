"""Finds the end of a statement while it is being typed. The service parses; this only sees quotes."""

from __future__ import annotations

import re

# What may hold a semicolon that ends nothing. An open string or comment runs to the end of the text.
_TOKEN = re.compile(
    r"""'(?:[^']|'')*('?)|"(?:[^"]|"")*("?)|`[^`]*(`?)|--[^\n]*|/\*.*?(\*/|\Z)|;|\s+|.""", re.DOTALL
)


def _open_application(code: str) -> bool:
    """Whether BEGIN APPLICATION has no END APPLICATION yet."""
    begun = len(re.findall(r"(?:^|;)\s*begin\s+application\b", code))
    return begun > len(re.findall(r";\s*end\s+application\b", code))


def is_complete(text: str) -> bool:
    """Whether the text ends with a semicolon outside strings, quoted names and comments."""
    last = ""
    code: list[str] = []
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token.isspace() or token.startswith(("--", "/*")):
            if token.startswith("/*") and not token.endswith("*/"):
                return False
            code.append(" ")
            continue
        if token[0] in "'\"`" and not (len(token) > 1 and token.endswith(token[0])):
            return False
        last = token
        code.append('"' if token[0] in "'\"`" else token)
    return last == ";" and not _open_application("".join(code).lower())


def is_blank(text: str) -> bool:
    """Whether there is nothing to run: white space, comments and semicolons only."""
    return all(
        match.group().startswith((";", "--", "/*")) or match.group().isspace()
        for match in _TOKEN.finditer(text)
    )
