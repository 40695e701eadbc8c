"""In which roles a principal may act: that of its token, those of its account, and what they inherit."""

from __future__ import annotations

from dataclasses import replace

from leatstream.errors import AccessError
from leatstream.model.access import BUILT_IN, ORGANIZATION, Privilege
from leatstream.model.names import quote
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Principal
from leatstream.services.environment.authorization import rights_in


def in_role(env: Environment, principal: Principal, role: str | None) -> tuple[Environment, Principal]:
    """The principal in a role, and its environment: what it makes belongs to that role.

    Args:
        env: the environment.
        principal: who asks, as it signed in.
        role: that it is to act in; None = the one that it signed in with.

    Raises:
        AccessError: permission-denied, a role that the principal may not act in.
    """
    if role is None or role == principal.role:
        return (env if env.who in (None, principal) else env.seen_by(principal)), principal
    require_acting_in(env, principal, role)
    with env.open_unit(write=False) as unit:
        rights = rights_in(unit.unfiltered, role, principal.rights.scope)
    acting = replace(principal, role=role, given=rights)
    return env.seen_by(acting), acting


def require_acting_in(env: Environment, principal: Principal, role: str) -> None:
    """Let the principal pass if it may act in a role.

    Args:
        env: the environment.
        principal: who asks, as it signed in.
        role: that it is to act in.

    Raises:
        AccessError: permission-denied; the same for a role that does not exist, as roles may be hidden.
    """
    with env.open_unit(write=False) as unit:
        if _may_act_in(unit.unfiltered, principal, role):
            return
    hint = (
        f"A token acts in its role and what that inherits: make one for role {quote(role)}."
        if principal.bound
        else f"GRANT ROLE {quote(role)} TO USER {quote(principal.name)}"
    )
    raise AccessError(
        "permission-denied", f"{quote(principal.name)} may not act in role {quote(role)}.", hint=hint
    )


def _may_act_in(unit: UnitOfWork, principal: Principal, role: str) -> bool:
    rights = principal.rights
    if role == principal.role or role in rights.roles:
        return True
    if role not in BUILT_IN and unit.roles.find(role) is None:
        return False
    # Who could give itself every role needs no detour.
    if rights.everything and rights.may(Privilege.MANAGE_GRANTS, ORGANIZATION):
        return True
    found = None if principal.bound else unit.accounts.find(principal.name)
    return found is not None and any(role in rights_in(unit, one).roles for one in found.roles)
