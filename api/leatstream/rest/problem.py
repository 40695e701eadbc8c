"""Problem documents (RFC 9457): what every answer of status 400 and above looks like."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from leatstream.errors import (
    AccessError,
    CatalogAway,
    Fault,
    InternalError,
    LeatstreamError,
    RequestError,
    sentence,
)

MEDIA_TYPE = "application/problem+json"
_log = logging.getLogger("leatstream.rest")


@dataclass(frozen=True, slots=True)
class HttpFault:
    """A fault of the HTTP request itself, before any service is asked; it has no place in the error tree."""

    code: str
    title: str
    sqlstate: str = "08P01"  # protocol violation
    hint: str | None = None


HTTP_FAULTS = {
    404: HttpFault("no-such-path", "No such path", hint="Look the path up at /docs, or in /openapi.json."),
    405: HttpFault("method-not-allowed", "Method not allowed"),
    415: HttpFault("unsupported-media-type", "Media type is not supported"),
}


def fault_json(fault: Fault) -> dict[str, Any]:
    """One fault without its empty members."""
    body = {name: value for name, value in asdict(fault).items() if value is not None}
    return {"detail": body.pop("detail"), **body}


def document(error: LeatstreamError, instance: str, request_id: str) -> dict[str, Any]:
    """The problem document of an error.

    Args:
        error: what was raised.
        instance: path of the request.
        request_id: also in the answer's ``X-Request-Id``.
    """
    return {
        "type": f"/problems/{error.code}",
        "title": error.title,
        "status": error.status,
        "code": error.code,
        "detail": error.detail,
        "instance": instance,
        "request_id": request_id,
        "sqlstate": error.sqlstate,
        "errors": [fault_json(fault) for fault in error.faults],
        **error.extra,
    }


@contextmanager
def about_sql() -> Iterator[None]:
    """Say of faults with a place in the SQL text that the text is the body's member ``sql``."""
    try:
        yield
    except LeatstreamError as error:
        error.faults = tuple(
            replace(f, pointer="#/sql") if f.position is not None and f.pointer is None else f
            for f in error.faults
        )
        raise


def of_body(status: int) -> RequestError:
    """What is wrong with a body that the gate does not let pass: 413 too large, 408 too slow."""
    if status == 413:
        return RequestError("too-large", "The request body is larger than 1 MiB.", hint="Split it up.")
    return RequestError("validation", "The request body did not arrive in time.", hint="Send it in one go.")


def answer(error: LeatstreamError, instance: str, request_id: str) -> JSONResponse:
    """The answer to an error, with the headers its status calls for.

    Args:
        error: what was raised.
        instance: path of the request.
        request_id: also in the answer's ``X-Request-Id``.
    """
    headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
    if error.retryable:
        headers["Retry-After"] = str(error.retry_after)
    body = document(error, instance, request_id)
    return JSONResponse(body, error.status, headers, media_type=MEDIA_TYPE)


def unexpected(error: Exception, instance: str, request_id: str) -> JSONResponse:
    """The answer to an error that nobody raised on purpose: its traceback is logged, not returned.

    Args:
        error: what was raised.
        instance: path of the request.
        request_id: by which the log has it.
    """
    return answer(for_caller(error, instance, request_id), instance, request_id)


def for_caller(error: Exception, instance: str, request_id: str) -> LeatstreamError:
    """The answer to an error that nobody raised on purpose; the log has the rest.

    Args:
        error: what was raised.
        instance: path of the request.
        request_id: by which the log has it.
    """
    if isinstance(error, CatalogAway):
        reply = error.for_caller()
        _log.warning("request %s (%s) failed: %s", request_id, instance, reply.detail)
        return reply
    _log.error("request %s (%s) failed", request_id, instance, exc_info=error)
    return InternalError(
        "internal",
        "An unexpected error happened. Nothing half done was kept.",
        hint=f"Look for request id {request_id} in the server's log.",
    )


def request_id_of(request: Request) -> str:
    """The id that the gate has given this request."""
    return str(request.scope.get("leatstream.request_id", ""))


