"""Running statements all or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from leatstream.errors import CatalogError
from leatstream.services.environment import Environment
from leatstream.services.staging.catalog_view import CatalogView
from leatstream.services.staging.staged_unit import keep, staged

T = TypeVar("T")
_TRIES = 3


def all_or_nothing(env: Environment, work: Callable[[Environment], T]) -> T:
    """Do something to the catalog whole or not at all.

    Args:
        env: the environment.
        work: is given an environment whose changes are kept when it returns; called again, from the start, if
            someone else has changed what it read.

    Raises:
        LeatstreamError: of ``work``, with nothing kept; stale, if others were faster every time.
    """
    for left in reversed(range(_TRIES)):
        inner, staging = staged(env)
        result = work(inner)
        try:
            keep(env, staging)
            break
        except CatalogError as error:
            if error.code != "stale" or not left:
                raise
    return result


def discarded(env: Environment, work: Callable[[Environment], T], planned: CatalogView | None = None) -> T:
    """Do something to the catalog and give it up; LeatstreamError as it would have raised.

    Args:
        env: the environment.
        work: is given an environment whose changes are given up.
        planned: objects that count as stored meanwhile.
    """
    return work(staged(env, planned)[0])
