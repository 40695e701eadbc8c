"""Users and service accounts: who can have tokens, and which roles they may act in."""

from __future__ import annotations

from collections.abc import Sequence

from leatstream.errors import RequestError, already_exists, not_found
from leatstream.model.access import ORGANIZATION, Account, AccountKind, Privilege, is_issuers
from leatstream.model.names import quote
from leatstream.model.objects import Meta
from leatstream.services.environment import Environment, Page, Precondition, Principal, Stored
from leatstream.services.environment.authorization import (
    ADMINISTRATOR,
    require,
    require_admin_scope,
)
from leatstream.services.environment.pages import ANY, Only, make_page
from leatstream.services.environment.upsert import upsert
from leatstream.services.nouns.grants import refuse_more_rights
from leatstream.services.nouns.roles import refuse_unknown_roles

_MANAGE = "manage users and service accounts"


def put_account(
    env: Environment,
    principal: Principal,
    kind: AccountKind,
    name: str,
    roles: Sequence[str] | None = (),
    default_role: str | None = None,
    disabled: bool = False,
    comment: str | None = None,
    pre: Precondition = Precondition(),  # noqa: B008 - immutable
) -> Stored[Account]:
    """Create or replace a user or a service account.

    Args:
        env: the environment.
        principal: who asks; needs MANAGE_MEMBERS, and may give no role that has more rights than its own.
        kind: user or service account.
        name: exact name, such as an e-mail address.
        roles: that it may act in; None leaves those that it has.
        default_role: of tokens that name none; None = the only one.
        disabled: refuse its tokens.
        comment: free text.
        pre: precondition.

    Raises:
        AccessError: permission-denied.
        RequestError: validation.
        CatalogError: preconditions; already-exists, the other kind of account has the name.
    """
    require_manager(principal)
    if name == ADMINISTRATOR:
        raise RequestError("validation", "The account admin belongs to the server's own token.")
    if is_issuers(name):
        raise RequestError(
            "validation",
            "Names of the form issuer#subject belong to principals of identity providers.",
            hint="Give such a principal its role by a rule in LEATSTREAM_OIDC.",
        )
    with env.open_unit() as unit:
        old = unit.accounts.find(name)
        if old is not None and old.kind is not kind:
            raise already_exists(old.kind.value, quote(name))
        held = tuple(dict.fromkeys(roles if roles is not None else old.roles if old is not None else ()))
        if default_role is not None and default_role not in held:
            detail = f"Default role {default_role} is none of the account's."
            raise RequestError("validation", detail, pointer="#/default_role")
        refuse_unknown_roles(unit, held)
        before = set(old.roles) if old is not None else set()
        # Who switches an account on or off gives or takes all of its roles.
        switched = old is not None and old.disabled is not disabled
        for role in sorted(set(held) | before if switched else set(held) ^ before):
            refuse_more_rights(unit, principal, role)

        def make(meta: Meta, previous: Account | None) -> Account:
            return Account(
                meta=meta,
                name=name,
                kind=kind,
                roles=held,
                default_role=default_role,
                disabled=disabled,
                comment=comment,
            )

        stored = upsert(env, principal, unit.accounts, name, kind.value, "acc", pre, make)
        unit.commit()
    return stored


def get_account(env: Environment, principal: Principal, kind: AccountKind, name: str) -> Account:
    """An account; everybody sees the own one.

    Args:
        env: the environment.
        principal: who asks.
        kind: user or service account.
        name: of the account.

    Raises:
        CatalogError: not-found.
    """
    with env.open_unit(write=False) as unit:
        found = unit.accounts.find(name)
    seen = name == principal.name or principal.rights.may(Privilege.MANAGE_MEMBERS, ORGANIZATION)
    if found is None or found.kind is not kind or not seen:
        raise not_found(kind.value, quote(name))
    return found


def list_accounts(
    env: Environment,
    principal: Principal,
    kind: AccountKind,
    page_size: int = 100,
    page_token: str | None = None,
    only: Only = ANY,
) -> Page[Account]:
    """One page of accounts by name; those who manage none see their own.

    Args:
        env: the environment.
        principal: who asks.
        kind: users or service accounts.
        page_size: accounts per page, at least 1.
        page_token: of the page before; None = the first.
        only: what the list is narrowed to.
    """
    every = principal.rights.may(Privilege.MANAGE_MEMBERS, ORGANIZATION)
    with env.open_unit(write=False) as unit:
        found = [
            a
            for a in unit.accounts.page(limit=100_000)
            if a.kind is kind and (every or a.name == principal.name)
        ]
    return make_page(
        lambda after, limit: [a for a in found if a.name > after][:limit],
        lambda a: a.name,
        kind.value,
        page_size,
        page_token,
        only,
    )


def roles_of(env: Environment, principal: Principal) -> Sequence[str]:
    """Roles that the principal's account may act in; of the server's own token the one that it has.

    Args:
        env: the environment.
        principal: who asks.
    """
    with env.open_unit(write=False) as unit:
        found = unit.accounts.find(principal.name)
    return found.roles if found is not None else (principal.role,)


def delete_account(
    env: Environment,
    principal: Principal,
    kind: AccountKind,
    name: str,
    pre: Precondition = Precondition(),  # noqa: B008 - immutable
) -> None:
    """Delete an account with its tokens; what it made belongs to its roles and stays.

    Args:
        env: the environment.
        principal: who asks; needs MANAGE_MEMBERS.
        kind: user or service account.
        name: of the account.
        pre: precondition.

    Raises:
        CatalogError: not-found, stale.
    """
    require_manager(principal)
    with env.open_unit() as unit:
        found = unit.accounts.find(name)
        if found is None or found.kind is not kind:
            raise not_found(kind.value, quote(name))
        pre.check(found.meta.generation, kind.value, name)
        for role in found.roles:
            refuse_more_rights(unit, principal, role)
        unit.tokens.delete_of(name)
        for linked in unit.linked_identities.page(limit=100_000):
            if linked.account == name:
                unit.linked_identities.delete(linked.meta.id)
        unit.accounts.delete(found.meta.id)
        unit.commit()


def require_manager(principal: Principal) -> None:
    """AccessError unless the principal may manage accounts, with a token for that."""
    require_admin_scope(principal, _MANAGE)
    require(principal, Privilege.MANAGE_MEMBERS, _MANAGE)
