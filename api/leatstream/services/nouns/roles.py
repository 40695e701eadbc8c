"""Roles and their grants: who may grant what, and what a role has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from leatstream.errors import Faults, RequestError, not_found
from leatstream.model.access import (
    BUILT_IN,
    ORGANIZATION,
    Grant,
    Privilege,
    Role,
    has_own_rights,
)
from leatstream.model.names import quote
from leatstream.model.objects import Meta
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Page, Precondition, Principal, Stored
from leatstream.services.environment.authorization import require, require_admin_scope
from leatstream.services.environment.desk import NOUNS
from leatstream.services.environment.pages import ANY, Only, make_page
from leatstream.services.environment.upsert import upsert
from leatstream.services.nouns.dependents import refuse_dependents
from leatstream.services.nouns.grants import as_manager, built_in_refusal, check_grants, refuse_more_rights

_MANAGE = "manage roles"


def put_role(
    env: Environment,
    principal: Principal,
    name: str,
    inherits: Sequence[str] | None = (),
    grants: Iterable[Grant] | None = None,
    comment: str | None = None,
    pre: Precondition = Precondition(),  # noqa: B008 - immutable
) -> Stored[Role]:
    """Create or replace a role.

    Args:
        env: the environment.
        principal: who asks; needs MANAGE_GRANTS.
        name: exact name.
        inherits: roles whose grants it has too; None leaves those that it has.
        grants: its own; None leaves those that it has.
        comment: free text.
        pre: precondition.

    Raises:
        AccessError: permission-denied.
        RequestError: validation, a role that does not exist, inherits itself, or a grant that makes no sense.
        CatalogError: preconditions.
    """
    _require_manager(principal)
    if has_own_rights(name):
        raise built_in_refusal(name, "changed")
    with env.open_unit() as unit:
        old = unit.roles.find(name)
        wanted = old.grants if grants is None and old is not None else tuple(dict.fromkeys(grants or ()))
        if inherits is None:
            inherits = old.inherits if old is not None else ()
        kept = tuple(dict.fromkeys(inherits))
        _check_inherited(unit, name, kept)
        for role in set(kept) ^ set(old.inherits if old is not None else ()):
            refuse_more_rights(unit, principal, role)
        check_grants(as_manager(unit, principal), wanted, old.grants if old is not None else ())

        def make(meta: Meta, previous: Role | None) -> Role:
            return Role(meta=meta, name=name, inherits=kept, grants=wanted, comment=comment)

        stored = upsert(env, principal, unit.roles, name, "role", "rol", pre, make)
        unit.commit()
    return stored


def get_role(env: Environment, principal: Principal, name: str) -> Role:
    """A role; every principal sees its own ones, a manager of members or grants all.

    Args:
        env: the environment.
        principal: who asks.
        name: of the role.

    Raises:
        CatalogError: not-found.
    """
    with env.open_unit(write=False) as unit:
        found = unit.roles.find(name) if sees_role(principal, name) else None
        if found is None and not (name in BUILT_IN and sees_role(principal, name)):
            raise not_found("role", quote(name))
        return found or built_in(env, name)


def built_in(env: Environment, name: str) -> Role:
    """A built-in role as an object.

    Args:
        env: the environment.
        name: of the role.
    """
    started = env.listening_since or env.clock.now()
    meta = Meta(
        id=f"rol_{name}",
        generation=1,
        created_at=started,
        updated_at=started,
        created_by="leatstream",
        owner="orgadmin",
    )
    return Role(meta=meta, name=name, comment=BUILT_IN[name])


def list_roles(
    env: Environment,
    principal: Principal,
    page_size: int = 100,
    page_token: str | None = None,
    only: Only = ANY,
) -> Page[Role]:
    """One page of roles by name, the built-in ones among them.

    Args:
        env: the environment.
        principal: who asks.
        page_size: roles per page, at least 1.
        page_token: of the page before; None = the first.
        only: what the list is narrowed to.
    """
    with env.open_unit(write=False) as unit:
        stored = {role.name: role for role in unit.roles.page(limit=100_000)}
    found = {**{name: built_in(env, name) for name in BUILT_IN}, **stored}
    names = sorted(name for name in found if sees_role(principal, name))
    return make_page(
        lambda after, limit: [found[name] for name in names if name > after][:limit],
        lambda role: role.name,
        "roles",
        page_size,
        page_token,
        only,
    )


def delete_role(
    env: Environment,
    principal: Principal,
    name: str,
    pre: Precondition = Precondition(),  # noqa: B008 - immutable
) -> None:
    """Delete a role that owns nothing and that nobody has.

    Args:
        env: the environment.
        principal: who asks; needs MANAGE_GRANTS.
        name: of the role.
        pre: precondition.

    Raises:
        CatalogError: not-found, stale, or has-dependents naming accounts, roles, and kinds of objects.
    """
    _require_manager(principal)
    with env.open_unit() as unit:
        found = unit.roles.find(name)
        if found is None:
            if name in BUILT_IN:
                raise built_in_refusal(name, "deleted")
            raise not_found("role", quote(name))
        pre.check(found.meta.generation, "role", name)
        refuse_dependents(f"role {quote(name)}", _dependents(unit, name), unit)
        unit.roles.delete(found.meta.id)
        unit.commit()


def _require_manager(principal: Principal) -> None:
    require_admin_scope(principal, _MANAGE)
    require(principal, Privilege.MANAGE_GRANTS, _MANAGE)


def _check_inherited(unit: UnitOfWork, name: str, inherits: Sequence[str]) -> None:
    faults, waiting, seen = Faults(), list(inherits), set[str]()
    for index, one in enumerate(inherits):
        if one not in BUILT_IN and unit.roles.find(one) is None:
            faults.add("validation", f"Role {one} does not exist.", pointer=f"#/inherits/{index}")
    faults.raise_if_any()
    while waiting:
        one = waiting.pop()
        if one == name:
            raise RequestError("validation", f"Role {name} would inherit itself.", pointer="#/inherits")
        found = unit.roles.find(one) if one not in seen else None
        seen.add(one)
        waiting += found.inherits if found is not None else ()


def sees_role(principal: Principal, name: str) -> bool:
    """Whether a role exists for a principal: its own ones, the built-in ones; for a manager all.

    Args:
        principal: who asks.
        name: of the role.
    """
    rights = principal.rights
    manages = rights.may(Privilege.MANAGE_MEMBERS, ORGANIZATION) or rights.may(
        Privilege.MANAGE_GRANTS, ORGANIZATION
    )
    return manages or name in rights.roles or name in BUILT_IN


def _dependents(unit: UnitOfWork, name: str) -> list[str]:
    accounts = [
        f"{a.kind.value} {quote(a.name)}" for a in unit.accounts.page(limit=100_000) if name in a.roles
    ]
    invited = [f"invitation {quote(i.mail)}" for i in unit.invitations.page(limit=100_000) if name in i.roles]
    roles = [f"role {quote(r.name)}" for r in unit.roles.page(limit=100_000) if name in r.inherits]
    owned = [
        f"{kind.replace('_', ' ')} {getattr(unit.unfiltered, noun).key(item)}"
        for noun, kind in NOUNS.items()
        for item in getattr(unit.unfiltered, noun).page(limit=100_000)
        if item.meta.owner == name
    ]
    savepoints = [
        f"savepoint {quote(one.name)}"
        for one in unit.unfiltered.savepoints.page(limit=100_000)
        if one.meta.owner == name
    ]
    return [*accounts, *invited, *roles, *owned, *savepoints]


def refuse_unknown_roles(unit: UnitOfWork, roles: Sequence[str]) -> None:
    """RequestError naming each role that does not exist.

    Args:
        unit: an open unit.
        roles: names of roles.
    """
    faults = Faults()
    for index, one in enumerate(roles):
        if one not in BUILT_IN and unit.roles.find(one) is None:
            faults.add("validation", f"Role {one} does not exist.", pointer=f"#/roles/{index}")
    faults.raise_if_any()
