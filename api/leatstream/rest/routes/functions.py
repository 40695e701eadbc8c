"""``/v1/functions``"""

from __future__ import annotations

from fastapi import Response

from leatstream.model.functions import UserFunction
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
from leatstream.rest.schemas.functions import FunctionBody, FunctionCreation, FunctionList, FunctionView
from leatstream.services.environment import Precondition, Stored
from leatstream.services.functions import catalog as service
from leatstream.services.nouns.ownership import put_owned

router = api_router(prefix="/v1", tags=["functions"])
_NEW = Precondition(must_be_new=True)


def _answer(stored: Stored[UserFunction], response: Response) -> FunctionView:
    response.status_code = 201 if stored.created else 200
    response.headers["ETag"] = etag.write(stored.item.meta.generation)
    if stored.created:
        response.headers["Location"] = location("functions", stored.item.name)
    return FunctionView.from_domain(stored.item)


@router.get("/functions", responses=LISTING)
def list_functions(
    env: Env, caller: Caller, page_size: PageSize = 100, page_token: PageToken = None, q: NamePart = None
) -> FunctionList:
    """List user's functions by name."""
    return FunctionList.from_domain(service.list_functions(env, caller, page_size, page_token, only(q)))


@router.post("/functions", status_code=201, responses=WRITING)
def create_function(env: Env, caller: Caller, body: FunctionCreation, response: Response) -> FunctionView:
    """Create a user's function, which must not exist yet."""
    return _answer(service.put_function(env, caller, body.name, body.to_domain(), _NEW), response)


@router.get("/functions/{function}", responses=READING)
def get_function(env: Env, caller: Caller, function: NamePath, response: Response) -> FunctionView:
    """Show a user's function."""
    found = service.get_function(env, caller, function)
    response.headers["ETag"] = etag.write(found.meta.generation)
    return FunctionView.from_domain(found)


@router.put("/functions/{function}", responses={201: {"model": FunctionView}, **WRITING})
def put_function(
    env: Env, caller: Caller, function: NamePath, body: FunctionBody, pre: Pre, response: Response
) -> FunctionView:
    """Create or replace a user's function; one that queries call keeps its arguments and type."""
    stored = put_owned(
        env,
        caller,
        "function",
        quote(function),
        body.owner,
        lambda: service.put_function(env, caller, function, body.to_domain(), pre),
    )
    return _answer(stored, response)


@router.delete("/functions/{function}", status_code=204, responses=DELETING)
def delete_function(env: Env, caller: Caller, function: NamePath, pre: PreMatch) -> None:
    """Delete a user's function that no query calls."""
    service.delete_function(env, caller, function, pre)
