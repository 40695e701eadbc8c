"""Browsers that an identity provider has signed in: a random value in a cookie, sealed tokens in the catalog.

So every server of a catalog knows a session, no token is in the browser, and a sign-out counts everywhere.
"""

from __future__ import annotations

import hmac
import json
import logging
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from leatstream.errors import AccessError, CatalogError, InternalError, LeatstreamError
from leatstream.ports import Visit
from leatstream.services.environment import Environment, Principal
from leatstream.services.environment.audit import event_of
from leatstream.services.environment.authorization import authenticate
from leatstream.services.nouns.session_renewal import renewed
from leatstream.services.nouns.stored_sessions import (
    PREFIX,
    Session,
    ended,
    find,
    is_over,
    new_value,
    now,
    put,
    reference_of,
)

SIGN_IN_SECONDS = 600  # that a person has at the provider
_BEGUN = "sign-in"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Begun:
    """A sign-in that has begun.

    Attributes:
        address: to which the browser is sent.
        sealed: what the browser keeps until it comes back, unreadable to it.
    """

    address: str = field(repr=False)
    sealed: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A sign-in that went well.

    Attributes:
        value: of the session's cookie.
        wanted: page that the person wanted to see.
    """

    value: str = field(repr=False)
    wanted: str


def begin(env: Environment, redirect_uri: str, wanted: str, before: str | None = None) -> Begun:
    """Begin the sign-in of a browser.

    Args:
        env: the environment.
        redirect_uri: where the provider sends the browser.
        wanted: page that the person wanted to see.
        before: cookie of the session that the new one replaces; on the way back browsers send it seldom.

    Raises:
        CatalogError: not-found, there is no provider for people.
        AccessError: unauthenticated, the provider offers no such sign-in.
        IdentityError: issuer-unreachable.
    """
    address, visit = env.identities.provider().begin(redirect_uri)
    kept = {"wanted": wanted, "at": now(env), "visit": asdict(visit), "before": before}
    envelope = env.secrets.seal(_BEGUN, json.dumps(kept, ensure_ascii=False))
    return Begun(address, urlsafe_b64encode(envelope).decode())


def finish(
    env: Environment, sealed: str, query: Mapping[str, str], request: str | None, address: str | None
) -> SignedIn:
    """End the sign-in of a browser that has come back.

    Args:
        env: the environment.
        sealed: what the browser has kept.
        query: of the redirect.
        request: id of the request.
        address: of the client.

    Raises:
        CatalogError: stale, the redirect is of another sign-in, or came too late.
        AccessError: unauthenticated, the provider refused; permission-denied, no rule gives a role.
        IdentityError: issuer-unreachable.
    """
    kept = _begun(env, sealed)
    visit = Visit(**kept["visit"])
    provider = env.identities.provider()
    if not hmac.compare_digest(query.get("state", "").encode(), visit.state.encode()):
        raise _stale("The redirect carries the state of another sign-in.")
    if query.get("iss", provider.issuer) != provider.issuer:
        raise _stale("The redirect came from another issuer.")
    if "code" not in query:
        raise AccessError("unauthenticated", "The identity provider refused the sign-in.")
    tokens = provider.finish(visit, query["code"])
    principal = authenticate(env, tokens.bearer, request, address)
    who = provider.issuer, principal.name, principal.role
    session = Session(*who, tokens.bearer, tokens.expires_at, tokens.refresh)
    value = new_value(env)
    with env.open_unit() as unit:
        put(env, unit, reference_of(value), session)
        unit.audit.add(event_of(principal, "create", "session", provider.issuer))
        unit.commit()
    if kept["before"] is not None:
        end(env, kept["before"], request, address)
    return SignedIn(value, kept["wanted"])


def authenticate_session(
    env: Environment, value: str, request: str | None = None, address: str | None = None
) -> Principal:
    """The principal of a session, whose token is checked as that of any request.

    Args:
        env: the environment.
        value: of the cookie.
        request: id of the request.
        address: of the client.

    Raises:
        AccessError: unauthenticated, the session has ended; permission-denied, no rule gives a role now.
        IdentityError: issuer-unreachable.
    """
    reference = reference_of(value)
    with env.open_unit(write=False) as unit:
        session = find(env, unit, reference)
    if session is None or is_over(env, value):
        raise ended()
    return authenticate(env, renewed(env, reference, session).token, request, address)


def end(env: Environment, value: str, request: str | None = None, address: str | None = None) -> None:
    """Sign a browser out, and end the sign-in at the provider if it answers; idempotent.

    Args:
        env: the environment.
        value: of the cookie.
        request: id of the request.
        address: of the client.
    """
    try:
        reference = reference_of(value)
    except AccessError:
        return
    with env.open_unit() as unit:
        session = find(env, unit, reference)
        if session is None:
            return
        unit.secrets.delete(reference)
        who = Principal(session.name, session.role, request=request, address=address)
        unit.audit.add(event_of(who, "delete", "session", session.issuer))
        unit.commit()
    if session.refresh is not None:
        try:
            provider = env.identities.provider()
            if provider.issuer == session.issuer:  # another one must not get the token
                provider.revoke(session.refresh)
        except LeatstreamError as error:
            _LOG.warning("the refresh token of a session that was ended stays valid: %s", error.detail)


def forget_ended_sessions(env: Environment) -> None:
    """Delete sessions whose time is over; the server calls it from time to time."""
    until = f"{PREFIX}{int(now(env)):010d}"
    with env.open_unit(write=False) as unit:
        over = [one for one, _ in unit.sealed_values(PREFIX, 1000) if one < until]
    if over:
        with env.open_unit() as unit:
            for reference in over:
                unit.secrets.delete(reference)
            unit.commit()


def _begun(env: Environment, sealed: str) -> dict[str, Any]:
    try:
        kept: dict[str, Any] = json.loads(env.secrets.open(_BEGUN, urlsafe_b64decode(sealed.encode())))
    except (InternalError, ValueError) as error:
        raise _stale("This browser has begun no sign-in.") from error
    if now(env) - kept["at"] > SIGN_IN_SECONDS:
        raise _stale("The sign-in took too long.")
    return kept


def _stale(detail: str) -> CatalogError:
    return CatalogError("stale", detail, hint="Sign in again.")