def from_validation(
    errors: Sequence[Mapping[str, Any]], content_type: str = "application/json"
) -> RequestError:
    """Turn the validator's faults into ours, without the values that were sent."""
    faults = [_validation_fault(item) for item in errors]
    if "json" not in content_type and any(item["loc"][0] == "body" for item in errors):
        hint = "Send the header Content-Type: application/json."
        faults = [Fault("The request body is not JSON.", "validation", hint=hint, sqlstate="22023")]
    first = faults[0]
    detail = first.detail if len(faults) == 1 else f"{len(faults)} values are not valid."
    return RequestError("validation", detail, faults=faults)


def _subject(item: Mapping[str, Any]) -> str:
    place = [str(part) for part in item["loc"][1:]]
    return f"{'.'.join(place)}: " if place and item["type"] != "json_invalid" else ""


def _validation_fault(item: Mapping[str, Any]) -> Fault:
    place, *path = item["loc"]
    text = sentence(str(item["msg"]).removeprefix("Value error, "))
    if item["type"] == "json_invalid":
        reason = (item.get("ctx") or {}).get("error", "it cannot be read")
        at = f" at character {path[0]}" if path else ""
        return Fault(f"The request body is not valid JSON{at}: {reason}.", "validation", sqlstate="22023")
    if place == "body":
        pointer = "#" + "".join(f"/{_escape(str(part))}" for part in path)
        # With its subject: a client may show the sentence without the pointer.
        return Fault(sentence(f"{_subject(item)}{text}"), "validation", pointer, sqlstate="22023")
    name = ".".join(str(part) for part in path)
    # Without a name it is about several parameters together.
    where = f"{place} parameter {name}: " if name else f"{place} parameters: "
    return Fault(sentence(f"{where}{text}"), "validation", sqlstate="22023")


def _escape(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")


def allowed_methods(request: Request, routes: Sequence[Any]) -> list[str]:
    """Every method that some route has at the request's path (Starlette returns only the first route's)."""
    matching = (r for r in routes if isinstance(r, Route) and r.matches(request.scope)[0] is not Match.NONE)
    return sorted({method for route in matching for method in route.methods or ()})


def install(app: FastAPI, routes: Sequence[Any]) -> None:
    """Make the application answer every error with a problem document.

    Args:
        app: the application.
        routes: all its routes, for the Allow header of a 405.
    """

    @app.exception_handler(LeatstreamError)
    async def on_error(request: Request, error: LeatstreamError) -> JSONResponse:
        if isinstance(error, AccessError):
            request.scope["leatstream.role"] = error.refused.role  # for the audit log
        return answer(error, request.url.path, request_id_of(request))

    @app.exception_handler(RequestValidationError)
    async def on_validation(request: Request, error: RequestValidationError) -> JSONResponse:
        content_type = request.headers.get("content-type", "")
        problem = from_validation(error.errors(), content_type)
        return answer(problem, request.url.path, request_id_of(request))

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> JSONResponse:
        return _http_answer(request, error, routes)


def _http_answer(request: Request, error: HTTPException, routes: Sequence[Any]) -> JSONResponse:
    instance, request_id = request.url.path, request_id_of(request)
    if error.status_code in (408, 413):
        return answer(of_body(error.status_code), instance, request_id)
    if error.status_code == 400:
        hint = "Send JSON in UTF-8, nested a few levels deep at most."
        return answer(
            RequestError("validation", "The request body cannot be read.", hint=hint), instance, request_id
        )
    if error.status_code not in HTTP_FAULTS:
        return unexpected(error, instance, request_id)
    fault, headers = HTTP_FAULTS[error.status_code], dict(error.headers or {})
    detail = f"{request.method} {instance}: {fault.title[0].lower()}{fault.title[1:]}."
    if error.status_code == 405:
        headers["Allow"] = ", ".join(allowed_methods(request, routes))
        detail = f"{request.method} is not allowed at {instance}; allowed: {headers['Allow']}."
    body = {
        "type": f"/problems/{fault.code}",
        "title": fault.title,
        "status": error.status_code,
        "code": fault.code,
        "detail": detail,
        "instance": instance,
        "request_id": request_id,
        "sqlstate": fault.sqlstate,
        "errors": [fault_json(Fault(detail, fault.code, hint=fault.hint))],
    }
    return JSONResponse(body, error.status_code, headers, media_type=MEDIA_TYPE)
