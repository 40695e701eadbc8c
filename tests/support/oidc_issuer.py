"""A small identity provider with real keys: discovery, keys, device codes, redirects with PKCE, refresh tokens."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey

AUDIENCE, CLIENT = "leatstream", "leat-cli"


class OidcIssuer:
    """A provider on the loopback address.

    Attributes:
        keys: by id; the tokens of ``sign`` name one.
        asked: how often each path was.
        fails: status that every answer has; 0 = none.
        approved: whether the person has agreed to the device codes.
        refreshing: refresh tokens that are accepted.
        secret: of the client, which is a confidential one then.
        proofs: how it was sent at the endpoints of tokens and revocation, newest last.
    """

    def __init__(self, keys: Mapping[str, Key] | None = None) -> None:
        """Begin to answer; with these keys, as new ones take long to make."""
        self.keys: dict[str, Key] = dict(keys or {}) or {
            "rsa": RSAKey.generate_key(2048, {"kid": "rsa"}),
            "ec": ECKey.generate_key("P-256", {"kid": "ec"}),
            "ed": OKPKey.generate_key("Ed25519", {"kid": "ed"}),
        }
        self.asked: Counter[str] = Counter()
        self.fails = 0
        self.document: dict[str, Any] = {}
        self.approved = False
        self.refreshing: set[str] = set()
        self.claims: dict[str, Any] = {"sub": "ann", "groups": ["data"]}
        self.lifetime = 300
        self.secret: str | None = None
        self.proofs: list[str] = []
        self.last_query: dict[str, str] = {}
        self._challenges: dict[str, tuple[str, str, str | None]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it; its port refuses connections then."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._thread.join(5)

    def sign(self, key: str = "rsa", *, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """A token; a claim that is None is left out."""
        now = int(time.time())
        whole = {
            "iss": self.url,
            "aud": AUDIENCE,
            "iat": now,
            "exp": now + self.lifetime,
            "jti": secrets.token_hex(8),
            **self.claims,
            **claims,
        }
        algorithm = {"RSA": "RS256", "EC": "ES256", "OKP": "EdDSA"}[self.keys[key].key_type]
        head = {"alg": algorithm, "kid": key, **(header or {})}
        kept = {name: value for name, value in whole.items() if value is not None}
        return jwt.encode({k: v for k, v in head.items() if v is not None}, kept, self.keys[key], [algorithm])

    def rotate(self) -> None:
        """Publish a new RSA key of another id in place of the old one."""
        del self.keys["rsa"]
        self.keys["rsa2"] = RSAKey.generate_key(2048, {"kid": "rsa2"})

    def answer(self, path: str, form: dict[str, str], authorization: str = "") -> tuple[int, dict[str, Any]]:
        """Status and body."""
        known: dict[str, Callable[[dict[str, str]], tuple[int, dict[str, Any]]]] = {
            "/.well-known/openid-configuration": lambda _: (200, self._discovery()),
            "/keys": lambda _: (200, {"keys": [key.as_dict(private=False) for key in self.keys.values()]}),
            "/device": self._device,
            "/token": self._token,
            "/revoke": self._revoke,
        }
        self.asked[path] += 1
        if self.fails:
            return self.fails, {}
        if path in ("/token", "/revoke"):
            proof, client = self._proof(form, authorization)
            self.proofs.append(proof)
            if client != (CLIENT, self.secret):
                return 401, {"error": "invalid_client"}
        return known[path](form) if path in known else (404, {})

    @staticmethod
    def _proof(form: dict[str, str], authorization: str) -> tuple[str, tuple[str | None, str | None]]:
        """How the client proves itself, and its id and secret."""
        if authorization:
            assert not {"client_id", "client_secret"} & form.keys()  # RFC 6749: one way at a time
            name, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
            return "basic", (unquote_plus(name), unquote_plus(secret))
        return ("post" if "client_secret" in form else "none"), (
            form.get("client_id"),
            form.get("client_secret"),
        )

    def authorize(self, query: dict[str, str]) -> str:
        """Where the browser of a person who agrees is sent."""
        assert query["code_challenge_method"] == "S256"
        assert query["client_id"] == CLIENT
        assert query["response_type"] == "code"
        self.last_query = query
        code = secrets.token_hex(8)
        self._challenges[code] = query["code_challenge"], query["redirect_uri"], query.get("nonce")
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def _discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/keys",
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "device_authorization_endpoint": f"{self.url}/device",
            "revocation_endpoint": f"{self.url}/revoke",
            **self.document,
        }

    def _device(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        assert form["client_id"] == CLIENT
        code = {"device_code": "d1", "user_code": "ABCD-EFGH", "expires_in": 60, "interval": 0}
        return 200, {**code, "verification_uri": f"{self.url}/activate"}

    def _token(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        kind = form.get("grant_type")
        if kind == "urn:ietf:params:oauth:grant-type:device_code":
            return self._tokens() if self.approved else (400, {"error": "authorization_pending"})
        if kind == "refresh_token" and form.get("refresh_token") in self.refreshing:
            self.refreshing.discard(form["refresh_token"])  # each serves once
            return self._tokens()
        if kind == "authorization_code":
            challenge, redirect, nonce = self._challenges.pop(form["code"], ("", "", None))
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            if proof == challenge and redirect == form["redirect_uri"]:
                return self._tokens(nonce)
        return 400, {"error": "invalid_grant"}

    def _tokens(self, nonce: str | None = None) -> tuple[int, dict[str, Any]]:
        refresh = secrets.token_hex(8)
        self.refreshing.add(refresh)
        # The access token is opaque, as many providers have it.
        identity = self.sign(nonce=nonce), refresh
        return 200, {
            "access_token": "opaque",
            "id_token": identity[0],
            "refresh_token": identity[1],
            "token_type": "Bearer",
            "expires_in": self.lifetime,
        }

    def _revoke(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        self.refreshing.discard(form["token"])
        return 200, {}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                if url.path == "/authorize":
                    self.send_response(302)
                    self.send_header("Location", issuer.authorize(_flat(url.query)))
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                self._send(*issuer.answer(url.path, {}))

            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self._send(*issuer.answer(self.path, _flat(form), self.headers.get("Authorization", "")))

            def _send(self, status: int, body: dict[str, Any]) -> None:
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler


def _flat(text: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(text).items()}
