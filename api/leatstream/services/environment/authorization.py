"""Who may do what. Every service function asks here first."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import zlib
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from leatstream.errors import AccessError, CatalogAway, CatalogBusy, CatalogFull, Refused
from leatstream.model.access import (
    BUILT_IN,
    ORGANIZATION,
    LinkedIdentity,
    Privilege,
    Role,
    Scope,
    TokenRow,
    with_included,
)
from leatstream.model.names import quote
from leatstream.ports import Identity, UnitOfWork
from leatstream.services.environment import Environment, Principal
from leatstream.services.environment.invited import is_invited, take_by_sign_in
from leatstream.services.environment.rights import Rights, built_in_rights, rights_of

READ = "read"
WRITE = "write"
OPERATE = "operate"

_PREFIX = "leat"
_ID_LENGTH = 8
ADMINISTRATOR = "admin"  # of the token that the first start makes
_NOTE_USE = timedelta(hours=1)
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
# The rights of roles, by the version of all roles that they were read at: thousands of grants take long.
_KNOWN: dict[tuple[str, Scope], tuple[tuple[object, ...], Rights]] = {}
_MOST_KNOWN = 1000


def authorize(principal: Principal, privilege: str, noun: str, name: str = "") -> None:
    """Let the principal pass or raise: whether its token and role can do such a thing at all.

    What a role with grants may do with one object, the unit of work answers (``visible.py``).

    Args:
        principal: who asks.
        privilege: ``read``, ``write`` or ``operate`` (start, stop, restart).
        noun: kind of object, for the message.
        name: the object's name, for the message.

    Raises:
        AccessError: ``permission-denied``.
    """
    rights, target = principal.rights, f"{noun} {name}".strip()
    if privilege != READ and rights.scope is Scope.READ:
        raise AccessError(
            "permission-denied",
            f"The token has the scope read, so it may not {privilege} {target}.",
            hint="Use a token with the scope write.",
        )
    if rights.everything or privilege == READ or not rights.looks_only(principal.role):
        return
    raise AccessError(
        "permission-denied",
        f"Role {principal.role} may not {privilege} {target}.",
        hint="Use a token of a role with this privilege.",
    )


def require(principal: Principal, privilege: Privilege, doing: str) -> None:
    """Let the principal pass if it holds a privilege on the organization.

    Args:
        principal: who asks.
        privilege: such as ``MANAGE_MEMBERS``.
        doing: what it is needed for, for the message: ``manage users``.

    Raises:
        AccessError: ``permission-denied``.
    """
    rights = principal.rights
    if not rights.may(privilege, ORGANIZATION):
        raise AccessError(
            "permission-denied",
            f"Role {principal.role} may not {doing}: it lacks {privilege.value.upper()} on the organization.",
            hint=f"An orgadmin can run GRANT {privilege.value.upper()} ON ORGANIZATION "
            f"TO ROLE {quote(principal.role)}.",
        )


def require_admin_scope(principal: Principal, doing: str) -> None:
    """AccessError unless the token may manage access.

    Args:
        principal: who asks.
        doing: what for, for the message: ``manage users``.
    """
    if principal.rights.scope is not Scope.ADMIN:
        raise AccessError(
            "permission-denied",
            f"The token has the scope {principal.rights.scope.value}, so it may not {doing}.",
            hint="Use a token with the scope admin.",
        )


def mint_token(prefix: str = _PREFIX) -> tuple[str, str, str]:
    """Make an API token, or another secret of its form: ``leat_<id>_<secret><crc32>``.

    Returns:
        The token (shown once), its id, and the SHA-256 that is stored.
    """
    token_id = secrets.token_hex(_ID_LENGTH // 2)
    body = f"{prefix}_{token_id}_{secrets.token_hex(24)}"
    token = f"{body}{zlib.crc32(body.encode()):08x}"
    return token, token_id, hash_token(token)


def hash_token(token: str) -> str:
    """What is stored of a token. 192 random bits need no slow hash."""
    return hashlib.sha256(token.encode()).hexdigest()


def well_formed(token: str) -> bool:
    """Whether prefix and checksum fit; a mistyped token is refused without asking the catalog."""
    body, check = token[:-8], token[-8:]
    return body.startswith(f"{_PREFIX}_") and hmac.compare_digest(f"{zlib.crc32(body.encode()):08x}", check)


def is_of_issuer(token: str) -> bool:
    """Whether a bearer token is a JWT of an identity provider rather than one of this server's own."""
    return token.count(".") == 2 and not token.startswith(f"{_PREFIX}_")


