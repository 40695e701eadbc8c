"""Sessions of browsers as the catalog has them: sealed, under their end and a hash of the cookie's value."""

from __future__ import annotations

import hashlib
import json
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, field

from leatstream.errors import AccessError, InternalError
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment

PREFIX = "session/"


@dataclass(frozen=True, slots=True)
class Session:
    """What the catalog has of a session.

    Attributes:
        issuer: identity provider that has signed the browser in.
        name: of the principal.
        role: that it signed in with.
        token: that the server accepts.
        expires_at: when the token ends, seconds since 1970.
        refresh: gets the next token.
        renewing_until: somebody renews the token until then at the latest; 0 = nobody.
    """

    issuer: str
    name: str
    role: str
    token: str = field(repr=False)
    expires_at: float
    refresh: str | None = field(default=None, repr=False)
    renewing_until: float = 0.0


def new_value(env: Environment) -> str:
    """A value for the cookie of a session that begins now."""
    return f"{int(now(env) + env.settings.session_seconds)}.{secrets.token_urlsafe(32)}"


def is_over(env: Environment, value: str) -> bool:
    """Whether the longest time of a session is over; the value is one that has a reference."""
    return int(value.partition(".")[0]) <= now(env)


def reference_of(value: str) -> str:
    """Where the catalog has a session: by its end, so that ended ones are found, and by the value's hash.

    Raises:
        AccessError: unauthenticated, it is no value of a session.
    """
    ends, _, secret = value.partition(".")
    if not (ends.isascii() and ends.isdecimal() and len(ends) == 10 and secret):
        raise ended()
    return f"{PREFIX}{ends}/{hashlib.sha256(secret.encode()).hexdigest()}"


def put(env: Environment, unit: UnitOfWork, reference: str, session: Session) -> None:
    """Keep a session.

    Args:
        env: the environment.
        unit: an open unit.
        reference: of the session.
        session: what is kept.
    """
    unit.secrets.put(reference, env.secrets.seal(reference, json.dumps(asdict(session))))


def find(env: Environment, unit: UnitOfWork, reference: str) -> Session | None:
    """The session; None without one that can be read.

    Args:
        env: the environment.
        unit: an open unit.
        reference: of the session.
    """
    envelope = unit.secrets.find(reference)
    if envelope is None:
        return None
    with suppress(InternalError):  # of a key that was removed
        return Session(**json.loads(env.secrets.open(reference, envelope)))
    return None


def now(env: Environment) -> float:
    """Seconds since 1970."""
    return env.clock.now().timestamp()


def ended() -> AccessError:
    """There is no such session any more."""
    return AccessError("unauthenticated", "The session has ended.", hint="Sign in again.")
