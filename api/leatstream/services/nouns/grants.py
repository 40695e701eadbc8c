"""Grants: who may give or take them, which make sense, and whose an object is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from leatstream.errors import AccessError, Faults, already_exists, not_found
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
from leatstream.services.environment import Environment, Precondition, Principal
from leatstream.services.environment.authorization import require_admin_scope, rights_in
from leatstream.services.environment.desk import object_of
from leatstream.services.environment.upsert import upsert


def built_in_refusal(name: str, what: str) -> AccessError:
    """The refusal to change a role that every server has; nobody may.

    Args:
        name: of the role.
        what: is refused, such as ``deleted``.
    """
    hint = "Create a role of your own, and change that one."
    return AccessError("permission-denied", f"Role {name} is built in and cannot be {what}.", hint=hint)


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


def put_grant(
    env: Environment,
    principal: Principal,
    name: str,
    one: Grant,
    pre: Precondition = Precondition(),  # noqa: B008 - immutable
) -> bool:
    """Add one grant to a role, or change its grant option; whether it is new.

    Args:
        env: the environment.
        principal: who asks; see ``grant``.
        name: of the role.
        one: the grant.
        pre: whether it must be new.

    Raises:
        AccessError: permission-denied.
        RequestError: validation.
        CatalogError: already-exists; not-found, the role.
    """
    before: list[Grant] = []

    def change(held: Sequence[Grant]) -> list[Grant]:
        before[:] = [had for had in held if (had.privilege, had.on) == (one.privilege, one.on)]
        if before and pre.must_be_new:
            raise already_exists("grant", _said(one, name))
        return [*(had for had in held if had not in before), one]

    _change(env, principal, name, [one], change)
    return not before


def delete_grant(env: Environment, principal: Principal, name: str, one: Grant) -> None:
    """Take one grant from a role.

    Args:
        env: the environment.
        principal: who asks; see ``grant``.
        name: of the role.
        one: the grant; its grant option does not count.

    Raises:
        AccessError: permission-denied.
        CatalogError: not-found, the role or the grant.
    """

    def change(held: Sequence[Grant]) -> list[Grant]:
        return [had for had in held if had is not find_grant(held, name, one)]

    _change(env, principal, name, [one], change, new=False)


def find_grant(held: Iterable[Grant], name: str, one: Grant) -> Grant:
    """The grant that a role has of a privilege on a target.

    Args:
        held: grants of the role.
        name: of the role.
        one: privilege and target.

    Raises:
        CatalogError: not-found.
    """
    for had in held:
        if (had.privilege, had.on) == (one.privilege, one.on):
            return had
    raise not_found("grant", _said(one, name))


def _said(one: Grant, role: str) -> str:
    return f"of {one.privilege.value.upper()} on {one.on} to role {quote(role)}"


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
    require_admin_scope(principal, "manage grants")
    with env.open_unit() as unit:
        found = unit.roles.find(name)
        if found is None and name != "public":
            require_role(unit, name)
            raise built_in_refusal(name, "granted anything")
        for one in grants:
            _require_grantor(unit, principal, one)
        held = found.grants if found is not None else ()
        wanted = tuple(dict.fromkeys(change(held)))
        if new:
            check_grants(as_manager(unit, principal), wanted, held)

        def make(meta: Meta, previous: Role | None) -> Role:
            if previous is not None:
                return replace(previous, meta=meta, grants=wanted)
            return Role(meta=meta, name=name, grants=wanted)

        stored = upsert(env, principal, unit.roles, name, "role", "rol", Precondition(), make)
        unit.commit()
    return stored.item


def _keys(grants: Iterable[Grant]) -> set[tuple[Privilege, Target]]:
    return {(one.privilege, one.on) for one in grants}


def as_manager(unit: UnitOfWork, principal: Principal) -> UnitOfWork:
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


def check_grants(unit: UnitOfWork, grants: Sequence[Grant], held: Sequence[Grant]) -> None:
    """Refuse grants that make no sense; what the role has stays, also on an object that was dropped.

    Args:
        unit: in which the objects are looked for.
        grants: that the role would have.
        held: that it has.

    Raises:
        RequestError: validation, with every fault.
    """
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
            faults.add("validation", detail, pointer=pointer, hint=f"Available: {names}.")
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


def require_role(unit: UnitOfWork, name: str) -> None:
    """CatalogError not-found unless a role exists.

    Args:
        unit: an open unit.
        name: of the role.
    """
    if name not in BUILT_IN and unit.roles.find(name) is None:
        raise not_found("role", quote(name))


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