def authenticate(
    env: Environment, token: str, request: str | None = None, address: str | None = None
) -> Principal:
    """The principal of a bearer token.

    Args:
        env: the environment.
        token: as it was sent.
        request: id of the request.
        address: of the client.

    Raises:
        AccessError: ``unauthenticated``; the text does not tell which part of an API token was wrong.
        IdentityError: issuer-unreachable, a JWT cannot be verified now.
    """
    if is_of_issuer(token):
        return _of_issuer(env, token, request, address)
    row, found, refused = None, None, Refused(reason="The token is mistyped, or none of this server.")
    if token.isascii() and well_formed(token):
        with env.open_unit(write=False) as unit:
            row = unit.find_token(hash_token(token))
            found = principal_of(unit, row, request, address) if row is not None else None
            refused = _why(unit, token, row) if found is None else refused
    if row is None or found is None:
        raise AccessError(
            "unauthenticated",
            "The bearer token is missing, mistyped or no longer valid.",
            hint="Send 'Authorization: Bearer leat_…'; `leat dev` prints where its token is.",
        ).noted_as(refused)
    _note_use(env, row)
    return found


def _why(unit: UnitOfWork, token: str, live: TokenRow | None) -> Refused:
    """What the audit log has of a token that is not accepted. Its id is no secret."""
    row = live or unit.tokens.find(hash_token(token), _EARLIEST)
    if row is None:
        token_id = token.split("_")[1][:_ID_LENGTH]  # anybody can write more there
        return Refused(token=token_id, reason="The token was revoked, or is none of this server.")
    reason = "The token has expired." if live is None else "The token's account is disabled or was deleted."
    return Refused(row.principal, row.role, row.id, reason)


def _of_issuer(env: Environment, token: str, request: str | None, address: str | None) -> Principal:
    found = env.identities.identify(token)
    with env.open_unit(write=False) as unit:
        if unit.accounts.find(found.name) is not None:
            # ``put_account`` gives no such name; a catalog from elsewhere may hold one.
            raise AccessError("permission-denied", f"A local account has the name {found.name}.")
        if found.role is None:
            linked = unit.linked_identities.find(found.name)
            if linked is None and not is_invited(unit, found, env.clock.now()):
                raise _no_rule(found)
        elif found.role not in BUILT_IN and unit.roles.find(found.role) is None:
            raise AccessError(
                "permission-denied",
                f"Role {quote(found.role)}, which the token's claims give, does not exist.",
                hint=f"Run CREATE ROLE {quote(found.role)}, or change the rule in LEATSTREAM_OIDC.",
            ).noted_as(Refused(found.name, found.role, found.token))
        else:
            rights = rights_in(unit, found.role, found.scope)
            return Principal(found.name, found.role, rights, found.token, request, address, bound=True)
    if linked is None:
        linked = take_by_sign_in(env, found, request, address)
    with env.open_unit(write=False) as unit:
        return _of_account(unit, linked, found, request, address)


