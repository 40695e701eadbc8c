"""Roles and their grants: who may grant what, and what a role has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from leatstream.errors import AccessError, Faults, RequestError, not_found
from leatstream.model.access import (
    BUILT_IN,
    CONTAINERS,
    ENTITY_PRIVILEGES,
    OBJECT_PRIVILEGES,
    ORGANIZATION,
    Grant,
    Privilege,
    Role,
    Target,
)
from leatstream.model.names import quote
from leatstream.model.objects import Meta
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Page, Precondition, Principal, Stored
from leatstream.services.environment.authorization import require, require_admin_scope, rights_in
from leatstream.services.environment.pages import make_page
from leatstream.services.environment.upsert import upsert
from leatstream.services.environment.visible import KINDS
from leatstream.services.nouns.dependents import refuse_dependents

_MANAGE = "manage roles"


def put_role(
    env: Environment,
    principal: Principal,
    name: str,
    inherits: Sequence[str] = (),
    grants: Iterable[Grant] | None = None,
    comment: str | None = None,
    pre: Precondition = Precondition(),  # noqa: B008 - immutable
) -> Stored[Role]:
    """Create or replace a role.

    Args:
        env: the environment.
        principal: who asks; needs MANAGE_GRANTS.
        name: exact name.
        inherits: roles whose grants it has too.
        grants: its own; None leaves those that it has.
        comment: free text.
        pre: precondition.

    Raises:
        AccessError: permission-denied.
        RequestError: validation, a role that does not exist, inherits itself, or a grant that makes no sense.
        CatalogError: preconditions.
    """
    _require_manager(principal)
    if name in BUILT_IN and name != "public":
        raise RequestError("validation", f"Role {name} is built in and cannot be changed.")
    with env.open_unit() as unit:
        old = unit.roles.find(name)
        wanted = old.grants if grants is None and old is not None else tuple(dict.fromkeys(grants or ()))
        _check_inherited(unit, name, inherits)
        for role in set(inherits) ^ set(old.inherits if old is not None else ()):
            refuse_more_rights(unit, principal, role)
        _check_grants(_as_manager(unit, principal), wanted, old.grants if old is not None else ())

        def make(meta: Meta, previous: Role | None) -> Role:
            kept = tuple(dict.fromkeys(inherits))
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
        found = unit.roles.find(name) if _sees(principal, name) else None
        if found is None and not (name in BUILT_IN and _sees(principal, name)):
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
    env: Environment, principal: Principal, page_size: int = 100, page_token: str | None = None
) -> Page[Role]:
    """One page of roles by name, the built-in ones among them.

    Args:
        env: the environment.
        principal: who asks.
        page_size: roles per page, at least 1.
        page_token: of the page before; None = the first.
    """
    with env.open_unit(write=False) as unit:
        stored = {role.name: role for role in unit.roles.page(limit=100_000)}
    found = {**{name: built_in(env, name) for name in BUILT_IN}, **stored}
    names = sorted(name for name in found if _sees(principal, name))
    return make_page(
        lambda after, limit: [found[name] for name in names if name > after][:limit],
        lambda role: role.name,
        "roles",
        page_size,
        page_token,
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
                raise RequestError("validation", f"Role {name} is built in and cannot be deleted.")
            raise not_found("role", quote(name))
        pre.check(found.meta.generation, "role", name)
        refuse_dependents(f"role {quote(name)}", _dependents(unit, name), unit)
        unit.roles.delete(found.meta.id)
        unit.commit()


def grant(env: Environment, principal: Principal, name: str, grants: Sequence[Grant]) -> Role:
    """Add grants to a role.

    Args:
        env: the environment.
        principal: who asks: owner of the objects, holder of the privileges with grant option, or
            MANAGE_GRANTS.
        name: of the role.
        grants: to add; one that the role has is left.

    Raises:
        AccessError: permission-denied.
        RequestError: validation.
        CatalogError: not-found.
    """
    return _change(
        env,
        principal,
        name,
        grants,
        lambda held: [*(one for one in held if (one.privilege, one.on) not in _keys(grants)), *grants],
    )


def revoke(env: Environment, principal: Principal, name: str, grants: Sequence[Grant]) -> Role:
    """Take grants from a role; one that it does not have is no error.

    Args:
        env: the environment.
        principal: who asks; see ``grant``.
        name: of the role.
        grants: to take away; their grant option does not count.

    Raises:
        AccessError: permission-denied.
        CatalogError: not-found.
    """
    return _change(
        env,
        principal,
        name,
        grants,
        lambda held: [one for one in held if (one.privilege, one.on) not in _keys(grants)],
        new=False,
    )


def transfer(env: Environment, principal: Principal, kind: str, name: str, role: str) -> None:
    """Give an object to another role; its owner, or a manager of grants, does so.

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
        unit = _as_manager(seen, principal)
        _require_role(unit, role)
        # A query runs with the rights of its owner, so ownership is no way to more of them.
        refuse_more_rights(unit, principal, role)
        rows, key = rows_of(unit, kind), key_of(kind, name)
        found = rows.find(key) if rows is not None else None
        if rows is None or found is None:
            raise not_found(kind, name)
        if found.meta.owner == role:
            return
        # The unit asks for ownership where the principal's rights are bounded.
        rows.update(replace(found, meta=replace(found.meta, owner=role)))
        unit.commit()


