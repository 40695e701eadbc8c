"""Who has a role: users, service accounts, and roles that inherit it; each membership on its own."""

from __future__ import annotations

from collections.abc import Callable

from leatstream.errors import CatalogError, already_exists, not_found
from leatstream.model.access import BUILT_IN, AccountKind
from leatstream.model.names import quote
from leatstream.services.environment import Environment, Precondition, Principal
from leatstream.services.nouns import accounts, roles

ROLE = "role"
KINDS = (ROLE, *(kind.value for kind in AccountKind))
# Terraform makes ten at a time, perhaps all of one account.
_TRIES = 20

_Roles = tuple[str, ...]


def has_role(env: Environment, principal: Principal, role: str, kind: str, member: str) -> bool:
    """Whether a member has a role of its own, not by inheritance.

    Args:
        env: the environment.
        principal: who asks.
        role: name of the role.
        kind: of the member, one of ``KINDS``.
        member: its name.

    Raises:
        CatalogError: not-found, the role or the member.
    """
    roles.get_role(env, principal, role)
    return role in _held(env, principal, kind, member)


def put_membership(
    env: Environment,
    principal: Principal,
    role: str,
    kind: str,
    member: str,
    pre: Precondition = Precondition(),  # noqa: B008 - immutable
) -> bool:
    """Give a role to a user, a service account or a role; whether it is new.

    Args:
        env: the environment.
        principal: who asks; needs MANAGE_MEMBERS for accounts and MANAGE_GRANTS for roles.
        role: name of the role.
        kind: of the member, one of ``KINDS``.
        member: its name.
        pre: whether it must be new.

    Raises:
        AccessError: permission-denied.
        RequestError: validation, such as a role that would inherit itself.
        CatalogError: already-exists; not-found, the member.
    """
    added = False

    def add(held: _Roles) -> _Roles:
        nonlocal added
        if role in held and pre.must_be_new:
            raise already_exists("membership", _said(role, kind, member))
        added = role not in held
        return held if role in held else (*held, role)

    _change(env, principal, kind, member, add)
    return added


def delete_membership(env: Environment, principal: Principal, role: str, kind: str, member: str) -> None:
    """Take a role from a user, a service account or a role.

    Args:
        env: the environment.
        principal: who asks; see ``put_membership``.
        role: name of the role.
        kind: of the member, one of ``KINDS``.
        member: its name.

    Raises:
        AccessError: permission-denied.
        CatalogError: not-found, the member or the membership.
    """

    def remove(held: _Roles) -> _Roles:
        if role not in held:
            raise missing(role, kind, member)
        return tuple(one for one in held if one != role)

    _change(env, principal, kind, member, remove)


def missing(role: str, kind: str, member: str) -> CatalogError:
    """The error of a member that does not have a role.

    Args:
        role: name of the role.
        kind: of the member.
        member: its name.
    """
    return not_found("membership", _said(role, kind, member))


def _said(role: str, kind: str, member: str) -> str:
    return f"of {kind.replace('_', ' ')} {quote(member)} in role {quote(role)}"


def _held(env: Environment, principal: Principal, kind: str, member: str) -> _Roles:
    if kind == ROLE:
        return roles.get_role(env, principal, member).inherits
    return accounts.get_account(env, principal, AccountKind(kind), member).roles


def _change(
    env: Environment, principal: Principal, kind: str, member: str, change: Callable[[_Roles], _Roles]
) -> None:
    for left in reversed(range(_TRIES)):
        try:
            _change_once(env, principal, kind, member, change)
            return
        except CatalogError as error:
            if error.code != "stale" or not left:
                raise


def _change_once(
    env: Environment, principal: Principal, kind: str, member: str, change: Callable[[_Roles], _Roles]
) -> None:
    if kind == ROLE:
        old = roles.get_role(env, principal, member)
        # Nobody has stored public yet where nothing was granted to it.
        pre = Precondition() if member in BUILT_IN else Precondition(if_match=old.meta.generation)
        roles.put_role(env, principal, member, change(old.inherits), None, old.comment, pre)
        return
    found = accounts.get_account(env, principal, AccountKind(kind), member)
    held = change(found.roles)
    default = found.default_role if found.default_role in held else None
    pre = Precondition(if_match=found.meta.generation)
    accounts.put_account(
        env, principal, found.kind, member, held, default, found.disabled, found.comment, pre
    )
