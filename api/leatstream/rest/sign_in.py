"""The way of a browser to the identity provider and back: two addresses that people's browsers visit.

Both answer with a redirect, also when the sign-in failed: a person looks at the answer, not a program.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar
from urllib.parse import quote

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from leatstream.errors import CatalogAway, LeatstreamError
from leatstream.rest.browsers import SESSION, SIGN_IN, Origin, cookie_of, origin_of, session_of, set_cookie
from leatstream.rest.console import HOME
from leatstream.services.environment import Environment, Principal
from leatstream.services.nouns import sessions
from leatstream.services.nouns.audit import note_refused_sign_in

T = TypeVar("T")
START, CALLBACK = "/v1/sign-in/start", "/v1/sign-in/callback"
_MOST = 2000  # bytes of a page's address: browsers drop a cookie of more than 4096
# A page of the console; the first character after the slash keeps "//elsewhere.example" out.
_PAGE = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]*\Z")
# What the page of the sign-in says for each; the log and the audit log have the details.
_FAILURES = {
    "stale": "stale",
    "not-found": "no-provider",
    "permission-denied": "no-role",
    "issuer-unreachable": "unreachable",
    "unauthenticated": "refused",
}
_log = logging.getLogger("leatstream.rest")


def install(app: FastAPI) -> list[Route]:
    """Serve both addresses by the routes that are returned."""
    routes = [
        Route(START, _start, methods=["GET"], include_in_schema=False),
        Route(CALLBACK, _finish, methods=["GET"], include_in_schema=False),
    ]
    app.router.routes.extend(routes)
    return routes


async def _start(request: Request) -> Response:
    env, origin = request.app.state.env, origin_of(request.app.state.env, request.scope)
    wanted = request.query_params.get("next", "/")
    if request.headers.get("sec-fetch-site") == "cross-site":
        return _to_the_console("/sign-in")  # nobody else begins a sign-in here
    if not origin.may_sign_in:
        return _failed("insecure")
    page = wanted if len(wanted.encode()) <= _MOST and _PAGE.match(wanted) else "/"
    try:
        begin = partial(sessions.begin, env, origin.url + CALLBACK, page, session_of(env, request.scope))
        begun = await _aside(request, begin)
    except (LeatstreamError, CatalogAway) as error:
        return await _refused(request, error)
    answer = _redirect(begun.address)
    set_cookie(answer, origin, SIGN_IN, begun.sealed, sessions.SIGN_IN_SECONDS)
    return answer


async def _finish(request: Request) -> Response:
    env, origin = request.app.state.env, origin_of(request.app.state.env, request.scope)
    sealed = cookie_of(request.scope, origin.name(SIGN_IN)) or ""
    who = _client(request)
    finish = partial(sessions.finish, env, sealed, dict(request.query_params), who.request, who.address)
    try:
        done = await _aside(request, finish)
    except (LeatstreamError, CatalogAway) as error:
        return _without(origin, await _refused(request, error))
    answer = _without(origin, _to_the_console(done.wanted))
    set_cookie(answer, origin, SESSION, done.value, env.settings.session_seconds)
    return answer


async def _aside(request: Request, work: Callable[[], T]) -> T:
    """Wait for the provider in threads of their own: anybody can send these requests."""
    return await to_thread.run_sync(work, limiter=request.app.state.sign_in_threads)


async def _refused(request: Request, error: LeatstreamError | CatalogAway) -> Response:
    known = error.for_caller() if isinstance(error, CatalogAway) else error
    who, env = _client(request), request.app.state.env
    _log.warning("sign-in of a browser failed (request %s): %s", who.request, known.detail)
    if known.code in ("stale", "permission-denied", "unauthenticated"):
        await to_thread.run_sync(partial(_note, env, who, request.url.path, known))
    return _failed(_FAILURES.get(known.code, "failed"))


def _note(env: Environment, who: Principal, path: str, error: LeatstreamError) -> None:
    with suppress(CatalogAway, LeatstreamError):
        note_refused_sign_in(env, who, "GET", path, error)


def _client(request: Request) -> Principal:
    address = request.client.host if request.client else None
    return Principal("", "", request=request.scope["leatstream.request_id"], address=address)


def _failed(reason: str) -> Response:
    return _to_the_console(f"/sign-in?failed={reason}")


def _to_the_console(page: str) -> Response:
    return _redirect(HOME.rstrip("/") + page)


def _redirect(address: str) -> Response:
    answer = RedirectResponse(quote(address, safe=":/%#?=@[]!$&'()*+,;"), 303)
    answer.headers["Referrer-Policy"] = "no-referrer"  # the address may hold a code
    return answer


def _without(origin: Origin, answer: Response) -> Response:
    """The answer, which deletes what the browser has kept for this sign-in."""
    set_cookie(answer, origin, SIGN_IN, "", 0)
    return answer