def _of_account(
    unit: UnitOfWork, linked: LinkedIdentity, found: Identity, request: str | None, address: str | None
) -> Principal:
    """The principal of a person whom an invitation made a user."""
    account = unit.accounts.find(linked.account)
    if account is None or account.disabled:
        raise AccessError(
            "unauthenticated",
            f"The account {quote(linked.account)} is disabled.",
            hint="Ask an account manager to enable it.",
        ).noted_as(Refused(linked.account, token=found.token))
    role = account.default_role or (account.roles[0] if len(account.roles) == 1 else None)
    if role is None:
        raise AccessError(
            "permission-denied",
            f"The account {quote(account.name)} has no default role.",
            hint="Ask an account manager to set one of its roles as the default role.",
        ).noted_as(Refused(account.name, token=found.token))
    rights = rights_in(unit, role, linked.scope)
    return Principal(account.name, role, rights, found.token, request, address)


def name_of_token(env: Environment, token: str) -> str:
    """The name of the principal of a JWT.

    Raises:
        AccessError: unauthenticated; permission-denied, neither a rule nor an account gives it a role.
        IdentityError: issuer-unreachable.
    """
    found = env.identities.identify(token)
    if found.role is not None:
        return found.name
    with env.open_unit(write=False) as unit:
        linked = unit.linked_identities.find(found.name)
    if linked is None:
        raise _no_rule(found)
    return linked.account


def _no_rule(found: Identity) -> AccessError:
    return AccessError(
        "permission-denied",
        f"No rule for issuer {found.name.partition('#')[0]} gives a role to {found.name}.",
        hint="Add a rule that fits a claim of the token to LEATSTREAM_OIDC, and restart the server. "
        "Or run INVITE USER with the mail address that the issuer has verified.",
    ).noted_as(Refused(found.name))


def principal_of(
    unit: UnitOfWork, row: TokenRow, request: str | None = None, address: str | None = None
) -> Principal | None:
    """Who a token stands for, with the rights of this moment; None if its account is gone or disabled.

    Args:
        unit: an open unit.
        row: the token.
        request: id of the request.
        address: of the client.

    Raises:
        AccessError: permission-denied, the account no longer has the token's role.
    """
    if row.principal == ADMINISTRATOR:
        # Everything is its to do; what it makes belongs to sysadmin, as it does for every administrator.
        return Principal(row.principal, row.role, built_in_rights("orgadmin"), row.id, request, address)
    account = unit.accounts.find(row.principal)
    if account is None or account.disabled:
        return None
    if row.role not in account.roles:
        raise AccessError(
            "permission-denied",
            f"{quote(account.name)} no longer has role {quote(row.role)}, for which the token was made.",
            hint=f"Make a new token, or: GRANT ROLE {quote(row.role)} TO …",
        ).noted_as(Refused(account.name, row.role, row.id))
    rights = rights_in(unit, row.role, Scope(row.scope))
    return Principal(row.principal, row.role, rights, row.id, request, address, bound=True)


def rights_in(unit: UnitOfWork, role: str, scope: Scope = Scope.ADMIN) -> Rights:
    """The rights of a role, with what it inherits, as they are now.

    Args:
        unit: an open unit.
        role: its name.
        scope: of the token.
    """
    version = unit.roles.version() if hasattr(unit.roles, "version") else None
    known = _KNOWN.get((role, scope))
    if known is not None and known[0] == version:
        return known[1]
    found: dict[str, Role | None] = {}
    waiting = [role, "public"]
    while waiting:
        for one in with_included(waiting.pop()):
            if one not in found:
                stored = unit.roles.find(one)
                found[one] = stored
                waiting += stored.inherits if stored is not None else ()
    grants = [grant for one in found.values() if one is not None for grant in one.grants]
    rights = rights_of(found, grants, scope)
    if version is not None:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[role, scope] = (version, rights)
    return rights


def _note_use(env: Environment, row: TokenRow) -> None:
    now = env.clock.now()
    if row.principal == ADMINISTRATOR or (row.last_used_at and now - row.last_used_at < _NOTE_USE):
        return
    # Nobody waits for the note, and nobody is refused because the catalog is full or busy.
    with suppress(CatalogBusy, CatalogFull, CatalogAway), env.open_unit() as unit:
        unit.tokens.note_use(row.id, now)
        unit.commit()
