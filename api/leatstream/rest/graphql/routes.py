"""``/graphql``: POST for queries and the mutation, a WebSocket or server-sent events for subscriptions."""

from __future__ import annotations

from types import ModuleType
from typing import Annotated, Any

from anyio import to_thread
from fastapi import FastAPI, Header, Request, Response, WebSocket
from fastapi.responses import StreamingResponse
from pydantic import Field

from leatstream.rest.loads import slow
from leatstream.rest.routers import api_router, serve
from leatstream.rest.schemas.base import Body
from leatstream.rest.streams import EVENTS

PATH = "/graphql"
router = api_router()


class GraphqlBody(Body):
    """A GraphQL request."""

    query: Annotated[str, Field(min_length=1, max_length=500_000)]
    variables: dict[str, Any] | None = None
    operation_name: str | None = Field(None, alias="operationName")
    extensions: dict[str, Any] | None = None


@router.post(PATH, include_in_schema=False)
async def run_graphql(http: Request, body: GraphqlBody, accept: Annotated[str, Header()] = "") -> Response:
    """Run a GraphQL document.

    Args:
        http: the request.
        body: the document and its variables.
        accept: asks for server-sent events, where the document is a subscription.
    """
    if EVENTS not in accept:
        return await _execute(http, body, accept)
    running = await to_thread.run_sync(_running)
    chunks = running.chunks(_request(running, http, "stream"), body)
    return StreamingResponse(chunks, media_type=EVENTS, headers={"X-Accel-Buffering": "no"})


@slow
def _execute(http: Request, body: GraphqlBody, accept: str) -> Response:
    running = _running()
    strict = running.OF_THE_SPECIFICATION in accept
    answer: Response = running.execute(_request(running, http, "post"), body, strict)
    return answer


async def _follow(websocket: WebSocket) -> None:
    running = await to_thread.run_sync(_running)
    await running.follow(websocket)


def _request(running: ModuleType, http: Request, transport: str) -> Any:
    return running.Request(http.app.state.env, http.scope, transport=transport)


def _running() -> ModuleType:
    """What runs documents. It is imported at the first request, so that no server starts later for it."""
    from leatstream.rest.graphql import running

    return running


def install(app: FastAPI) -> list[Any]:
    """Add ``/graphql`` to the application; returns its routes."""
    serve(app, router)
    app.add_api_websocket_route(PATH, _follow)
    return list(router.routes)
