"""Browsers that an identity provider has signed in: a random value in a cookie, sealed tokens in the catalog.

So every server of a catalog knows a session, no token is in the browser, and a sign-out counts everywhere.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from leatstream.errors import AccessError, CatalogError, IdentityError, InternalError, LeatstreamError
from leatstream.ports import Tokens, UnitOfWork, Visit
from leatstream.services.environment import Environment, Principal
from leatstream.services.environment.audit import event_of
from leatstream.services.environment.authorization import authenticate

SIGN_IN_SECONDS = 600  # that a person has at the provider
EARLY = 30.0  # seconds before its end in which a token is renewed
_PREFIX = "session/"
_RENEWAL_SECONDS = 20.0  # after which a renewal that reports nothing counts as failed
_LOOK = 0.1
_BEGUN = "sign-in"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Session:
    """What the catalog has of a session, sealed.

    Attributes:
        name: of the principal.
        role: that it signed in with.
        token: that the server accepts.
        expires_at: when the token ends, seconds since 1970.
        refresh: gets the next token.
        renewing_until: somebody renews the token until then at the latest; 0 = nobody.
    """

    name: str
    role: str
    token: str
    expires_at: float
    refresh: str | None = None
    renewing_until: float = 0.0


@dataclass(frozen=True, slots=True)
class Begun:
    """A sign-in that has begun.

    Attributes:
        address: to which the browser is sent.
        sealed: what the browser keeps until it comes back, unreadable to it.
    """

    address: str
    sealed: str


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A sign-in that went well.

    Attributes:
        value: of the session's cookie.
        wanted: page that the person wanted to see.
    """

    value: str
    wanted: str


def begin(env: Environment, redirect_uri: str, wanted: str) -> Begun:
    """Begin the sign-in of a browser.

    Args:
        env: the environment.
        redirect_uri: where the provider sends the browser.
        wanted: page that the person wanted to see.

    Raises:
        CatalogError: not-found, there is no provider for people.
        AccessError: unauthenticated, the provider offers no such sign-in.
        IdentityError: issuer-unreachable.
    """
    visit = env.identities.provider().begin(redirect_uri)
    kept = {"wanted": wanted, "at": _now(env), "visit": asdict(visit)}
    envelope = env.secrets.seal(_BEGUN, json.dumps(kept))
    return Begun(visit.address, urlsafe_b64encode(envelope).decode())


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
        AccessError: unauthenticated, the redirect is of another sign-in, or the provider refused;
            permission-denied, no rule gives a role.
        IdentityError: issuer-unreachable.
    """
    visit, wanted = _begun(env, sealed)
    provider = env.identities.provider()
    if not hmac.compare_digest(query.get("state", "").encode(), visit.state.encode()):
        raise _stale("The redirect carries the state of another sign-in.")
    if query.get("iss", provider.issuer) != provider.issuer:
        raise _stale("The redirect came from another issuer.")
    if "code" not in query:
        raise AccessError("unauthenticated", "The identity provider refused the sign-in.")
    tokens = provider.finish(visit, query["code"])
    principal = authenticate(env, tokens.bearer, request, address)
    session = Session(principal.name, principal.role, tokens.bearer, tokens.expires_at, tokens.refresh)
    value = f"{int(_now(env) + env.settings.session_seconds)}.{secrets.token_urlsafe(32)}"
    with env.open_unit() as unit:
        _put(env, unit, _reference(value), session)
        unit.audit.add(event_of(principal, "create", "session", provider.issuer))
        unit.commit()
    return SignedIn(value, wanted)


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
    reference = _reference(value)
    with env.open_unit(write=False) as unit:
        session = _find(env, unit, reference)
    if session is None or float(value.partition(".")[0]) <= _now(env):
        raise _ended()
    if session.expires_at - EARLY <= _now(env):
        session = _renewed(env, reference, session)
    return authenticate(env, session.token, request, address)


def end(env: Environment, value: str, request: str | None = None, address: str | None = None) -> None:
    """Sign a browser out, and end the sign-in at the provider if it answers; idempotent.

    Args:
        env: the environment.
        value: of the cookie.
        request: id of the request.
        address: of the client.
    """
    try:
        reference = _reference(value)
    except AccessError:
        return
    with env.open_unit() as unit:
        session = _find(env, unit, reference)
        if session is None:
            return
        unit.secrets.delete(reference)
        who = Principal(session.name, session.role, request=request, address=address)
        unit.audit.add(event_of(who, "delete", "session", session.name.partition("#")[0]))
        unit.commit()
    if session.refresh is not None:
        try:
            env.identities.provider().revoke(session.refresh)
        except LeatstreamError as error:
            _LOG.warning("the refresh token of a session that was ended stays valid: %s", error.detail)


def forget_ended_sessions(env: Environment) -> None:
    """Delete sessions whose time is over; the server calls it from time to time."""
    until = f"{_PREFIX}{int(_now(env)):010d}"
    with env.open_unit(write=False) as unit:
        ended = [one for one, _ in unit.sealed_values(_PREFIX, 1000) if one < until]
    if ended:
        with env.open_unit() as unit:
            for reference in ended:
                unit.secrets.delete(reference)
            unit.commit()


def _renewed(env: Environment, reference: str, session: Session) -> Session:
    """The session with a token that has not ended; one request renews it, on whatever server."""
    deadline = time.monotonic() + _RENEWAL_SECONDS
    while True:
        now = _now(env)
        if session.refresh is None or session.renewing_until > now:
            if session.expires_at > now:
                return session
            if session.refresh is None:
                raise _ended()
        else:
            claimed = _claim(env, reference, session)
            if claimed is not None:
                return _with_next_token(env, reference, claimed)
        if time.monotonic() > deadline:
            raise IdentityError(
                "issuer-unreachable", "The sign-in is not renewed in time.", hint="Try again."
            )
        time.sleep(_LOOK)
        with env.open_unit(write=False) as unit:
            found = _find(env, unit, reference)
        if found is None:
            raise _ended()
        if found.expires_at - EARLY > _now(env):
            return found
        session = found


def _claim(env: Environment, reference: str, seen: Session) -> Session | None:
    """Note that this request renews the session, as a refresh token serves once; None if another one does."""
    with env.open_unit() as unit:
        if _find(env, unit, reference) != seen:
            return None
        claimed = replace(seen, renewing_until=_now(env) + _RENEWAL_SECONDS)
        _put(env, unit, reference, claimed)
        unit.commit()
    return claimed


def _with_next_token(env: Environment, reference: str, session: Session) -> Session:
    try:
        tokens = _next(env, session)
        renewed = Session(session.name, session.role, tokens.bearer, tokens.expires_at, tokens.refresh)
    except IdentityError:
        renewed = replace(session, renewing_until=0.0)
        _replace(env, reference, renewed)
        if session.expires_at > _now(env):
            return renewed  # the token still counts
        raise
    except AccessError as error:
        _replace(env, reference, None)
        if error.code == "permission-denied":
            raise
        raise _ended() from error
    _replace(env, reference, renewed)
    return renewed


def _next(env: Environment, session: Session) -> Tokens:
    tokens = env.identities.provider().refreshed(session.refresh or "")
    if env.identities.identify(tokens.bearer).name != session.name:
        raise AccessError("unauthenticated", "The identity provider gave a token of another account.")
    return tokens


def _replace(env: Environment, reference: str, session: Session | None) -> None:
    """Keep a session's new state, unless it was ended meanwhile; None deletes it."""
    with env.open_unit() as unit:
        if unit.secrets.find(reference) is None:
            raise _ended()
        if session is None:
            unit.secrets.delete(reference)
        else:
            _put(env, unit, reference, session)
        unit.commit()


