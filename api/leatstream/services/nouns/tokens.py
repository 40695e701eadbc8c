"""API tokens: made for an account and a role, with an end; rotated with two live values; revoked at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from leatstream.errors import AccessError, CatalogError, RequestError, already_exists, not_found
from leatstream.model.access import ORGANIZATION, Account, Privilege, Scope, TokenRow
from leatstream.model.names import quote
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Page, Principal
from leatstream.services.environment.audit import event_of
from leatstream.services.environment.authorization import ADMINISTRATOR, mint_token, require_admin_scope
from leatstream.services.environment.pages import ANY, Only, make_page
from leatstream.services.nouns.grants import refuse_more_rights

DEFAULT_DAYS, MOST_DAYS = 90, 3650
GRACE = timedelta(hours=24)
_ORDER = list(Scope)


@dataclass(frozen=True, slots=True)
class Token:
    """An API token without its values.

    Attributes:
        expires_at: when its newest value ends; None = never.
        values: how many values are accepted now: two while it is rotated.
    """

    name: str
    account: str
    role: str
    scope: Scope
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    values: int
    comment: str | None = None


def create_token(
    env: Environment,
    principal: Principal,
    name: str,
    account: str | None = None,
    role: str | None = None,
    scope: Scope = Scope.WRITE,
    lifetime: timedelta | None = timedelta(days=DEFAULT_DAYS),
    comment: str | None = None,
) -> tuple[Token, str]:
    """Make a token; its value is given once.

    Args:
        env: the environment.
        principal: who asks: for the own account, or with MANAGE_MEMBERS for others.
        name: unique name.
        account: whose token; None = the principal's own.
        role: that it acts in; None = the account's default role.
        scope: how far it reaches.
        lifetime: None = it never ends, which needs MANAGE_MEMBERS.
        comment: free text.

    Returns:
        The token and its value.

    Raises:
        AccessError: permission-denied.
        RequestError: validation.
        CatalogError: already-exists; not-found, the account.
    """
    account = account or principal.name
    now = env.clock.now()
    with env.open_unit() as unit:
        found = _require_account(unit, principal, account)
        _check_reach(principal, account, scope, lifetime)
        if unit.tokens.list(name):
            raise already_exists("token", quote(name))
        chosen = _role_of(found, role)
        refuse_more_rights(unit, principal, chosen)
        value, token_id, token_hash = mint_token()
        row = TokenRow(
            id=token_id,
            hash=token_hash,
            name=name,
            principal=account,
            role=chosen,
            scope=scope,
            created_at=now,
            created_by=principal.name,
            expires_at=None if lifetime is None else now + lifetime,
            comment=comment,
        )
        unit.tokens.add(row)
        unit.audit.add(event_of(principal, "create", "token", name))
        unit.commit()
    return token_of([row], now), value


def rotate_token(
    env: Environment, principal: Principal, name: str, grace: timedelta = GRACE
) -> tuple[Token, str]:
    """Give a token a new value; the old one is accepted for a while.

    Args:
        env: the environment.
        principal: who asks: the account itself, or with MANAGE_MEMBERS.
        name: of the token.
        grace: how long the old value is accepted; zero ends it now.

    Returns:
        The token and its new value.

    Raises:
        AccessError: permission-denied.
        CatalogError: not-found.
    """
    now = env.clock.now()
    with env.open_unit() as unit:
        rows = _require_changeable(unit, principal, name)
        newest = rows[-1]
        _check_reach(principal, newest.principal, Scope(newest.scope), timedelta(0))
        for old in rows:
            end = now + grace if old is newest else now
            if grace <= timedelta(0) or old is not newest:
                unit.tokens.delete(old.id)
            elif old.expires_at is None or old.expires_at > end:
                unit.tokens.add(replace(old, expires_at=end))
        value, token_id, token_hash = mint_token()
        length = None if newest.expires_at is None else newest.expires_at - newest.created_at
        row = replace(
            newest,
            id=token_id,
            hash=token_hash,
            created_at=now,
            expires_at=None if length is None else now + length,
            last_used_at=None,
        )
        unit.tokens.add(row)
        unit.audit.add(event_of(principal, "rotate", "token", name))
        kept = unit.tokens.list(name)
        unit.commit()
    return token_of(kept, now), value


def get_token(env: Environment, principal: Principal, name: str) -> Token:
    """A token without its values; CatalogError not-found.

    Args:
        env: the environment.
        principal: who asks.
        name: of the token.
    """
    with env.open_unit(write=False) as unit:
        return token_of(_require_rows(unit, principal, name), env.clock.now())


def list_tokens(
    env: Environment,
    principal: Principal,
    page_size: int = 100,
    page_token: str | None = None,
    only: Only = ANY,
) -> Page[Token]:
    """One page of tokens by name: all for those who manage members, else the own ones.

    Args:
        env: the environment.
        principal: who asks.
        page_size: tokens per page, at least 1.
        page_token: of the page before; None = the first.
        only: what the list is narrowed to.
    """
    with env.open_unit(write=False) as unit:
        rows = [row for row in unit.tokens.list() if _sees(principal, row)]
    by_name: dict[str, list[TokenRow]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(row)
    now = env.clock.now()
    found = [token_of(of, now) for of in by_name.values()]
    return make_page(
        lambda after, limit: [t for t in found if t.name > after][:limit],
        lambda t: t.name,
        "tokens",
        page_size,
        page_token,
        only,
    )


def revoke_token(env: Environment, principal: Principal, name: str) -> None:
    """Delete a token: no value of it is accepted any more, on any server.

    Args:
        env: the environment.
        principal: who asks: the account itself, or with MANAGE_MEMBERS.
        name: of the token.

    Raises:
        AccessError: permission-denied.
        CatalogError: not-found; invalid-transition, the server's own token.
    """
    with env.open_unit() as unit:
        rows = _require_changeable(unit, principal, name)
        _check_reach(principal, rows[-1].principal, Scope.READ, timedelta(0))
        for row in rows:
            unit.tokens.delete(row.id)
        unit.audit.add(event_of(principal, "delete", "token", name))
        unit.commit()


def _require_account(unit: UnitOfWork, principal: Principal, name: str) -> Account:
    manages = principal.rights.may(Privilege.MANAGE_MEMBERS, ORGANIZATION)
    found = unit.accounts.find(name) if manages or name == principal.name else None
    if found is None:
        hint = "Create a service account or a user first." if name == ADMINISTRATOR else None
        raise not_found("account", quote(name), hint=hint)
    return found


def _require_rows(unit: UnitOfWork, principal: Principal, name: str) -> Sequence[TokenRow]:
    rows = [row for row in unit.tokens.list(name) if _sees(principal, row)]
    if not rows:
        raise not_found("token", quote(name))
    return rows


def _require_changeable(unit: UnitOfWork, principal: Principal, name: str) -> Sequence[TokenRow]:
    """The values of a token of a role that the principal may give; not of the server's own."""
    rows = _require_rows(unit, principal, name)
    if rows[-1].principal == ADMINISTRATOR:
        raise CatalogError(
            "invalid-transition",
            "The administrator's token is the server's own.",
            hint="Set LEATSTREAM_BOOTSTRAP_TOKEN to another one, and start the server again.",
        )
    refuse_more_rights(unit, principal, rows[-1].role)
    return rows


