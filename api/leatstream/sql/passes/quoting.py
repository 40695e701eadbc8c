"""The user's names and strings as Spark SQL: the only way for them to get there."""

from __future__ import annotations

import re

from leatstream.errors import RequestError

# A $ could start a ${variable}, which Spark fills in before it parses.
_ESCAPED = re.compile(r"[\x00-\x1f\x7f'\\$\"`\u2028\u2029]")


def name(text: str) -> str:
    """A quoted name. In a name nothing can be escaped, so ${ cannot be kept from Spark."""
    if "${" in text:
        raise RequestError("unsupported", "Names that hold ${ are not supported.")
    return "`" + text.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A string literal that Spark reads back as ``text``."""
    return "'" + _ESCAPED.sub(lambda m: f"\\u{ord(m.group()):04x}", text) + "'"