def _reference(value: str) -> str:
    """Where the catalog has a session: by its end, so that ended ones are found, and by the value's hash."""
    ends, _, secret = value.partition(".")
    if not (ends.isascii() and ends.isdecimal() and len(ends) == 10 and secret):
        raise _ended()
    return f"{_PREFIX}{ends}/{hashlib.sha256(secret.encode()).hexdigest()}"


def _put(env: Environment, unit: UnitOfWork, reference: str, session: Session) -> None:
    unit.secrets.put(reference, env.secrets.seal(reference, json.dumps(asdict(session))))


def _find(env: Environment, unit: UnitOfWork, reference: str) -> Session | None:
    envelope = unit.secrets.find(reference)
    if envelope is None:
        return None
    with suppress(InternalError):  # of a key that was removed
        return Session(**json.loads(env.secrets.open(reference, envelope)))
    return None


def _begun(env: Environment, sealed: str) -> tuple[Visit, str]:
    try:
        kept = json.loads(env.secrets.open(_BEGUN, urlsafe_b64decode(sealed.encode())))
    except (InternalError, ValueError) as error:
        raise _stale("This browser has begun no sign-in.") from error
    if not 0 <= _now(env) - kept["at"] <= SIGN_IN_SECONDS:
        raise _stale("The sign-in took too long.")
    return Visit(**kept["visit"]), kept["wanted"]


def _now(env: Environment) -> float:
    return env.clock.now().timestamp()


def _stale(detail: str) -> CatalogError:
    return CatalogError("stale", detail, hint="Sign in again.")


def _ended() -> AccessError:
    return AccessError("unauthenticated", "The session has ended.", hint="Sign in again.")
