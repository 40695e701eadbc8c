"""Entity tags: the generation of an object in double quotes."""

from __future__ import annotations

import re

from leatstream.errors import CatalogError, RequestError
from leatstream.services.environment import Precondition

_TAG = re.compile(r'"(\d{1,9})"\Z')


def write(generation: int) -> str:
    """The ETag of a generation."""
    return f'"{generation}"'


def precondition(if_match: str | None, if_none_match: str | None) -> Precondition:
    """What the conditional headers ask for.

    Raises:
        CatalogError: stale, if If-Match cannot be the tag of any object.
        RequestError: validation, for a form that is not offered.
    """
    if if_none_match is not None and if_none_match.strip() != "*":
        raise RequestError(
            "validation",
            "If-None-Match takes * only: the object must not exist yet.",
            hint='To write over a known version, send If-Match: "<generation>".',
        )
    must_be_new = if_none_match is not None
    if if_match is None or if_match.strip() == "*":
        return Precondition(None, must_be_new, must_exist=if_match is not None)
    match = _TAG.match(if_match.strip())
    if match is None:
        raise CatalogError(
            "stale",
            "If-Match holds no ETag of this service.",
            hint='Send the ETag of your last read as it was, such as If-Match: "3".',
        )
    return Precondition(int(match[1]), must_be_new)
