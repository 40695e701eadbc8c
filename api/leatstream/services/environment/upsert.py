"""Create-or-replace by name: what PUT means for every noun of the catalog."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from leatstream.model.objects import Meta
from leatstream.ports import Repository
from leatstream.services.environment import Environment, Precondition, Principal, Stored, new_meta, next_meta


class _Item(Protocol):
    @property
    def meta(self) -> Meta: ...


T = TypeVar("T", bound=_Item)


def upsert(
    env: Environment,
    principal: Principal,
    repository: Repository[T],
    key: str,
    noun: str,
    prefix: str,
    pre: Precondition,
    make: Callable[[Meta, T | None], T],
) -> Stored[T]:
    """Insert or replace one object inside a unit of work; the caller commits.

    Args:
        env: the environment.
        principal: becomes creator of a new object, its role the owner.
        repository: of the noun.
        key: exact key.
        noun: for messages.
        prefix: of a new id.
        pre: precondition on the present generation.
        make: builds the object from a meta and the old object; called with the *old* meta first, so that an
            unchanged body is recognized by equality and makes no new generation.
    """
    old = repository.find(key)
    pre.check(old.meta.generation if old else None, noun, key)
    now = env.clock.now()
    if old is None:
        item = make(new_meta(prefix, principal, now), None)
        repository.add(item)
        return Stored(item, created=True, changed=True)
    if make(old.meta, old) == old:
        return Stored(old, created=False, changed=False)
    item = make(next_meta(old.meta, now), old)
    repository.update(item)
    return Stored(item, created=False, changed=True)
