"""The next token of a session: one request gets it, on whatever server, as a refresh token may serve once."""

from __future__ import annotations

import time
from dataclasses import replace

from leatstream.errors import AccessError, CatalogError, IdentityError, Refused
from leatstream.services.environment import Environment
from leatstream.services.environment.authorization import name_of_token
from leatstream.services.nouns.stored_sessions import Session, ended, find, now, put

EARLY = 30.0  # seconds before its end in which a token is renewed
# More than a renewal can take by the time limits of its calls: a second one would use the same refresh token.
_CLAIM_SECONDS = 120.0
_PATIENCE_SECONDS = 20.0
_LOOK = 0.1


def renewed(env: Environment, reference: str, session: Session) -> Session:
    """The session with a token that has not ended.

    Args:
        env: the environment.
        reference: of the session.
        session: as it was read.

    Raises:
        AccessError: unauthenticated, the session has ended; permission-denied, no rule gives a role now.
        IdentityError: issuer-unreachable.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while session.expires_at - EARLY <= now(env):
        if session.refresh is None or session.renewing_until > now(env):
            if session.expires_at > now(env):
                return session
            if session.refresh is None:
                raise ended()
        elif (claimed := _claim(env, reference, session)) is not None:
            return _with_next_token(env, reference, claimed)
        if time.monotonic() > deadline:
            detail = "The sign-in is not renewed in time."
            raise IdentityError("issuer-unreachable", detail, hint="Try again.")
        time.sleep(_LOOK)
        session = _look(env, reference)
    return session


def _look(env: Environment, reference: str) -> Session:
    with env.open_unit(write=False) as unit:
        found = find(env, unit, reference)
    if found is None:
        raise ended()
    return found


def _claim(env: Environment, reference: str, seen: Session) -> Session | None:
    """Note that this request renews the session; None if another one does."""
    claimed = replace(seen, renewing_until=now(env) + _CLAIM_SECONDS)
    return claimed if _replace(env, reference, seen, claimed) else None


def _with_next_token(env: Environment, reference: str, claimed: Session) -> Session:
    try:
        found = _next(env, claimed)
    except IdentityError:
        found = replace(claimed, renewing_until=0.0)
        _replace(env, reference, claimed, found)
        if found.expires_at > now(env):
            return found  # the token still counts
        raise
    except (AccessError, CatalogError) as error:
        _replace(env, reference, claimed, None)
        if error.code == "permission-denied":
            raise
        raise ended().noted_as(Refused(claimed.name, claimed.role, reason=error.detail)) from error
    _replace(env, reference, claimed, found)
    return found


def _next(env: Environment, session: Session) -> Session:
    provider = env.identities.provider()
    if provider.issuer != session.issuer:  # which must not get a refresh token of another one
        raise ended()
    tokens = provider.refreshed(session.refresh or "")
    if name_of_token(env, tokens.bearer) != session.name:
        raise AccessError("unauthenticated", "The identity provider gave a token of another account.")
    return replace(
        session,
        token=tokens.bearer,
        expires_at=tokens.expires_at,
        refresh=tokens.refresh,
        renewing_until=0.0,
    )


def _replace(env: Environment, reference: str, seen: Session, session: Session | None) -> bool:
    """Keep a session's new state, None deletes it; False if it is no longer the one that was seen.

    Args:
        env: the environment.
        reference: of the session.
        seen: its state before.
        session: its new state.

    Raises:
        AccessError: unauthenticated, the session was ended meanwhile.
    """
    with env.open_unit() as unit:
        found = find(env, unit, reference)
        if found is None:
            raise ended()
        if found != seen:
            return False
        if session is None:
            unit.secrets.delete(reference)
        else:
            put(env, unit, reference, session)
        unit.commit()
    return True
