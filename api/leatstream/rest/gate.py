"""What every request passes first: request id, bearer token, the clock, and the net for unexpected errors."""

from __future__ import annotations

import re
import time
import uuid
from contextlib import suppress
from functools import partial
from urllib.parse import unquote_to_bytes

from anyio import move_on_after, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leatstream.errors import AccessError, CatalogAway, LeatstreamError, RequestError
from leatstream.rest import browsers, console, problem
from leatstream.rest.loads import UNDERWAY, Loads, Underway
from leatstream.rest.metrics import RequestTimes
from leatstream.rest.rates import Rates
from leatstream.services.driver_calls import authenticate_driver
from leatstream.services.environment import Environment, Principal, authorization
from leatstream.services.nouns.audit import in_use, note_refusal, note_refused_sign_in
from leatstream.services.nouns.sessions import authenticate_session

MAX_BODY_BYTES = 1024 * 1024
_MAX_DRAINED_BYTES = 32 * MAX_BODY_BYTES
_DRAIN_SECONDS = 10.0
_BODY_SECONDS = 60.0  # a body has, from its first byte to its last
# A slash inside a path segment (%2F), kept apart from those between segments. No name holds this character.
SLASH = "\x1f"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}\Z")
_OPEN = (
    "/healthz",
    "/readyz",
    "/openapi.json",
    "/problems/",
    "/v1/sign-in",
    "/v1/session",
    "/v1/invitations:accept",
    console.HOME,
)
_DRIVERS = "/v1/drivers/"
_SOCKET = "/graphql"


