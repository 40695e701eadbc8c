"""``/v1/session``: the session of a browser that an identity provider has signed in."""

from __future__ import annotations

from functools import partial
from typing import Any

from anyio import to_thread
from fastapi import Request, Response

from leatstream.errors import AccessError
from leatstream.rest.answers import problems
from leatstream.rest.browsers import SESSION, origin_of, require_own_page, session_of, set_cookie
from leatstream.rest.deps import Env
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.accounts import SessionView
from leatstream.services.environment import Principal
from leatstream.services.nouns import sessions

router = api_router(prefix="/v1", tags=["access"])
_ERRORS: dict[int | str, Any] = {status: problems()[status] for status in (403, 503)}


@router.get("/session", responses=_ERRORS)
async def get_session(env: Env, request: Request) -> SessionView:
    """Show who is signed in to the console by an identity provider, and by which one. Needs no token."""
    found, value = env.identities.for_people(), session_of(env, request.scope)
    issuer = found.issuer if found is not None and origin_of(env, request.scope).may_sign_in else None
    who: Principal | None = None
    if value is not None:
        require_own_page(env, request.scope)
        try:
            work = partial(sessions.authenticate_session, env, value)
            who = await to_thread.run_sync(work, limiter=request.app.state.session_threads)
        except AccessError:
            pass  # it has ended
    account, role = (who.name, who.role) if who is not None else (None, None)
    return SessionView(issuer=issuer, account=account, role=role)


@router.delete("/session", status_code=204, responses=_ERRORS)
async def end_session(env: Env, request: Request, response: Response) -> None:
    """Sign the browser out of the console. Needs no token; without a session nothing happens."""
    value, origin = session_of(env, request.scope), origin_of(env, request.scope)
    if value is None:
        return
    require_own_page(env, request.scope)
    address = request.client.host if request.client else None
    work = partial(sessions.end, env, value, request.scope["leatstream.request_id"], address)
    await to_thread.run_sync(work, limiter=request.app.state.sign_in_threads)
    set_cookie(response, origin, SESSION, "", 0)
