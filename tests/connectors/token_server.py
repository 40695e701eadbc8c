"""An OAuth 2.0 authorization server for the tests: client credentials over TLS, tokens signed with RS256."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote_plus

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

CLIENT = "leat stream"
SECRET = 'c:l%i"e\\n+t'
AUDIENCE = "brokers"
SCOPE = "produce consume"


class TokenServer:
    """Gives tokens to ``CLIENT`` at ``url``, for those who trust the certificate.

    Attributes:
        asked: how many tokens it was asked for.
        life: seconds that its tokens live.
    """

    def __init__(self, place: Path, certificate: str, key: str) -> None:
        self.certificate = certificate
        self.asked, self.life = 0, 300
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.jwks = place / "jwks.json"
        self.jwks.write_text(json.dumps({"keys": [self._jwk()]}))
        pem = place / "tokens.pem"
        pem.write_text(key + certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        server = self
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
        self._http.daemon_threads = True
        self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._http.server_address[1]}/token"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(10)

    def answer(self, authorization: str, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Status and document for a request."""
        self.asked += 1
        given = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if (unquote_plus(given[0]), unquote_plus(given[2])) != (CLIENT, SECRET):
            return 401, {"error": "invalid_client"}
        if form.get("grant_type") != "client_credentials":
            return 400, {"error": "unsupported_grant_type"}
        if form.get("scope", SCOPE) not in (SCOPE, "stranger"):
            return 400, {"error": "invalid_scope"}
        # What the brokers do not take although the client may have it.
        audience = "others" if form.get("scope") == "stranger" else AUDIENCE
        return 200, {
            "access_token": self.token(audience),
            "token_type": "Bearer",
            "expires_in": self.life,
            "scope": form.get("scope", SCOPE),
        }

    def token(self, audience: str) -> str:
        """A signed token."""
        now = int(time.time())
        claims = {
            "iss": "tests",
            "sub": "leat",
            "aud": audience,
            "iat": now,
            "exp": now + self.life,
            "scope": SCOPE,
        }
        head = {"alg": "RS256", "typ": "JWT", "kid": "1"}
        signed = ".".join(_text(json.dumps(part).encode()) for part in (head, claims))
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_text(signature)}"

    def _jwk(self) -> dict[str, str]:
        numbers = self._key.public_key().public_numbers()
        n, e = (v.to_bytes((v.bit_length() + 7) // 8, "big") for v in (numbers.n, numbers.e))
        return {"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig", "n": _text(n), "e": _text(e)}


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _handler(server: TokenServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            status, document = server.answer(self.headers.get("Authorization") or "", form)
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler
