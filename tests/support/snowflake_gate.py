"""fakesnow's server behind the login of an account: a key pair or a password, one user, roles and a warehouse.

Run by the interpreter that has fakesnow: ``snowflake_gate.py PORT PUBLIC_KEY_FILE``. fakesnow lets everybody
in; what is refused here is refused with Snowflake's own codes.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from fakesnow.server import app

USER, PASSWORD, ROLE = "LEAT", "correct horse", "LOADER"
_LOGIN = "/session/v1/login-request"
_REFUSED = ("390100", "Incorrect username or password was specified.")
_INVALID = ("390144", "JWT token is invalid.")


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Gate:
    """An ASGI application that asks who comes in."""

    def __init__(self, public: rsa.RSAPublicKey) -> None:
        self._public = public
        der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self._print = "SHA256:" + base64.b64encode(hashlib.sha256(der).digest()).decode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != _LOGIN:
            await app(scope, receive, send)
            return
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        packed = dict(scope["headers"]).get(b"content-encoding") == b"gzip"
        data = json.loads(gzip.decompress(body) if packed else body)["data"]
        role = parse_qs(scope["query_string"].decode()).get("roleName", [ROLE])[0]
        said = self._refusal(data)
        if said is None and role.upper() != ROLE:
            said = (
                "390189",
                f"Role '{role}' specified in the connect string does not exist or not authorized.",
            )
        if said is not None:
            answer = {"data": {"nextAction": "RETRY_LOGIN"}, "code": said[0], "message": said[1]}
            head = {"type": "http.response.start", "status": 200}
            await send(head | {"headers": [(b"content-type", b"application/json")]})
            text = json.dumps(answer | {"success": False}).encode()
            await send({"type": "http.response.body", "body": text})
            return
        given = False

        async def again() -> Any:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await app(scope, again, send)

    def _refusal(self, data: dict[str, Any]) -> tuple[str, str] | None:
        if data["LOGIN_NAME"].upper() != USER:
            return _REFUSED
        if data.get("AUTHENTICATOR") != "SNOWFLAKE_JWT":
            return None if data.get("PASSWORD") == PASSWORD else _REFUSED
        try:
            head, claims, signature = data["TOKEN"].split(".")
            signed = f"{head}.{claims}".encode()
            self._public.verify(_decoded(signature), signed, padding.PKCS1v15(), hashes.SHA256())
            said = json.loads(_decoded(claims))
        except (InvalidSignature, ValueError, binascii.Error):
            return _INVALID
        name = f"{data['ACCOUNT_NAME'].upper()}.{USER}"
        wanted = (name, f"{name}.{self._print}")
        return None if (said["sub"], said["iss"]) == wanted and said["exp"] > time.time() else _INVALID


if __name__ == "__main__":
    key = serialization.load_pem_public_key(Path(sys.argv[2]).read_bytes())
    assert isinstance(key, rsa.RSAPublicKey)
    uvicorn.run(Gate(key), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