def privileges_on(
    env: Environment, principal: Principal, kind: str, name: str
) -> frozenset[Privilege] | None:
    """What the principal may do with an object; None where it sees none of that name.

    Args:
        env: the environment.
        principal: who asks.
        kind: of the object.
        name: as SQL writes it; empty for the organization.
    """
    if kind == ORGANIZATION:
        return principal.rights.on(kind, "")
    with env.open_unit(write=False) as unit:
        found = object_of(unit, kind, name)
    return None if found is None else principal.rights.on(kind, name, found.meta.owner)


def _change(
    env: Environment,
    principal: Principal,
    name: str,
    grants: Sequence[Grant],
    change: Callable[[Sequence[Grant]], Iterable[Grant]],
    *,
    new: bool = True,
) -> Role:
    require_admin_scope(principal, _MANAGE)
    with env.open_unit() as unit:
        found = unit.roles.find(name)
        if found is None and name != "public":
            _require_role(unit, name)
            raise RequestError("validation", f"Role {name} is built in; it is granted nothing.")
        for one in grants:
            _require_grantor(unit, principal, one)
        held = found.grants if found is not None else ()
        wanted = tuple(dict.fromkeys(change(held)))
        if new:
            _check_grants(_as_manager(unit, principal), wanted, held)

        def make(meta: Meta, previous: Role | None) -> Role:
            if previous is not None:
                return replace(previous, meta=meta, grants=wanted)
            return Role(meta=meta, name=name, grants=wanted)

        stored = upsert(env, principal, unit.roles, name, "role", "rol", Precondition(), make)
        unit.commit()
    return stored.item


def _keys(grants: Iterable[Grant]) -> set[tuple[Privilege, Target]]:
    return {(one.privilege, one.on) for one in grants}


def _require_manager(principal: Principal) -> None:
    require_admin_scope(principal, _MANAGE)
    require(principal, Privilege.MANAGE_GRANTS, _MANAGE)


def _as_manager(unit: UnitOfWork, principal: Principal) -> UnitOfWork:
    """The unit in which a manager of grants sees every object; that of others as it is."""
    manages = principal.rights.may(Privilege.MANAGE_GRANTS, ORGANIZATION)
    return unit.unfiltered if manages else unit


def _require_grantor(unit: UnitOfWork, principal: Principal, one: Grant) -> None:
    rights, on = principal.rights, one.on
    if rights.may(Privilege.MANAGE_GRANTS, ORGANIZATION):
        return
    if Grant(one.privilege, on, grant_option=True) in rights.grantable:
        return
    # Who owns a schema does not own what others create in it: all of a kind takes more than ownership.
    if on.kind != ORGANIZATION and rights.everything:
        return
    found = object_of(unit, on.kind, on.name) if on.name else None
    if found is not None and rights.may(Privilege.OWNERSHIP, on.kind, on.name or "", found.meta.owner):
        return
    raise AccessError(
        "permission-denied",
        f"Role {principal.role} may not grant or revoke {one.privilege.value.upper()} on {on}.",
        hint="Its owner may, a role that has it WITH GRANT OPTION, and one with MANAGE_GRANTS.",
    )