class Gate:
    """ASGI middleware. A request without a valid token gets 401 before its body is even read."""

    def __init__(self, app: ASGIApp, env: Environment, times: RequestTimes, loads: Loads) -> None:
        self._app = app
        self._env = env
        self._times = times
        self._loads = loads
        self._rates = Rates(env.settings.requests_per_second)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._pass_socket(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = _request_id(headers)
        scope["leatstream.request_id"] = request_id
        started, status = time.perf_counter(), 0

        async def tag(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                out = MutableHeaders(scope=message)
                out["X-Request-Id"] = request_id
                out.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            await self._pass(scope, headers, _bounded(receive), tag)
        except LeatstreamError as error:
            if status == 0:
                await problem.answer(error, scope["path"], request_id)(scope, receive, tag)
        except HTTPException as error:
            # Only the bounds on the body get here; inside the application the handlers answer them.
            if status == 0:
                told_of = problem.of_body(error.status_code)
                await problem.answer(told_of, scope["path"], request_id)(scope, receive, tag)
        except Exception as error:
            reply = problem.unexpected(error, scope["path"], request_id)
            if status == 0:
                await reply(scope, receive, tag)
        finally:
            self._times.observe(scope, status, time.perf_counter() - started)
            if status == 403 and "leatstream.principal" in scope:
                await run_in_threadpool(self._note_refusal, scope)

    def _note_refusal(self, scope: Scope) -> None:
        # The answer is sent; a catalog that cannot be written to must not break the connection.
        with suppress(CatalogAway, LeatstreamError):
            path = scope["path"].replace(SLASH, "/")
            who = in_use(scope["leatstream.principal"], scope.get("leatstream.role", ""))
            note_refusal(self._env, who, scope["method"], path, "permission-denied")

    def _note_sign_in(self, scope: Scope, error: LeatstreamError) -> None:
        with suppress(CatalogAway, LeatstreamError):
            who = Principal("", "", request=scope["leatstream.request_id"], address=_address(scope))
            path = scope["path"].replace(SLASH, "/")
            note_refused_sign_in(self._env, who, scope.get("method", "GET"), path, error)

    async def _pass_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a WebSocket pass at the one path that has one, with a token, or with the means to sign in.

        Browsers cannot send the header: the application lets nothing happen before ``leatstream.sign_in``.
        """
        headers = Headers(scope=scope)
        if scope["path"] != _SOCKET:
            await send({"type": "websocket.close", "code": 1008})
            return
        request_id = _request_id(headers)
        scope["leatstream.request_id"] = request_id
        request, known = Underway(self._loads, ""), ""
        session = None if "authorization" in headers else browsers.session_of(self._env, scope)

        async def sign_in(token: str | None = None) -> None:
            nonlocal known, session
            known, session = token or known, None if token else session
            principal = await self._authenticate(scope, known, session)
            scope["leatstream.principal"], request.caller = principal, principal.name

        scope["leatstream.sign_in"] = sign_in
        try:
            if session is not None:
                await sign_in()
            elif "authorization" in headers:
                await sign_in(bearer(headers["authorization"]))
        except LeatstreamError:
            await send({"type": "websocket.close", "code": 1008})
            return
        mark = UNDERWAY.set(request)
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            problem.for_caller(error, scope["path"], request_id)
            with suppress(Exception):
                await send({"type": "websocket.close", "code": 1011})
        finally:
            UNDERWAY.reset(mark)

    async def _authenticate(self, scope: Scope, token: str, session: str | None = None) -> Principal:
        """The principal of a token, or of a browser's session; a refusal is noted."""
        threads, more = scope["app"].state, (scope["leatstream.request_id"], _address(scope))
        # An issuer may have to be asked first, for which nobody else waits.
        limiter = threads.issuer_threads if authorization.is_of_issuer(token) else None
        authenticate = partial(authorization.authenticate, self._env, token, *more)
        try:
            if session is not None:
                browsers.require_own_page(self._env, scope)
                limiter = threads.session_threads
                authenticate = partial(authenticate_session, self._env, session, *more)
            return await to_thread.run_sync(authenticate, limiter=limiter)
        except AccessError as error:
            await run_in_threadpool(self._note_sign_in, scope, error)
            raise

    async def _pass(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        _keep_slashes(scope)
        if scope["path"].startswith(_OPEN) or scope["path"] == console.REFERENCE:
            await self._app(scope, receive, send)
            return
        if console.is_for_browsers(scope, headers):
            await RedirectResponse(console.HOME)(scope, receive, send)
            return
        if scope["path"].startswith(_DRIVERS):
            token = bearer(headers.get("authorization", ""))
            # Drivers have tokens of their own, which the routes check again, at each look for work.
            caller = driver = scope["path"].removeprefix(_DRIVERS).partition("/")[0]
            limiter = scope["app"].state.driver_threads
            await to_thread.run_sync(authenticate_driver, self._env, driver, token, limiter=limiter)
            scope["leatstream.token"] = token
        else:
            session = None if "authorization" in headers else browsers.session_of(self._env, scope)
            token = "" if session is not None else bearer(headers.get("authorization", ""))
            again = partial(self._authenticate, scope, token, session)
            scope["leatstream.authenticate"] = again  # streams that outlive what the token may do
            principal = await again()
            scope["leatstream.principal"], caller = principal, principal.name
            self._rates.take(caller)
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > MAX_BODY_BYTES:
            await _drain(receive)
        request = Underway(self._loads, caller)
        async with request.places, request.quick:
            if not scope["path"].startswith(_DRIVERS):
                await request.quick.enter_async_context(self._loads.quick.place(caller))
            mark = UNDERWAY.set(request)
            try:
                await self._app(scope, receive, send)
            finally:
                UNDERWAY.reset(mark)


def _bounded(receive: Receive) -> Receive:
    """Bound the body's bytes and the time that they take.

    FastAPI's own limit answers in plain text and breaks connections.
    """
    total, whole, end = 0, False, 0.0

    async def bounded() -> Message:
        nonlocal total, whole, end
        if whole:  # what comes now is the client's leave
            return await receive()
        end = end or time.monotonic() + _BODY_SECONDS
        with move_on_after(end - time.monotonic()) as late:
            message = await receive()
        if late.cancelled_caught:
            raise HTTPException(408)
        total += len(message.get("body", b""))
        whole = not message.get("more_body")
        if total > MAX_BODY_BYTES:
            if not whole:
                await _drain(receive)
            raise HTTPException(413)
        return message

    return bounded


async def _drain(receive: Receive) -> None:
    """Read a body to its end, within bounds: else the client sees a broken connection, not the answer."""
    left = _MAX_DRAINED_BYTES
    with move_on_after(_DRAIN_SECONDS):
        while left > 0:
            message = await receive()
            left -= len(message.get("body", b""))
            if not message.get("more_body"):
                break
    raise HTTPException(413)


def _address(scope: Scope) -> str | None:
    client = scope.get("client")
    return client[0] if client else None


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.match(given) else uuid.uuid4().hex


def bearer(authorization: str) -> str:
    """The token of an Authorization header; AccessError unauthenticated if it has none."""
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise AccessError(
            "unauthenticated",
            "The request carries no bearer token.",
            hint="Send the header Authorization: Bearer leat_…; leat dev prints which file holds one.",
        )
    return token.strip()


def _keep_slashes(scope: Scope) -> None:
    raw = scope.get("raw_path")
    if raw is None:
        return
    try:
        parts = [unquote_to_bytes(part).decode() for part in raw.partition(b"?")[0].split(b"/")]
    except UnicodeDecodeError as error:
        raise RequestError("validation", "The path is not UTF-8.") from error
    if any(SLASH in part for part in parts):
        raise RequestError("validation", "The path holds a control character.")
    scope["path"] = "/".join(part.replace("/", SLASH) for part in parts)
