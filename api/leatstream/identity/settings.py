"""The setting ``LEATSTREAM_OIDC``: issuers, and the roles that the claims of their tokens give."""

from __future__ import annotations

import os
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FilePath, model_validator

from leatstream.model.access import Scope

# Signatures by a private key only: with an HMAC the published key could sign, and "none" signs nothing.
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"
]
_Text = Annotated[str, Field(min_length=1, max_length=1000)]
_LONGEST_SECRET = 4096


def is_loopback(host: str | None) -> bool:
    """Whether a host is this machine, which may be asked without TLS."""
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


def is_safe_url(text: str) -> bool:
    """Whether a URL has https, or http on the loopback address, and no user, query or fragment."""
    try:
        url = urlsplit(text)
        safe = url.scheme == "https" or (url.scheme == "http" and is_loopback(url.hostname))
        extra = url.query or url.fragment or "?" in text or "#" in text or url.username is not None
        return bool(safe and url.hostname and (url.port is None or url.port > 0) and not extra)
    except ValueError:
        return False


def _url(text: str) -> str:
    if not is_safe_url(text) or not text.isprintable() or " " in text:
        raise ValueError("it is not a URL that begins with https:// and has no user, query or fragment")
    return text


_Url = Annotated[str, Field(max_length=500), AfterValidator(_url)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Rule(_Part):
    """Tokens with a value of a claim get a role.

    Attributes:
        claim: its name, or a JSON pointer to a nested one, such as ``/realm_access/roles``.
        equals: the claim's value, or one of its values.
        prefix: what the value, or one of the values, begins with.
        role: that such a token acts in.
        scope: how far it reaches.
    """

    claim: _Text
    equals: _Text | None = None
    prefix: _Text | None = None
    role: _Text
    scope: Scope = Scope.WRITE

    @model_validator(mode="after")
    def _one_test(self) -> Rule:
        if (self.equals is None) == (self.prefix is None):
            raise ValueError("a rule has either equals or prefix")
        return self

    def fits(self, values: Sequence[str]) -> bool:
        """Whether a claim with these values fits.

        Args:
            values: of the claim; several if it is a list.
        """
        if self.equals is not None:
            return self.equals in values
        return any(value.startswith(self.prefix or "") for value in values)


class Issuer(_Part):
    """An identity provider.

    Attributes:
        issuer: its URL, as in the claim ``iss`` and in its discovery document.
        audience: that a token for this server has.
        jwks_url: where its keys are; None = its discovery document says so.
        ca_file: PEM file of the authority that signed its certificate; None = the machine's authorities.
        algorithms: of signatures that are accepted.
        account_claim: claim that names the account.
        client_id: of the console and, if it has no secret, of ``leat login``: for the issuer of people.
        client_secret_file: file with the secret of ``client_id``.
        client_secret_variable: environment variable with that secret.
        cli_client_id: public client of ``leat login``, where ``client_id`` has a secret.
        scopes: that the console and the command line ask for.
        authorization_parameters: more parameters of the address that the console sends browsers to.
        rules: the first that fits counts.
    """

    issuer: _Url
    audience: _Text
    jwks_url: _Url | None = None
    ca_file: FilePath | None = None
    algorithms: Annotated[tuple[Algorithm, ...], Field(min_length=1)] = ("RS256", "ES256", "EdDSA")
    account_claim: _Text = "sub"
    client_id: _Text | None = None
    client_secret_file: FilePath | None = None
    client_secret_variable: _Text | None = None
    cli_client_id: _Text | None = None
    scopes: tuple[_Text, ...] = ("openid", "profile", "email", "offline_access")
    authorization_parameters: dict[_Text, _Text] = {}
    rules: Annotated[tuple[Rule, ...], Field(min_length=1, max_length=1000)]

    @model_validator(mode="after")
    def _one_secret(self) -> Issuer:
        if self.client_secret_file is not None and self.client_secret_variable is not None:
            raise ValueError("an issuer has either client_secret_file or client_secret_variable")
        if self.client_id is None and (self.has_secret or self.cli_client_id is not None):
            raise ValueError(
                "client_id is missing: the client that the secret and cli_client_id stand beside"
            )
        if self.has_secret:
            self.client_secret()
        return self

    @property
    def has_secret(self) -> bool:
        """Whether the client must show a secret at the provider: it is a confidential one."""
        return self.client_secret_file is not None or self.client_secret_variable is not None

    def client_secret(self) -> str:
        """The secret of this moment, so that a rotated file counts at once.

        Raises:
            ValueError: there is none. The text does not hold the secret.
        """
        if self.client_secret_file is not None:
            where = f"the file {self.client_secret_file}"
            try:
                found = self.client_secret_file.read_text(encoding="utf-8").strip("\r\n")
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "it is not UTF-8"
                raise ValueError(f"{where} of the client secret cannot be read: {reason}") from None
        else:
            where = f"the variable {self.client_secret_variable}"
            found = os.environ.get(self.client_secret_variable or "", "")
        if not 0 < len(found) <= _LONGEST_SECRET:
            raise ValueError(f"{where} holds no client secret of 1 to {_LONGEST_SECRET} characters")
        return found


def check_issuers(issuers: tuple[Issuer, ...]) -> tuple[Issuer, ...]:
    """The issuers, if each is named once and at most one is for people.

    Raises:
        ValueError: otherwise.
    """
    names = [one.issuer for one in issuers]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"issuer {twice} is named twice")
    if sum(one.client_id is not None for one in issuers) > 1:
        raise ValueError("only one issuer can have a client_id: the one that people sign in with")
    return issuers
