"""``/v1/function-sources``"""

from __future__ import annotations

from fastapi import Response

from leatstream.model.functions import FunctionSource
from leatstream.model.names import quote
from leatstream.rest import etag
from leatstream.rest.answers import DELETING, LISTING, READING, WRITING
from leatstream.rest.deps import (
    Caller,
    Env,
    NamePart,
    NamePath,
    PageSize,
    PageToken,
    Pre,
    PreMatch,
    location,
    only,
)
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.functions import (
    FunctionSourceBody,
    FunctionSourceCreation,
    FunctionSourceList,
    FunctionSourceView,
)
from leatstream.services.environment import Precondition, Stored
from leatstream.services.functions import catalog as service
from leatstream.services.nouns.ownership import put_owned
from leatstream.services.queries.restart_callers import restart_callers

router = api_router(prefix="/v1", tags=["function-sources"])
_NEW = Precondition(must_be_new=True)


def _answer(stored: Stored[FunctionSource], response: Response) -> FunctionSourceView:
    response.status_code = 201 if stored.created else 200
    response.headers["ETag"] = etag.write(stored.item.meta.generation)
    if stored.created:
        response.headers["Location"] = location("function-sources", stored.item.name)
    return FunctionSourceView.from_domain(stored.item)


@router.get("/function-sources", responses=LISTING)
def list_function_sources(
    env: Env, caller: Caller, page_size: PageSize = 100, page_token: PageToken = None, q: NamePart = None
) -> FunctionSourceList:
    """List function sources by name."""
    return FunctionSourceList.from_domain(
        service.list_function_sources(env, caller, page_size, page_token, only(q))
    )


@router.post("/function-sources", status_code=201, responses=WRITING)
def create_function_source(
    env: Env, caller: Caller, body: FunctionSourceCreation, response: Response
) -> FunctionSourceView:
    """Create a function source, which must not exist yet."""
    return _answer(
        service.put_function_source(env, caller, body.name, body.file, body.content, body.comment, _NEW),
        response,
    )


@router.get("/function-sources/{function_source}", responses=READING)
def get_function_source(
    env: Env, caller: Caller, function_source: NamePath, response: Response
) -> FunctionSourceView:
    """Show a function source."""
    found = service.get_function_source(env, caller, function_source)
    response.headers["ETag"] = etag.write(found.meta.generation)
    return FunctionSourceView.from_domain(found)


@router.put("/function-sources/{function_source}", responses={201: {"model": FunctionSourceView}, **WRITING})
def put_function_source(
    env: Env,
    caller: Caller,
    function_source: NamePath,
    body: FunctionSourceBody,
    pre: Pre,
    response: Response,
) -> FunctionSourceView:
    """Create or replace a function source. Running queries that call its functions are restarted with it."""
    stored = put_owned(
        env,
        caller,
        "function_source",
        quote(function_source),
        body.owner,
        lambda: service.put_function_source(
            env, caller, function_source, body.file, body.content, body.comment, pre
        ),
    )
    if body.restart_queries:
        # Also where nothing has changed: an earlier try may have been cut off here.
        restart_callers(env, caller, function_source, body.content)
    return _answer(stored, response)


@router.delete("/function-sources/{function_source}", status_code=204, responses=DELETING)
def delete_function_source(env: Env, caller: Caller, function_source: NamePath, pre: PreMatch) -> None:
    """Delete a function source that no function stands on."""
    service.delete_function_source(env, caller, function_source, pre)
