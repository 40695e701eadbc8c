"""Invitations: who may become a user in which roles, by a link that counts once or by sign-in."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from leatstream.errors import AccessError, LeatstreamError, RequestError, already_exists, not_found
from leatstream.model.access import (
    ORGANIZATION,
    Invitation,
    Privilege,
    Scope,
    TokenRow,
    mail_address,
)
from leatstream.model.names import quote
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Page, Principal, new_meta
from leatstream.services.environment.audit import event_of
from leatstream.services.environment.authorization import hash_token, mint_token
from leatstream.services.environment.invited import admit
from leatstream.services.environment.pages import ANY, Only, make_page
from leatstream.services.nouns.accounts import require_manager
from leatstream.services.nouns.audit import note_refused_sign_in
from leatstream.services.nouns.grants import refuse_more_rights
from leatstream.services.nouns.roles import refuse_unknown_roles
from leatstream.services.nouns.tokens import DEFAULT_DAYS, Token, token_of

DAYS, MOST_DAYS = 7, 30
PATH = "/v1/invitations:accept"
_PREFIX = "leatinv"
_PAGE = "/ui/invitation#"


def create_invitation(
    env: Environment,
    principal: Principal,
    mail: str,
    roles: Sequence[str],
    default_role: str | None = None,
    scope: Scope = Scope.WRITE,
    lifetime: timedelta = timedelta(days=DAYS),
    comment: str | None = None,
) -> tuple[Invitation, str]:
    """Invite a person; the value of the link is given once.

    Args:
        env: the environment.
        principal: who asks; needs MANAGE_MEMBERS, and may give no role that has more rights than its own.
        mail: address, which becomes the user's name.
        roles: that the user may act in, at least one.
        default_role: one of them; None = the only one.
        scope: of the tokens that the invitation gives.
        lifetime: until the invitation ends.
        comment: free text, of the user.

    Returns:
        The invitation and its value.

    Raises:
        AccessError: permission-denied.
        RequestError: validation.
        CatalogError: already-exists, a user or an open invitation.
    """
    require_manager(principal)
    address = _checked(mail)
    held = tuple(dict.fromkeys(roles))
    default = _default_of(held, default_role)
    value, public, hashed = mint_token(_PREFIX)
    now = env.clock.now()
    with env.open_unit() as unit:
        account = unit.accounts.find(address)
        if account is not None:
            raise already_exists(account.kind.value, quote(address))
        old = unit.invitations.find(address)
        if old is not None and old.expires_at > now:
            hint = f"DROP INVITATION {quote(address)} ends it; then invite again."
            raise already_exists("invitation", quote(address), hint=hint)
        refuse_unknown_roles(unit, held)
        for role in held:
            refuse_more_rights(unit, principal, role)
        if old is not None:
            unit.invitations.delete(old.meta.id)
        made = Invitation(
            meta=replace(new_meta("inv", principal, now), id=_id_of(public)),
            mail=address,
            hash=hashed,
            roles=held,
            default_role=default,
            scope=scope,
            expires_at=now + lifetime,
            comment=comment,
        )
        unit.invitations.add(made)
        unit.commit()
    return made, value


def link_of(env: Environment, value: str) -> str | None:
    """The address of the page that takes an invitation; None if the server does not know its own address.

    Args:
        env: the environment.
        value: of the invitation. Behind the ``#``, where browsers keep it from servers and their logs.
    """
    return f"{env.settings.public_url}{_PAGE}{value}" if env.settings.public_url else None


def get_invitation(env: Environment, principal: Principal, mail: str) -> Invitation:
    """An invitation without its value; CatalogError not-found.

    Args:
        env: the environment.
        principal: who asks.
        mail: address.
    """
    with env.open_unit(write=False) as unit:
        return _require(unit, principal, mail)


def list_invitations(
    env: Environment,
    principal: Principal,
    page_size: int = 100,
    page_token: str | None = None,
    only: Only = ANY,
) -> Page[Invitation]:
    """One page of invitations by address, ended ones among them; none for those who manage no members.

    Args:
        env: the environment.
        principal: who asks.
        page_size: invitations per page, at least 1.
        page_token: of the page before; None = the first.
        only: what the list is narrowed to.
    """
    found: Sequence[Invitation] = ()
    if _manages(principal):
        with env.open_unit(write=False) as unit:
            found = unit.invitations.page(limit=100_000)
    return make_page(
        lambda after, limit: [i for i in found if i.mail > after][:limit],
        lambda i: i.mail,
        "invitations",
        page_size,
        page_token,
        only,
    )


def delete_invitation(env: Environment, principal: Principal, mail: str) -> None:
    """Withdraw an invitation: from now on no server accepts its link.

    Args:
        env: the environment.
        principal: who asks; needs MANAGE_MEMBERS.
        mail: address.

    Raises:
        AccessError: permission-denied.
        CatalogError: not-found.
    """
    require_manager(principal)
    with env.open_unit() as unit:
        found = _require(unit, principal, mail)
        for role in found.roles:
            refuse_more_rights(unit, principal, role)
        unit.invitations.delete(found.meta.id)
        unit.commit()


def accept_invitation(env: Environment, value: str, who: Principal) -> tuple[Token, str]:
    """Take an invitation by the value of its link: makes the user and the first token.

    Args:
        env: the environment.
        value: of the link.
        who: request and address of the caller, who is nobody yet.

    Returns:
        The token and its value.

    Raises:
        AccessError: unauthenticated, no open invitation has the value; permission-denied, it cannot be taken.
    """
    try:
        return _accept(env, value, who)
    except LeatstreamError as error:
        if isinstance(error, AccessError):
            note_refused_sign_in(env, who, "POST", PATH, error)
        raise


def _accept(env: Environment, value: str, who: Principal) -> tuple[Token, str]:
    now, parts = env.clock.now(), value.split("_")
    object_id = _id_of(parts[1]) if len(parts) == 3 and parts[0] == _PREFIX else ""
    with env.open_unit(write=False) as unit:  # who only guesses makes nobody wait
        if not _is_value_of(unit.invitations.find_by_id(object_id), value):
            raise _unknown()
    with env.open_unit() as unit:
        found = unit.invitations.find_by_id(object_id)
        if found is None or not _is_value_of(found, value) or found.expires_at <= now:
            raise _unknown()
        token, token_id, token_hash = mint_token()
        person = replace(who, name=found.mail, role=found.default_role, token=token_id)
        admit(env, unit, found, person)
        row = TokenRow(
            id=token_id,
            hash=token_hash,
            name=found.mail if not unit.tokens.list(found.mail) else f"{found.mail} {token_id}",
            principal=found.mail,
            role=found.default_role,
            scope=found.scope,
            created_at=now,
            created_by=found.mail,
            expires_at=now + timedelta(days=DEFAULT_DAYS),
        )
        unit.tokens.add(row)
        unit.audit.add(event_of(person, "create", "token", row.name))
        unit.commit()
    return token_of([row], now), token


def _is_value_of(found: Invitation | None, value: str) -> bool:
    return found is not None and hmac.compare_digest(found.hash, hash_token(value))


def _unknown() -> AccessError:
    return AccessError(
        "unauthenticated",
        "The invitation was taken or withdrawn, has ended, or its link is mistyped.",
        hint="Ask who invited you for a new link.",
    )


def _id_of(public: str) -> str:
    return f"inv_{public}"


def _checked(mail: str) -> str:
    found = mail_address(mail)
    if found is None:
        raise RequestError(
            "validation",
            "An invitation is for a mail address, such as ann@example.com.",
            hint="A user without one is made by CREATE USER.",
        )
    return found


def _default_of(held: Sequence[str], default_role: str | None) -> str:
    if not held:
        hint = "Name the roles that the user may act in."
        raise RequestError(
            "validation", "An invitation gives at least one role.", pointer="#/roles", hint=hint
        )
    if default_role is None and len(held) > 1:
        detail = f"Of {len(held)} roles one is the default role."
        raise RequestError("validation", detail, pointer="#/default_role", hint="Name the default role.")
    if default_role is not None and default_role not in held:
        detail = f"Default role {default_role} is none of the invitation's."
        raise RequestError("validation", detail, pointer="#/default_role")
    return default_role or held[0]


def _manages(principal: Principal) -> bool:
    return principal.rights.may(Privilege.MANAGE_MEMBERS, ORGANIZATION)


def _require(unit: UnitOfWork, principal: Principal, mail: str) -> Invitation:
    found = unit.invitations.find(mail.lower()) if _manages(principal) else None
    if found is None:
        raise not_found("invitation", quote(mail.lower()))
    return found
