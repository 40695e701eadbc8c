"""Keyset pages over a repository."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from leatstream.errors import RequestError
from leatstream.ports import Repository
from leatstream.services.environment import Environment, Page, Principal

T = TypeVar("T")
_PART = 500
_LARGEST = 1000


@dataclass(frozen=True, slots=True)
class Only:
    """What a list is narrowed to.

    Attributes:
        q: part of the name, in any case; None = any name.
        wanted: filter, such as ``state``, to the value that objects must have; None = any.
    """

    q: str | None = None
    wanted: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def scope(self) -> str:
        """One text for what a list is narrowed to; empty where it is not."""
        given = {name: value for name, value in self.wanted.items() if value is not None}
        return json.dumps([self.q, given], sort_keys=True) if given or self.q is not None else ""

    def fits(self, item: Any, has: Mapping[str, Any]) -> bool:
        """Whether an object is wanted.

        Args:
            item: the object; it has a name, or a full name.
            has: filter to what the object has.
        """
        name = item.fqn.name if hasattr(item, "fqn") else item.name
        return (self.q is None or self.q.casefold() in name.casefold()) and all(
            value is None or has.get(filter_name) == value for filter_name, value in self.wanted.items()
        )


ANY = Only()


def make_page(
    fetch: Callable[[str, int], Sequence[T]],
    key: Callable[[T], str],
    scope: str,
    size: int,
    token: str | None,
    only: Only = ANY,
    has: Callable[[T], Mapping[str, Any]] = lambda item: {},
) -> Page[T]:
    """One page; it is full, however few objects are wanted, unless it is the last.

    Args:
        fetch: (after, limit) to items ordered by key.
        key: an item's key.
        scope: what the token is bound to (noun and filter), so that it cannot be used for another list.
        size: items per page, at least 1.
        token: of the previous page, or None for the first.
        only: what is wanted of them.
        has: an object's values for the filters.

    Raises:
        RequestError: ``invalid-page-token``.
    """
    if only.scope:
        scope = f"{scope}?{only.scope}"
        fetch = _narrowed(fetch, key, lambda item: only.fits(item, has(item)))
    found = list(fetch(_read(token, scope) if token else "", size + 1))
    more = len(found) > size
    items = found[:size]
    return Page(items, _write(key(items[-1]), scope) if more else None)


def every(env: Environment, principal: Principal, fetch: Callable[..., Page[T]], *more: Any) -> list[T]:
    """The items of every page of a list.

    Args:
        env: the environment.
        principal: who asks.
        fetch: the service that gives a page: of the environment, the principal and ``more``.
        *more: what it takes besides, such as the database of schemas.
    """
    items: list[T] = []
    token: str | None = None
    while True:
        page = fetch(env, principal, *more, page_size=_LARGEST, page_token=token)
        items += page.items
        token = page.next_page_token
        if token is None:
            return items


def _narrowed(
    fetch: Callable[[str, int], Sequence[T]], key: Callable[[T], str], keeps: Callable[[T], bool]
) -> Callable[[str, int], Sequence[T]]:
    """Read on, part by part, until as many objects as asked for are wanted."""

    def fetch_wanted(after: str, limit: int) -> Sequence[T]:
        found: list[T] = []
        while len(found) < limit:
            part = fetch(after, _PART)
            found += [item for item in part if keeps(item)]
            if len(part) < _PART:
                break
            after = key(part[-1])
        return found[:limit]

    return fetch_wanted


def repository_page(
    repository: Repository[T],
    key: Callable[[T], str],
    scope: str,
    size: int,
    token: str | None,
    prefix: str = "",
    only: Only = ANY,
    has: Callable[[T], Mapping[str, Any]] = lambda item: {},
) -> Page[T]:
    """One page of a repository's objects whose keys start with ``prefix``; see ``make_page``.

    Args:
        repository: of the objects.
        key: of an object, by which they are sorted.
        scope: what is listed; a token is for one scope.
        size: the most items of the page.
        token: of the page wanted; None = the first.
        prefix: of the keys.
        only: what is wanted of them.
        has: an object's values for the filters.
    """

    def fetch(after: str, limit: int) -> Sequence[T]:
        return repository.page(prefix=prefix, after=after, limit=limit)

    return make_page(fetch, key, f"{scope}/{prefix}", size, token, only, has)


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
