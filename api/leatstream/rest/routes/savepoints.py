"""``/v1/savepoints``: taken of queries, shown and deleted here"""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from leatstream.model.registered import SavepointState
from leatstream.rest import etag
from leatstream.rest.answers import DELETING, LISTING, READING, WRITING_STORE
from leatstream.rest.deps import Caller, Env, NamePart, NamePath, PageSize, PageToken, PreMatch, only
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.savepoints import SavepointBody, SavepointList, SavepointView
from leatstream.services.queries.checkpoints import savepoints as service

router = api_router(prefix="/v1", tags=["savepoints"])


@router.post("/queries/{query}:savepoint", status_code=202, responses=WRITING_STORE)
def take_savepoint(env: Env, caller: Caller, query: NamePath, body: SavepointBody) -> SavepointView:
    """Stop a query in order and copy its checkpoint to a savepoint, which is ready when the job has ended."""
    return SavepointView.from_domain(service.take_savepoint(env, caller, query, body.name))


@router.get("/savepoints", responses=LISTING)
def list_savepoints(
    env: Env,
    caller: Caller,
    page_size: PageSize = 100,
    page_token: PageToken = None,
    q: NamePart = None,
    state: Annotated[SavepointState | None, Query(description="Only savepoints in this state.")] = None,
) -> SavepointList:
    """List savepoints by name."""
    return SavepointList.from_domain(
        service.list_savepoints(env, caller, page_size, page_token, only(q, state=state))
    )


@router.get("/savepoints/{savepoint:noun}", responses=READING)
def get_savepoint(env: Env, caller: Caller, savepoint: NamePath, response: Response) -> SavepointView:
    """Show a savepoint: of which query and statement, and how far it had come."""
    found = service.get_savepoint(env, caller, savepoint)
    response.headers["ETag"] = etag.write(found.meta.generation)
    return SavepointView.from_domain(found)


@router.delete("/savepoints/{savepoint:noun}", status_code=204, responses=DELETING)
def delete_savepoint(env: Env, caller: Caller, savepoint: NamePath, pre: PreMatch) -> None:
    """Delete a savepoint with its files."""
    service.delete_savepoint(env, caller, savepoint, pre)
