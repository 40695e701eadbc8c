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
        role: that the configuration gives to the token's claims; it may not exist. None: no rule fits.
        scope: how far the token reaches.
        token: the token's id at its issuer, for the audit log; None if it has none.
        mail: address in lower case that the issuer of people has verified; None if there is none.
    """

    name: str
    role: str | None
    scope: Scope
    token: str | None = None
    mail: str | None = None


@dataclass(frozen=True, slots=True)
class SignIn:
    """Where people sign in.

    Attributes:
        issuer: URL of the identity provider.
        client_id: of the console, or of the command line.
        audience: that a token for this server has.
        scopes: that they ask for.
    """

    issuer: str
    client_id: str
    audience: str
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a sign-in gives.

    Attributes:
        bearer: the token that the server accepts.
        expires_at: when it ends, seconds since 1970.
        refresh: gets the next one; None if the provider gives none.
    """

    bearer: str
    expires_at: float
    refresh: str | None

    def __repr__(self) -> str:
        return f"Tokens(expires_at={self.expires_at})"


@dataclass(frozen=True, slots=True)
class Visit:
    """A browser's way to the identity provider and back.

    Attributes:
        redirect_uri: where the browser comes back.
        state: that the redirect must carry.
        nonce: that the ID token must carry.
        verifier: proves to the provider that the code is exchanged by who asked for it (PKCE).
    """

    redirect_uri: str
    state: str
    nonce: str
    verifier: str

    def __repr__(self) -> str:
        return f"Visit(redirect_uri={self.redirect_uri})"


class PeoplesProvider(Protocol):
    """The identity provider that people sign in with."""

    issuer: str

    def begin(self, redirect_uri: str) -> tuple[str, Visit]:
        """The address that a browser is sent to, and what its way back is checked by."""
        ...

    def finish(self, visit: Visit, code: str) -> Tokens:
        """Exchange the code that the browser came back with.

        Raises:
            AccessError: unauthenticated, the sign-in failed.
            IdentityError: issuer-unreachable.
        """
        ...

    def refreshed(self, refresh_token: str) -> Tokens:
        """The next token.

        Raises:
            AccessError: unauthenticated, the sign-in has ended.
            IdentityError: issuer-unreachable.
        """
        ...

    def revoke(self, refresh_token: str) -> None:
        """End the sign-in at the provider, if it can do that.

        Raises:
            IdentityError: issuer-unreachable.
        """
        ...


class Identities(Protocol):
    """Verifies the tokens of identity providers."""

    def identify(self, token: str) -> Identity:
        """Who a JWT stands for.

        Raises:
            AccessError: unauthenticated, the token is not valid.
            IdentityError: issuer-unreachable, its keys cannot be had now.
        """
        ...

    def for_people(self) -> SignIn | None:
        """Where people sign in; None if there is no such issuer."""
        ...

    def for_command_line(self) -> SignIn | None:
        """Where ``leat login`` signs in; None if there is no public client."""
        ...

    def provider(self) -> PeoplesProvider:
        """The identity provider that people sign in with.

        Raises:
            CatalogError: not-found, there is no such issuer.
            IdentityError: issuer-unreachable, its endpoints cannot be had now.
        """
        ...
