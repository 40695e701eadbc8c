"""fakesnow's server behind the login of an account: a key pair or a password, one user, roles and a warehouse.

Run by the interpreter that has fakesnow: ``snowflake_gate.py PORT PUBLIC_KEY_FILE``. fakesnow lets everybody
in; what is refused here is refused with Snowflake's own codes. Two more things are as with Snowflake. A statement
that a client repeats, because it got no answer, runs once: it has the same request id. A transaction that nobody
continues is rolled back; Snowflake waits minutes for that.
"""

from __future__ import annotations

import asyncio
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
from fakesnow.server import app, sessions
from starlette.concurrency import run_in_threadpool

USER, PASSWORD, ROLE = "LEAT", "correct horse", "LOADER"
_LOGIN, _QUERY = "/session/v1/login-request", "/queries/v1/query-request"
_IDLE = 5.0  # seconds that a transaction may wait for its next statement
_ANSWERS = 200  # that are kept for statements which are repeated
_REFUSED = ("390100", "Incorrect username or password was specified.")
_INVALID = ("390144", "JWT token is invalid.")


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


async def _read(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


def _again(body: bytes, receive: Any) -> Any:
    """What gives a body that was read before, and then what else comes."""
    given = False

    async def again() -> Any:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


class Statements:
    """Runs each request's statement once, and ends transactions that nobody continues."""

    def __init__(self) -> None:
        self._answers: dict[str, asyncio.Task[list[Any]]] = {}
        self._open: dict[str, float] = {}
        self._busy: set[str] = set()

    async def answer(self, scope: Any, receive: Any, send: Any) -> None:
        """Run a statement, or give the answer that it had."""
        body = await _read(receive)
        token = dict(scope["headers"]).get(b"authorization", b"").decode()[17:-1]
        asked = parse_qs(scope["query_string"].decode()).get("requestId", [""])[0]
        await self._end_idle(token)
        task = self._answers.get(asked)
        if task is None:
            task = self._answers[asked] = asyncio.create_task(self._run(scope, body, token))
            for old in list(self._answers)[:-_ANSWERS]:
                del self._answers[old]
        for message in await asyncio.shield(task):
            await send(message)

    async def _run(self, scope: Any, body: bytes, token: str) -> list[Any]:
        packed = dict(scope["headers"]).get(b"content-encoding") == b"gzip"
        text = json.loads(gzip.decompress(body) if packed else body)["sqlText"].strip().upper()
        if text == "BEGIN":
            self._open[token] = time.monotonic()
        elif text in ("COMMIT", "ROLLBACK"):
            self._open.pop(token, None)
        messages: list[Any] = []

        async def keep(message: Any) -> None:
            messages.append(message)

        async def nothing() -> Any:
            await asyncio.Event().wait()

        self._busy.add(token)
        try:
            await app(scope, _again(body, nothing), keep)
        finally:
            self._busy.discard(token)
        if token in self._open:
            self._open[token] = time.monotonic()
        return messages

    async def _end_idle(self, own: str) -> None:
        now = time.monotonic()
        for token, since in list(self._open.items()):
            if token != own and token not in self._busy and now - since > _IDLE:
                del self._open[token]
                await run_in_threadpool(lambda: sessions[token].cursor().execute("ROLLBACK"))  # noqa: B023


class Gate:
    """An ASGI application that asks who comes in."""

    def __init__(self, public: rsa.RSAPublicKey) -> None:
        self._public, self._statements = public, Statements()
        der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self._print = "SHA256:" + base64.b64encode(hashlib.sha256(der).digest()).decode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == _QUERY:
            await self._statements.answer(scope, receive, send)
            return
        if scope["type"] != "http" or scope["path"] != _LOGIN:
            await app(scope, receive, send)
            return
        body = await _read(receive)
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
        await app(scope, _again(body, receive), send)

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
