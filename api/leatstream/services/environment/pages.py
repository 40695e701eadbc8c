"""Keyset pages over a repository."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import TypeVar

from leatstream.errors import RequestError
from leatstream.ports import Repository
from leatstream.services.environment import Page

T = TypeVar("T")


def make_page(
    fetch: Callable[[str, int], Sequence[T]],
    key: Callable[[T], str],
    scope: str,
    size: int,
    token: str | None,
) -> Page[T]:
    """One page.

    Args:
        fetch: (after, limit) to items ordered by key.
        key: an item's key.
        scope: what the token is bound to (noun and filter), so that it cannot be used for another list.
        size: items per page, at least 1.
        token: of the previous page, or None for the first.

    Raises:
        RequestError: ``invalid-page-token``.
    """
    found = list(fetch(_read(token, scope) if token else "", size + 1))
    more = len(found) > size
    items = found[:size]
    return Page(items, _write(key(items[-1]), scope) if more else None)


def repository_page(
    repository: Repository[T],
    key: Callable[[T], str],
    scope: str,
    size: int,
    token: str | None,
    prefix: str = "",
) -> Page[T]:
    """One page of a repository's objects whose keys start with ``prefix``; see ``make_page``.

    Args:
        repository: of the objects.
        key: of an object, by which they are sorted.
        scope: what is listed; a token is for one scope.
        size: the most items of the page.
        token: of the page wanted; None = the first.
        prefix: of the keys.
    """

    def fetch(after: str, limit: int) -> Sequence[T]:
        return repository.page(prefix=prefix, after=after, limit=limit)

    return make_page(fetch, key, f"{scope}/{prefix}", size, token)


def _digest(scope: str) -> str:
    return hashlib.sha256(scope.encode()).hexdigest()[:12]


def _write(after: str, scope: str) -> str:
    raw = json.dumps([_digest(scope), after]).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _read(token: str, scope: str) -> str:
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        digest, after = json.loads(raw)
    except (binascii.Error, ValueError, TypeError):
        digest, after = "", ""
    if digest != _digest(scope) or not isinstance(after, str):
        raise RequestError(
            "invalid-page-token",
            "The page token is not one that this list gave.",
            hint="Start again without page_token.",
        )
    return after
