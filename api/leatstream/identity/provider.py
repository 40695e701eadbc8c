"""What is asked of the identity provider of people: device codes, codes with PKCE, refreshed tokens.

``leat login`` asks it from a person's machine, the server does for browsers that use the console.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2

from leatstream.errors import AccessError, IdentityError
from leatstream.identity.client_secret import CORRECT_THE_SECRET, ClientSecret
from leatstream.identity.fetching import SECONDS, Unfetchable, discovery_document, reach, read_bounded
from leatstream.identity.settings import is_safe_url
from leatstream.ports import Tokens, Visit

_DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
_TIMEOUT = 30.0
_INTERVAL, _SLOWER = 5.0, 5.0  # seconds, of RFC 8628
_sleep = time.sleep


class Provider:
    """The identity provider that a server names."""

    def __init__(
        self, sign_in: Mapping[str, Any], ca_file: Path | None = None, client: ClientSecret | None = None
    ) -> None:
        """Read the provider's discovery document.

        Args:
            sign_in: answer of ``GET /v1/sign-in``.
            ca_file: authority to trust; None = the machine's.
            client: how the client proves itself; None = it is a public one.

        Raises:
            IdentityError: issuer-unreachable.
            AccessError: unauthenticated, the server names no issuer that can be used.
        """
        self.issuer, self.client_id = str(sign_in["issuer"]), str(sign_in["client_id"])
        self.audience = str(sign_in["audience"])
        self._scopes, self._ca_file, self._client = " ".join(sign_in["scopes"]), ca_file, client
        self._more = dict(sign_in.get("parameters") or {})
        if not is_safe_url(self.issuer):
            raise _failed(f"The server names {self.issuer} as its issuer, which is no URL with https.")
        try:
            self._document = discovery_document(self.issuer, time.monotonic() + SECONDS, ca_file)
        except Unfetchable as error:
            raise IdentityError("issuer-unreachable", f"{error}.") from error

    def by_device(self, show: Callable[[str, str], None]) -> Tokens:
        """Sign in with a code that the person enters in any browser.

        Args:
            show: is given the address and the code.

        Raises:
            AccessError: unauthenticated, the sign-in failed.
            IdentityError: issuer-unreachable.
        """
        url = self._endpoint("device_authorization_endpoint", "codes for devices")
        begun = self._post(url, {"client_id": self.client_id, "scope": self._scopes})
        if "error" in begun:
            raise _refusal(begun)
        address, code = begun.get("verification_uri"), begun.get("user_code")
        show(str(begun.get("verification_uri_complete") or address), str(code))
        interval = float(begun.get("interval", _INTERVAL))
        deadline = time.monotonic() + float(begun.get("expires_in", 600))
        form = {"grant_type": _DEVICE, "device_code": str(begun.get("device_code"))}
        while time.monotonic() < deadline:
            _sleep(max(interval, 0.05))
            answer = self._ask(form)
            if answer.get("error") == "slow_down":
                interval += _SLOWER
            elif answer.get("error") != "authorization_pending":
                return self._tokens(answer)
        raise _failed("The code has expired before it was entered.")

    def by_redirect(self, redirect_uri: str, visit: Callable[[str, str], str]) -> Tokens:
        """Sign in with a browser on this machine, with PKCE.

        Args:
            redirect_uri: where the browser is sent at the end.
            visit: is given the address to open and the state to expect, and returns the code.

        Raises:
            AccessError: unauthenticated, the sign-in failed.
            IdentityError: issuer-unreachable.
        """
        address, begun = self.begin(redirect_uri)
        return self.finish(begun, visit(address, begun.state))

    def begin(self, redirect_uri: str) -> tuple[str, Visit]:
        """The address that a browser is sent to, and what its way back is checked by.

        Args:
            redirect_uri: where it is sent at the end.

        Raises:
            AccessError: unauthenticated, the provider offers no such sign-in.
        """
        url = self._endpoint("authorization_endpoint", "sign-in with a browser")
        verifier, state, nonce = (secrets.token_urlsafe(size) for size in (48, 24, 24))
        digest = hashlib.sha256(verifier.encode()).digest()
        asked = {
            **self._more,
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": redirect_uri,
            "scope": self._scopes,
            "state": state,
            "nonce": nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        address = f"{url}{'&' if '?' in url else '?'}{urlencode(asked)}"
        return address, Visit(redirect_uri, state, nonce, verifier)

    def finish(self, visit: Visit, code: str) -> Tokens:
        """Exchange the code that the browser came back with.

        Args:
            visit: from ``begin``.
            code: of the redirect, whose state must have been compared.

        Raises:
            AccessError: unauthenticated, the sign-in failed.
            IdentityError: issuer-unreachable.
        """
        form = {"code": code, "redirect_uri": visit.redirect_uri, "code_verifier": visit.verifier}
        answer = self._ask({"grant_type": "authorization_code", **form})
        tokens = self._tokens(answer)
        if "id_token" in answer:
            nonce = str(_claims(answer["id_token"]).get("nonce"))
            if not hmac.compare_digest(nonce.encode(), visit.nonce.encode()):
                raise _failed("The ID token is of another sign-in.")
        return tokens

    def refreshed(self, refresh_token: str) -> Tokens:
        """The next token.

        Raises:
            AccessError: unauthenticated, the sign-in has ended.
            IdentityError: issuer-unreachable.
        """
        answer = self._ask({"grant_type": "refresh_token", "refresh_token": refresh_token})
        return self._tokens({"refresh_token": refresh_token, **answer})

    def revoke(self, refresh_token: str) -> None:
        """End the sign-in at the provider, if it can do that.

        Raises:
            IdentityError: issuer-unreachable.
        """
        if self._document.get("revocation_endpoint"):
            url = self._endpoint("revocation_endpoint", "")
            self._post_as_client(url, {"token": refresh_token, "token_type_hint": "refresh_token"})

    def _endpoint(self, name: str, what: str) -> str:
        found = self._document.get(name)
        if not isinstance(found, str):
            other = "leat login" if name.startswith("device") else "leat login --device"
            raise _failed(f"Issuer {self.issuer} does not offer {what}.", f"Try {other}.")
        if not is_safe_url(found.partition("?")[0]):
            raise _failed(f"Issuer {self.issuer} names {found}, which is no URL with https.")
        return found

    def _ask(self, form: Mapping[str, str]) -> dict[str, Any]:
        answer = self._post_as_client(self._endpoint("token_endpoint", "tokens"), form)
        if self._client is not None and answer.get("error") in ("invalid_client", "unauthorized_client"):
            # The setting is wrong, not the person: nobody's session ends for it.
            detail = f"Issuer {self.issuer} does not accept the secret of client {self.client_id}."
            raise IdentityError("issuer-unreachable", detail, hint=CORRECT_THE_SECRET)
        return answer

    def _post_as_client(self, url: str, form: Mapping[str, str]) -> dict[str, Any]:
        """The answer to a form of the client, with the proof that its kind needs."""
        if self._client is None:
            return self._post(url, {**form, "client_id": self.client_id})
        return self._post(url, *self._client.prove(self.issuer, self.client_id, self._document, form))

    def _post(
        self, url: str, form: Mapping[str, str], proof: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """The JSON answer to a form; refusals are answers too."""
        headers, deadline = {"Accept": "application/json", **(proof or {})}, time.monotonic() + _TIMEOUT
        try:
            client = httpx2.Client(timeout=_TIMEOUT, follow_redirects=False, **reach(url, self._ca_file))
            with client, client.stream("POST", url, data=dict(form), headers=headers) as answer:
                text = read_bounded(answer, url, deadline)
        except Unfetchable as error:
            raise IdentityError("issuer-unreachable", f"{error}.") from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            reason = str(error) or type(error).__name__
            raise IdentityError("issuer-unreachable", f"{url} does not answer: {reason}.") from error
        try:
            found = json.loads(text) if text else {}
        except (ValueError, RecursionError):
            found = None
        if answer.status_code >= 500 or not isinstance(found, dict):
            raise IdentityError("issuer-unreachable", f"{url} answered with status {answer.status_code}.")
        return found if answer.status_code < 400 or "error" in found else {"error": answer.reason_phrase}

    def _tokens(self, answer: Mapping[str, Any]) -> Tokens:
        """The token for the server: the access token, or the ID token if only that has the audience."""
        if "error" in answer:
            raise _refusal(answer)
        for kind in ("access_token", "id_token"):
            claims = _claims(answer.get(kind))
            audience = claims.get("aud")
            if self.audience in (audience if isinstance(audience, list) else [audience]):
                refresh = answer.get("refresh_token")
                expires_at = claims.get("exp")
                return Tokens(
                    str(answer[kind]),
                    float(expires_at) if isinstance(expires_at, int | float) else 0.0,
                    refresh if isinstance(refresh, str) else None,
                )
        raise _failed(
            f"Issuer {self.issuer} gave no token for the audience {self.audience}.",
            "The administrator can correct audience, client_id or scopes in LEATSTREAM_OIDC.",
        )


def _claims(token: object) -> dict[str, Any]:
    """Claims of a token, not verified: the server does that. None of an opaque token."""
    try:
        body = str(token).split(".")[1]
        found = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (IndexError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _refusal(answer: Mapping[str, Any]) -> AccessError:
    # RFC 6749: the description is for people; no member of such an answer is a secret.
    reason = str(answer.get("error_description") or answer["error"])[:300]
    return _failed(f"The identity provider refused the sign-in: {reason.rstrip('.')}.")


def _failed(detail: str, hint: str = "Run leat login again.") -> AccessError:
    return AccessError("unauthenticated", detail, hint=hint)