def _sees(principal: Principal, row: TokenRow) -> bool:
    return row.principal == principal.name or principal.rights.may(Privilege.MANAGE_MEMBERS, ORGANIZATION)


def _check_reach(principal: Principal, account: str, scope: Scope, lifetime: timedelta | None) -> None:
    """Nobody makes a token that reaches further than the own one."""
    rights = principal.rights
    if account != principal.name:
        require_admin_scope(principal, "manage tokens of others")
    if rights.scope is Scope.READ or _ORDER.index(scope) > _ORDER.index(rights.scope):
        raise AccessError(
            "permission-denied",
            f"A token of scope {rights.scope.value} cannot make or change one of scope {scope.value}.",
        )
    if lifetime is None and not rights.may(Privilege.MANAGE_MEMBERS, ORGANIZATION):
        raise AccessError(
            "permission-denied",
            "A token without an end needs MANAGE_MEMBERS on the organization.",
            hint=f"Give it a lifetime of at most {MOST_DAYS} days.",
        )


def _role_of(account: Account, role: str | None) -> str:
    only = account.roles[0] if len(account.roles) == 1 else None
    chosen = role or account.default_role or only
    if chosen is None:
        raise RequestError(
            "validation", f"Account {account.name} has no default role: name one.", pointer="#/role"
        )
    if chosen not in account.roles:
        raise RequestError("validation", f"Account {account.name} lacks role {chosen}.", pointer="#/role")
    return chosen


def token_of(rows: Sequence[TokenRow], now: datetime) -> Token:
    """A token of its values, oldest first.

    Args:
        rows: at least one.
        now: the time.
    """
    newest = rows[-1]
    used = [row.last_used_at for row in rows if row.last_used_at is not None]
    return Token(
        name=newest.name,
        account=newest.principal,
        role=newest.role,
        scope=Scope(newest.scope),
        created_at=rows[0].created_at,
        created_by=newest.created_by,
        expires_at=newest.expires_at,
        last_used_at=max(used) if used else None,
        values=sum(row.expires_at is None or row.expires_at > now for row in rows),
        comment=newest.comment,
    )
