"""Verifies JWTs of the configured issuers and gives them a name, a role and a scope."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from joserfc import jws
from joserfc.errors import ExpiredTokenError, JoseError, MissingClaimError, SecurityWarning
from joserfc.jwt import JWTClaimsRegistry

from leatstream.errors import AccessError
from leatstream.identity.keys import IssuerKeys
from leatstream.identity.known_provider import KnownProvider
from leatstream.identity.settings import Issuer
from leatstream.model.access import Scope, mail_address
from leatstream.ports import Identity, PeoplesProvider, SignIn

LEEWAY = 30  # seconds by which clocks may differ
_MAX_SUBJECT = 500
_UNREADABLE = "The bearer token is not a JSON Web Token that can be read."
# The name is old; issuers write it nevertheless.
warnings.filterwarnings("ignore", "EdDSA is deprecated", SecurityWarning)


class _Registry(jws.JWSRegistry):
    max_header_length = 4096  # some issuers put certificates there


class Issuers:
    """The configured issuers (``ports.Identities``)."""

    def __init__(self, issuers: Sequence[Issuer], now: Callable[[], float] = time.time) -> None:
        self._issuers = {one.issuer: one for one in issuers}
        self._keys = {one.issuer: IssuerKeys(one) for one in issuers}
        self._now = now
        self._provider = KnownProvider(issuers)

    def for_people(self) -> SignIn | None:
        """Where people sign in; None if no issuer has a ``client_id``."""
        return self._provider.sign_in

    def for_command_line(self) -> SignIn | None:
        """Where ``leat login`` signs in; None if there is no public client."""
        return self._provider.command_line

    def provider(self) -> PeoplesProvider:
        """The identity provider that people sign in with, as ``ports.Identities``."""
        return self._provider.get()

    def identify(self, token: str) -> Identity:
        """Who a JWT stands for.

        Raises:
            AccessError: unauthenticated.
            IdentityError: issuer-unreachable.
        """
        signed, header, claims = _parse(token)
        issuer = self._issuers.get(str(claims.get("iss")))
        if issuer is None:
            _refuse("The token's issuer is not configured on this server.", "Add it to LEATSTREAM_OIDC")
        self._check_signature(issuer, signed, header)
        self._check_claims(issuer, claims)
        subject = _values(claims, issuer.account_claim)
        if len(subject) != 1 or not subject[0].isprintable() or not 0 < len(subject[0]) <= _MAX_SUBJECT:
            _refuse(f"The token has no usable claim {issuer.account_claim}, which names the account.")
        name = f"{issuer.issuer}#{subject[0]}"
        rule = next((one for one in issuer.rules if one.fits(_values(claims, one.claim))), None)
        token_id = next(iter(_values(claims, "jti")), None)
        mail = _verified_mail(claims) if issuer.client_id is not None else None
        role, scope = (rule.role, rule.scope) if rule is not None else (None, Scope.READ)
        return Identity(name, role, scope, token_id and token_id[:200], mail)

    def _check_signature(
        self, issuer: Issuer, signed: jws.CompactSignature, header: Mapping[str, Any]
    ) -> None:
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in issuer.algorithms or "crit" in header:
            _refuse(f"The token is signed in a way that is not allowed for issuer {issuer.issuer}.")
        if not isinstance(key_id, str | None):
            _refuse(_UNREADABLE)
        key = self._keys[issuer.issuer].find(key_id, algorithm)
        if key is None:
            _refuse(f"The token is signed with a key that issuer {issuer.issuer} does not publish.")
        registry = _Registry(algorithms=list(issuer.algorithms), strict_check_header=False)
        try:
            valid = jws.validate_compact(signed, key, registry=registry)
        except (JoseError, ValueError, TypeError):
            valid = False
        if not valid:
            _refuse(f"The token's signature is not one of issuer {issuer.issuer}.")

    def _check_claims(self, issuer: Issuer, claims: dict[str, Any]) -> None:
        registry = JWTClaimsRegistry(
            now=int(self._now()),
            leeway=LEEWAY,
            iss={"essential": True, "value": issuer.issuer},
            aud={"essential": True, "value": issuer.audience},
            exp={"essential": True},
        )
        try:
            registry.validate(claims)
        except ExpiredTokenError:
            _refuse("The token has expired.", "Get a new one from its issuer, or run leat login")
        except MissingClaimError as error:
            _refuse(f"The token lacks the claim {error.claim}.")
        except JoseError as error:
            _refuse(_TEXTS.get(getattr(error, "claim", ""), "A claim of the token is not valid."))


_TEXTS = {
    "aud": "The token is for another audience than this server.",
    "nbf": "The token is not valid yet.",
    "iat": "The token was issued in the future.",
    "exp": "The token's claim exp is not a time.",
}


def _refuse(detail: str, hint: str = "Get a token from an issuer that this server accepts") -> NoReturn:
    raise AccessError("unauthenticated", detail, hint=f"{hint}.")


def _parse(token: str) -> tuple[jws.CompactSignature, dict[str, Any], dict[str, Any]]:
    """A token's parts, not verified."""
    try:
        signed = jws.extract_compact(token.encode(), registry=_Registry())
        header, claims = signed.headers(), json.loads(signed.payload)
    except (JoseError, ValueError, TypeError, AttributeError, RecursionError):
        _refuse(_UNREADABLE)
    if not isinstance(header, dict) or not isinstance(claims, dict):
        _refuse(_UNREADABLE)
    return signed, header, claims


def _values(claims: Mapping[str, Any], name: str) -> list[str]:
    """The texts of a claim, given by name or JSON pointer; none if it is missing."""
    if name == "email" and claims.get("email_verified") is False:
        return []  # a person may write any address there
    found: Any = claims
    path = [part.replace("~1", "/").replace("~0", "~") for part in name.split("/")[1:]]
    for part in path if name.startswith("/") else [name]:
        found = found.get(part) if isinstance(found, dict) else None
    texts = [_text(one) for one in (found if isinstance(found, list) else [found])]
    return [one for one in texts if one is not None]


def _verified_mail(claims: Mapping[str, Any]) -> str | None:
    """The address that the issuer vouches for: it says so itself, or the address counts for nothing."""
    if _values(claims, "email_verified") != ["true"]:
        return None
    found = _values(claims, "email")
    return mail_address(found[0]) if len(found) == 1 else None


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int) else None
