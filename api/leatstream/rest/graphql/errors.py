"""Errors as GraphQL has them: one for each fault, with code, SQLSTATE, place and hint in ``extensions``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from graphql import GraphQLError, OperationDefinitionNode
from strawberry.exceptions import MissingQueryError
from strawberry.extensions import SchemaExtension
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError
from strawberry.types.execution import StreamExecutionResult
from strawberry.types.graphql import OperationType

from leatstream.errors import AccessError, LeatstreamError, RequestError
from leatstream.rest import problem
from leatstream.rest.graphql.request import Request
from leatstream.rest.streams import EVENTS

# Of what is wrong with the document itself: GraphQL's own word for it, and the place, stand in the error.
_INVALID = RequestError("validation", "The GraphQL document is not valid.")

_OF_DOCUMENT = (GraphQLError, MissingQueryError, CannotGetOperationTypeError, InvalidOperationTypeError)


def about_operation(error: BaseException | None) -> str | None:
    """What is wrong with the kind of an operation, or with its name; None for other errors."""
    if isinstance(error, InvalidOperationTypeError):
        if error.operation_type is OperationType.SUBSCRIPTION:
            return f"Subscriptions need a WebSocket, or the header Accept: {EVENTS}."
        return "Only subscriptions are streamed. Send queries and mutations by POST, accepting JSON."
    if isinstance(error, CannotGetOperationTypeError):
        return "The document has no such operation."
    return None


def shown(errors: Iterable[GraphQLError], request: Request) -> list[GraphQLError]:
    """Errors as clients see them. What nobody raised on purpose is logged and masked.

    Args:
        errors: of an execution.
        request: that they belong to; it notes denied access.
    """
    return [one for error in errors for one in _shown(error, request)]


def _shown(error: GraphQLError, request: Request) -> Iterator[GraphQLError]:
    cause = error.original_error
    text = about_operation(cause) or error.message
    if cause is None or isinstance(cause, _OF_DOCUMENT):
        wrong = {"status": _INVALID.status, "code": _INVALID.code, "sqlstate": _INVALID.sqlstate}
        yield _made(error, text, wrong, request)
        return
    known: LeatstreamError
    known = cause if isinstance(cause, LeatstreamError) else problem.for_caller(cause, "/graphql", request.id)
    if isinstance(known, AccessError) and known.code == "permission-denied":
        place = "/graphql/" + "/".join(map(str, error.path or ()))
        request.refusals.append((place, known.refused.role))
    for fault in known.faults:
        body = problem.fault_json(fault)
        detail = body.pop("detail")
        body |= {
            "status": known.status,
            "code": fault.code or known.code,
            "sqlstate": fault.sqlstate or known.sqlstate,
        }
        yield _made(error, detail, {**known.extra, **body}, request)


def _made(error: GraphQLError, text: str, extensions: dict[str, Any], request: Request) -> GraphQLError:
    return GraphQLError(
        text,
        nodes=error.nodes,
        source=error.source,
        positions=error.positions,
        path=error.path,
        extensions={**extensions, "requestId": request.id},
    )


class ShowErrors(SchemaExtension):
    """Translates the errors of each result of a stream before it is sent."""

    def on_stream_result(self, result: StreamExecutionResult) -> Iterator[None]:
        """Translate the errors of one result."""
        errors = getattr(result, "errors", None)
        if errors:
            result.errors = shown(errors, self.execution_context.context)  # type: ignore[union-attr]
        yield None


class NameTheOperation(SchemaExtension):
    """Refuses a document of several operations without the name of one; the library would run the first."""

    def on_validate(self) -> Iterator[None]:
        """Look at the parsed document."""
        context = self.execution_context
        document = context.graphql_document
        found = (
            [one for one in document.definitions if isinstance(one, OperationDefinitionNode)]
            if document
            else []
        )
        if len(found) > 1 and context._provided_operation_name is None:
            text = "The document has several operations. Name the one to run in operationName."
            context.pre_execution_errors = [GraphQLError(text, found)]
        yield None
