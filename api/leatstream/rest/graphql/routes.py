"""``/graphql``: POST for queries and the mutation, a WebSocket or server-sent events for subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import timedelta
from functools import lru_cache
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, FastAPI, Header, Response, WebSocket
from fastapi import Request as HttpRequest
from fastapi.responses import StreamingResponse
from graphql import GraphQLError
from pydantic import Field
from strawberry.exceptions import ConnectionRejectionError
from strawberry.fastapi import GraphQLRouter
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError
from strawberry.subscriptions import GRAPHQL_TRANSPORT_WS_PROTOCOL
from strawberry.types.graphql import OperationType
from strawberry.types.unset import UNSET, UnsetType

from leatstream.errors import AccessError
from leatstream.rest.deps import refuse_unknown_parameters
from leatstream.rest.gate import bearer
from leatstream.rest.graphql.answers import encode, encode_message
from leatstream.rest.graphql.errors import shown
from leatstream.rest.graphql.request import Request
from leatstream.rest.graphql.schema import Schema, make_schema
from leatstream.rest.loads import slow
from leatstream.rest.schemas.base import Body
from leatstream.rest.streams import EVENTS
from leatstream.services.nouns.audit import note_refusal

PATH = "/graphql"
_OF_THE_SPECIFICATION = "application/graphql-response+json"
_POSTED = (OperationType.QUERY, OperationType.MUTATION)
_INIT_SECONDS, _MOST_SUBSCRIPTIONS, _QUIET_SECONDS = 10, 20, 10.0

router = APIRouter()
schema_of_server = lru_cache(maxsize=1)(make_schema)


class GraphqlBody(Body):
    """A GraphQL request."""

    query: Annotated[str, Field(min_length=1, max_length=500_000)]
    variables: dict[str, Any] | None = None
    operation_name: str | None = Field(None, alias="operationName")
    extensions: dict[str, Any] | None = None


@router.post(PATH, include_in_schema=False)
async def run_graphql(
    http: HttpRequest, body: GraphqlBody, accept: Annotated[str, Header()] = ""
) -> Response:
    """Run a GraphQL document.

    Args:
        http: the request.
        body: the document and its variables.
        accept: asks for server-sent events, where the document is a subscription.
    """
    if EVENTS in accept:
        request = Request(http.app.state.env, http.scope, transport="stream")
        chunks = _chunks(schema_of_server(), body, request)
        return StreamingResponse(chunks, media_type=EVENTS, headers={"X-Accel-Buffering": "no"})
    strict = _OF_THE_SPECIFICATION in accept
    return await _execute(Request(http.app.state.env, http.scope), body, strict)


@slow
def _execute(request: Request, body: GraphqlBody, strict: bool) -> Response:
    """Run a query or mutation in a thread: resolvers ask the catalog and stores, which blocks."""
    try:
        result = schema_of_server().execute_sync(
            body.query,
            variable_values=body.variables,
            context_value=request,
            operation_name=body.operation_name,
            allowed_operation_types=_POSTED,
        )
        data, found = result.data, list(result.errors or ())
    except (CannotGetOperationTypeError, InvalidOperationTypeError) as error:
        data, found = None, [GraphQLError(str(error), original_error=error)]
    errors = shown(found, request)
    for place in request.refusals:
        note_refusal(request.env, request.principal, "POST", place, "permission-denied")
    status = 400 if strict and data is None else 200
    media_type = _OF_THE_SPECIFICATION if strict else "application/json"
    return Response(encode(data, errors), status, media_type=media_type)


async def _chunks(schema: Schema, body: GraphqlBody, request: Request) -> AsyncIterator[bytes]:
    """Server-sent events ``next`` for each result, then ``complete``; a comment while nothing comes."""
    # Lets the client see the answer's head.
    yield b": idle\n\n"
    results = await schema.stream(
        body.query, body.variables, context_value=request, operation_name=body.operation_name
    )
    async with aclosing(results):
        waiting: asyncio.Task[Any] | None = None
        try:
            while True:
                waiting = waiting or asyncio.ensure_future(anext(results, None))
                if not (await asyncio.wait([waiting], timeout=_QUIET_SECONDS))[0]:
                    yield b": idle\n\n"
                    continue
                result, waiting = waiting.result(), None
                if result is None:
                    break
                yield b"event: next\ndata: " + encode(result.data, result.errors) + b"\n\n"
        finally:
            if waiting is not None:
                waiting.cancel()
                await asyncio.wait([waiting])
    yield b"event: complete\ndata:\n\n"


class _Sockets(GraphQLRouter[Request, None]):
    """The library's WebSocket protocol; its routes for HTTP are not used."""

    def encode_json(self, data: object) -> str:
        """A message as JSON text."""
        return encode_message(data).decode()

    async def on_ws_connect(self, context: Request) -> UnsetType | dict[str, object] | None:
        """Sign in by ``connection_init``, where the handshake had no token."""
        given = (context.connection_params or {}).get("authorization")
        try:
            if given is not None:
                await context.scope["leatstream.sign_in"](bearer(str(given)))
            context.principal  # noqa: B018
        except (AccessError, KeyError) as error:
            raise ConnectionRejectionError from error
        return cast("UnsetType", UNSET)


@lru_cache(maxsize=1)
def _sockets() -> _Sockets:
    return _Sockets(
        schema_of_server(),
        graphql_ide=None,
        allow_queries_via_get=False,
        subscription_protocols=[GRAPHQL_TRANSPORT_WS_PROTOCOL],
        connection_init_wait_timeout=timedelta(seconds=_INIT_SECONDS),
        max_subscriptions_per_connection=_MOST_SUBSCRIPTIONS,
    )


async def _follow(websocket: WebSocket) -> None:
    request = Request(websocket.app.state.env, websocket.scope, transport="stream")
    await _sockets().run(websocket, context=request, root_value=None)


def install(app: FastAPI) -> list[Any]:
    """Add ``/graphql`` to the application; returns its routes."""
    app.include_router(router, dependencies=[Depends(refuse_unknown_parameters)])
    app.add_api_websocket_route(PATH, _follow)
    return list(router.routes)
