"""Who may do what. Every service function asks here first."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import zlib

from leatstream.errors import AccessError
from leatstream.services.environment import Environment, Principal

READ = "read"
WRITE = "write"
OPERATE = "operate"

# Two built-in roles until grants exist: one that may do everything, one that may only look.
_PRIVILEGES = {"sysadmin": {READ, WRITE, OPERATE}, "reader": {READ}}
_PREFIX = "leat"


def authorize(principal: Principal, privilege: str, noun: str, name: str = "") -> None:
    """Let the principal pass or raise.

    Args:
        principal: who asks.
        privilege: ``read``, ``write`` or ``operate`` (start, stop, restart).
        noun: kind of object, for the message.
        name: the object's name, for the message.

    Raises:
        AccessError: ``permission-denied``.
    """
    if privilege not in _PRIVILEGES.get(principal.role, set()):
        target = f"{noun} {name}".strip()
        raise AccessError(
            "permission-denied",
            f"Role {principal.role} may not {privilege} {target}.",
            hint="Use a token of a role with this privilege.",
        )


def mint_token() -> tuple[str, str, str]:
    """Make an API token: ``leat_<id>_<secret><crc32>``.

    Returns:
        The token (shown once), its id, and the SHA-256 that is stored.
    """
    token_id = secrets.token_hex(4)
    body = f"{_PREFIX}_{token_id}_{secrets.token_hex(24)}"
    token = f"{body}{zlib.crc32(body.encode()):08x}"
    return token, token_id, hash_token(token)


def hash_token(token: str) -> str:
    """What is stored of a token. 192 random bits need no slow hash."""
    return hashlib.sha256(token.encode()).hexdigest()


def well_formed(token: str) -> bool:
    """Whether prefix and checksum fit; a mistyped token is refused without asking the catalog."""
    body, check = token[:-8], token[-8:]
    return body.startswith(f"{_PREFIX}_") and hmac.compare_digest(f"{zlib.crc32(body.encode()):08x}", check)


def authenticate(env: Environment, token: str) -> Principal:
    """The principal of a bearer token.

    Raises:
        AccessError: ``unauthenticated``; the text does not tell which part was wrong.
    """
    found = None
    if token.isascii() and well_formed(token):
        with env.open_unit(write=False) as unit:
            found = unit.find_token(hash_token(token))
    if found is None:
        raise AccessError(
            "unauthenticated",
            "The bearer token is missing, mistyped or no longer valid.",
            hint="Send 'Authorization: Bearer leat_…'; `leat dev` prints where its token is.",
        )
    return Principal(*found)
