"""The error answers that routes declare, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from leatstream.rest.schemas.base import Problem

TEXTS = {
    400: "The request cannot be read: malformed JSON, SQL syntax, or a page token of another list.",
    401: "The bearer token is missing or not valid.",
    403: "The caller's role may not do this.",
    404: "The object does not exist.",
    409: "The state of the catalog does not allow this.",
    412: "The object has changed meanwhile.",
    413: "The request body is larger than 1 MiB.",
    422: "The request is not valid; `errors` holds every fault.",
    429: "The account has or sends too many such requests; try again after `Retry-After` seconds.",
    500: "An unexpected error; the server's log has more under the request id.",
    502: "The store refused the operation.",
    503: "The store, the engine or the catalog cannot be reached now.",
    504: "The database of the materialized views does not answer in time.",
}
_ALWAYS = (401, 403, 422, 429, 500, 503)
_BODY = (400, 409, 412, 413)
_STORE = (409, 502, 503)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Declares these error statuses besides those that every operation may answer with."""
    found = sorted({*_ALWAYS, *statuses})
    return {status: {"model": Problem, "description": TEXTS[status]} for status in found}


READING = problems(404)
LISTING = problems(400, 404)
WRITING = problems(404, *_BODY)
WRITING_STORE = problems(404, *_BODY, *_STORE)
DELETING = problems(404, 409, 412, *_STORE)
READING_STORE = problems(400, 404, *_STORE)
