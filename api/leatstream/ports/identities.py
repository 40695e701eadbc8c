"""Identity providers whose tokens are accepted besides the server's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from leatstream.model.access import Scope


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a verified token stands for.

    Attributes:
        name: of the principal: ``issuer#subject``.
        role: that the configuration gives to the token's claims; it may not exist.
        scope: how far the token reaches.
        token: the token's id at its issuer, for the audit log; None if it has none.
    """

    name: str
    role: str
    scope: Scope
    token: str | None = None


@dataclass(frozen=True, slots=True)
class SignIn:
    """Where people sign in.

    Attributes:
        issuer: URL of the identity provider.
        client_id: of the command line, a public client.
        audience: that a token for this server has.
        scopes: that the command line asks for.
    """

    issuer: str
    client_id: str
    audience: str
    scopes: tuple[str, ...]


class Identities(Protocol):
    """Verifies the tokens of identity providers."""

    def identify(self, token: str) -> Identity:
        """Who a JWT stands for.

        Raises:
            AccessError: unauthenticated, the token is not valid; permission-denied, no rule gives it a role.
            IdentityError: issuer-unreachable, its keys cannot be had now.
        """
        ...

    def for_people(self) -> SignIn | None:
        """Where people sign in; None if there is no such issuer."""
        ...