def rows_of(unit: UnitOfWork, kind: str) -> Any:
    """The repository of a kind of object that can be granted on; None of another word."""
    return next((getattr(unit, noun) for noun, its in KINDS.items() if its == kind), None)


def key_of(kind: str, name: str) -> str:
    """The catalog's key of an object, from its name as SQL writes it."""
    quoted = name.startswith('"') and kind not in ("schema", "relation")
    return name[1:-1].replace('""', '"') if quoted else name


def object_of(unit: UnitOfWork, kind: str, name: str) -> Any:
    """The object that a grant names, if it exists and the principal sees it; else None.

    Args:
        unit: an open unit.
        kind: of the object.
        name: as SQL writes it.
    """
    rows = rows_of(unit, kind)
    return rows.find(key_of(kind, name)) if rows is not None else None


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


def _check_grants(unit: UnitOfWork, grants: Sequence[Grant], held: Sequence[Grant]) -> None:
    """Refuse grants that make no sense; what the role has stays, also on an object that was dropped."""
    faults = Faults()
    for index, one in enumerate(grants):
        pointer, on = f"#/grants/{index}", one.on
        known = OBJECT_PRIVILEGES[on.kind]
        if one in held:
            continue
        if one.privilege is Privilege.OWNERSHIP:
            hint = "POST /v1/ownership, or GRANT OWNERSHIP ON … TO ROLE …"
            faults.add("validation", "Ownership is transferred, not granted.", pointer=pointer, hint=hint)
            continue
        if one.privilege not in known:
            names = ", ".join(p.value.upper() for p in known)
            detail = f"{one.privilege.value.upper()} cannot be granted on a {on.kind}."
            faults.add("validation", detail, pointer=pointer, hint=f"There is {names}.")
        elif on.name is None and on.within not in CONTAINERS.get(on.kind, ()):
            places = ", ".join(CONTAINERS.get(on.kind, ()))
            faults.add("validation", f"All of kind {on.kind} can be in: {places}.", pointer=pointer)
        elif on.entities is not None and one.privilege not in ENTITY_PRIVILEGES:
            faults.add("validation", "A pattern of entities belongs to privileges on them.", pointer=pointer)
        else:
            kind, name = (on.kind, on.name) if on.name is not None else (on.within or "", on.container or "")
            if kind != ORGANIZATION and object_of(unit, kind, name or "") is None:
                faults.add("validation", f"There is no {kind} {name}.", pointer=pointer)
    faults.raise_if_any()


def _require_role(unit: UnitOfWork, name: str) -> None:
    if name not in BUILT_IN and unit.roles.find(name) is None:
        raise not_found("role", quote(name))


def _sees(principal: Principal, name: str) -> bool:
    rights = principal.rights
    manages = rights.may(Privilege.MANAGE_MEMBERS, ORGANIZATION) or rights.may(
        Privilege.MANAGE_GRANTS, ORGANIZATION
    )
    return manages or name in rights.roles or name in BUILT_IN


def _dependents(unit: UnitOfWork, name: str) -> list[str]:
    accounts = [
        f"{a.kind.value} {quote(a.name)}" for a in unit.accounts.page(limit=100_000) if name in a.roles
    ]
    roles = [f"role {quote(r.name)}" for r in unit.roles.page(limit=100_000) if name in r.inherits]
    owned = [
        f"{kind.replace('_', ' ')} {getattr(unit.unfiltered, noun).key(item)}"
        for noun, kind in KINDS.items()
        for item in getattr(unit.unfiltered, noun).page(limit=100_000)
        if item.meta.owner == name
    ]
    return [*accounts, *roles, *owned]


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


def refuse_more_rights(unit: UnitOfWork, principal: Principal, role: str) -> None:
    """AccessError unless the principal has the role, or manages grants and the role is not above it.

    Args:
        unit: an open unit.
        principal: who gives or takes the role.
        role: its name.
    """
    mine = principal.rights
    if role in mine.roles:
        return
    manages = mine.may(Privilege.MANAGE_GRANTS, ORGANIZATION)
    if not manages or (rights_in(unit, role).everything and not mine.everything):
        raise AccessError(
            "permission-denied",
            f"Role {principal.role} may not give or take role {role}, which it does not have itself.",
            hint="A securityadmin gives custom roles and reader, an orgadmin every role.",
        )
