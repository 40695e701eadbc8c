"""Ownership: each object belongs to one role, and a transfer includes what was made with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from leatstream.errors import not_found
from leatstream.model.access import KINDS
from leatstream.model.objects import Query
from leatstream.model.registered import Application
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Principal, Stored
from leatstream.services.environment.authorization import require_admin_scope
from leatstream.services.environment.desk import object_of, require_ownership, rows_of
from leatstream.services.nouns.databases import PUBLIC
from leatstream.services.nouns.grants import as_manager, refuse_more_rights, require_role
from leatstream.services.nouns.schemas import schema_key

T = TypeVar("T", bound=Any)


def transfer(env: Environment, principal: Principal, kind: str, name: str, role: str) -> None:
    """Give an object to another role, with what was made with it; its owner, or a manager of grants, does so.

    Args:
        env: the environment.
        principal: who asks.
        kind: of the object, such as ``relation``.
        name: of the object as SQL writes it.
        role: the new owner.

    Raises:
        AccessError: permission-denied.
        CatalogError: not-found, of the object or the role.
    """
    require_admin_scope(principal, "transfer ownership")
    with env.open_unit() as seen:
        unit = as_manager(seen, principal)
        found = _require_transferable(unit, principal, kind, name, role)
        if found is None:
            raise not_found(kind, name)
        if found.meta.owner == role:
            return
        for its_kind, item in [(kind, found), *_made_with(unit, kind, found)]:
            if item.meta.owner == found.meta.owner:
                # The unit asks for ownership where the principal's rights are bounded.
                rows_of(unit, its_kind).update(replace(item, meta=replace(item.meta, owner=role)))
        unit.commit()


def put_owned(
    env: Environment,
    principal: Principal,
    kind: str,
    name: str,
    role: str | None,
    put: Callable[[], Stored[T]],
) -> Stored[T]:
    """Create or replace an object that is to belong to a role.

    Whether it may be transferred is checked before anything is written.

    Args:
        env: the environment.
        principal: who asks.
        kind: of the object, such as ``relation``.
        name: of the object as SQL writes it.
        role: the owner; None = the present one, and of a new object the principal's role.
        put: creates or replaces it.

    Raises:
        LeatstreamError: of ``put``, or of a transfer that would be refused.
    """
    if role is None:
        return put()
    with env.open_unit(write=False) as seen:
        unit = as_manager(seen, principal)
        found = object_of(unit, kind, name)
        if (principal.role if found is None else found.meta.owner) != role:
            require_admin_scope(principal, "transfer ownership")
            _require_transferable(unit, principal, kind, name, role)
    stored = put()
    meta = stored.item.meta
    if meta.owner == role:
        return stored
    transfer(env, principal, kind, name, role)
    return replace(stored, item=replace(stored.item, meta=replace(meta, owner=role)))


def _require_transferable(unit: UnitOfWork, principal: Principal, kind: str, name: str, role: str) -> Any:
    """The object, if it is there; the refusal if the principal may not give it to the role."""
    require_role(unit, role)
    # A query runs with the rights of its owner, so ownership is no way to more of them.
    refuse_more_rights(unit, principal, role)
    found = object_of(unit, kind, name) if kind in KINDS else None
    if found is not None:
        require_ownership(rows_of(unit, kind), found)
    return found


def _made_with(unit: UnitOfWork, kind: str, item: Any) -> Iterator[tuple[str, Any]]:
    """What the statement that made an object has made besides it; its kind and the object."""
    if kind == "database":
        yield from _found(unit, "schema", schema_key(item.name, PUBLIC))
    elif isinstance(item, Query):
        for _, sink in _found(unit, "relation", item.sink):
            if sink.created_by_query == item.meta.id:
                yield "relation", sink
    elif isinstance(item, Application):
        for name in item.queries:
            for _, query in _found(unit, "query", name):
                yield "query", query
                yield from _made_with(unit, "query", query)
        for name in item.relations:
            yield from _found(unit, "relation", name)


def _found(unit: UnitOfWork, kind: str, key: str) -> Iterator[tuple[str, Any]]:
    found = rows_of(unit, kind).find(key)
    if found is not None:
        yield kind, found
