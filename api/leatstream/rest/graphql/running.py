"""Runs documents: queries and the mutation at once, subscriptions over a WebSocket or as server-sent events.

The library and the schema take half a second: ``routes.py`` imports this module at the first request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from fastapi import Response, WebSocket
from graphql import GraphQLError
from strawberry.exceptions import ConnectionRejectionError
from strawberry.fastapi import GraphQLRouter
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError
from strawberry.subscriptions import GRAPHQL_TRANSPORT_WS_PROTOCOL
from strawberry.types.graphql import OperationType
from strawberry.types.unset import UNSET, UnsetType

from leatstream.errors import AccessError
from leatstream.rest.gate import bearer
from leatstream.rest.graphql.answers import encode, encode_message
from leatstream.rest.graphql.errors import shown
from leatstream.rest.graphql.request import Request
from leatstream.rest.graphql.schema import make_schema
from leatstream.services.nouns.audit import in_use, note_refusal

if TYPE_CHECKING:
    from leatstream.rest.graphql.routes import GraphqlBody

OF_THE_SPECIFICATION = "application/graphql-response+json"
_POSTED = (OperationType.QUERY, OperationType.MUTATION)
_INIT_SECONDS, _MOST_SUBSCRIPTIONS, _QUIET_SECONDS = 10, 20, 10.0
_schema = lru_cache(maxsize=1)(make_schema)


def execute(request: Request, body: GraphqlBody, strict: bool) -> Response:
    """Run a query or mutation: resolvers ask the catalog and stores, which blocks.

    Args:
        request: that it belongs to.
        body: the document and its variables.
        strict: whether the client knows the media type of the specification.
    """
    try:
        result = _schema().execute_sync(
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
    for place, role in request.refusals:
        note_refusal(request.env, in_use(request.principal, role), "POST", place, "permission-denied")
    status = 400 if strict and data is None else 200
    media_type = OF_THE_SPECIFICATION if strict else "application/json"
    return Response(encode(data, errors), status, media_type=media_type)


async def chunks(request: Request, body: GraphqlBody) -> AsyncIterator[bytes]:
    """Server-sent events ``next`` for each result, then ``complete``; a comment while nothing comes."""
    # Lets the client see the answer's head.
    yield b": idle\n\n"
    results = await _schema().stream(
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
        _schema(),
        graphql_ide=None,
        allow_queries_via_get=False,
        subscription_protocols=[GRAPHQL_TRANSPORT_WS_PROTOCOL],
        connection_init_wait_timeout=timedelta(seconds=_INIT_SECONDS),
        max_subscriptions_per_connection=_MOST_SUBSCRIPTIONS,
    )


async def follow(websocket: WebSocket) -> None:
    """Speak the WebSocket protocol until the client leaves."""
    request = Request(websocket.app.state.env, websocket.scope, transport="stream")
    await _sockets().run(websocket, context=request, root_value=None)
