"""``/v1/databases``"""

from __future__ import annotations

from functools import partial

from fastapi import Response

from leatstream.model.names import quote
from leatstream.model.objects import Database
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
from leatstream.rest.schemas.databases import DatabaseBody, DatabaseCreation, DatabaseList, DatabaseView
from leatstream.services.environment import Stored
from leatstream.services.nouns import databases as service
from leatstream.services.nouns.ownership import put_owned

router = api_router(prefix="/v1", tags=["databases"])


def _answer(stored: Stored[Database], response: Response) -> DatabaseView:
    response.status_code = 201 if stored.created else 200
    response.headers["ETag"] = etag.write(stored.item.meta.generation)
    if stored.created:
        response.headers["Location"] = location("databases", stored.item.name)
    return DatabaseView.from_domain(stored.item)


@router.get("/databases", responses=LISTING)
def list_databases(
    env: Env, caller: Caller, page_size: PageSize = 100, page_token: PageToken = None, q: NamePart = None
) -> DatabaseList:
    """List databases by name."""
    return DatabaseList.from_domain(service.list_databases(env, caller, page_size, page_token, only(q)))


@router.post("/databases", status_code=201, responses=WRITING)
def create_database(env: Env, caller: Caller, body: DatabaseCreation, response: Response) -> DatabaseView:
    """Create a database, which must not exist yet. It gets a schema `public`."""
    name, make = quote(body.name), partial(service.create_database, env, caller, body.name, body.comment)
    return _answer(put_owned(env, caller, "database", name, body.owner, make), response)


@router.get("/databases/{database}", responses=READING)
def get_database(env: Env, caller: Caller, database: NamePath, response: Response) -> DatabaseView:
    """Show a database."""
    found = service.get_database(env, caller, database)
    response.headers["ETag"] = etag.write(found.meta.generation)
    return DatabaseView.from_domain(found)


@router.put("/databases/{database}", responses={201: {"model": DatabaseView}, **WRITING})
def put_database(
    env: Env, caller: Caller, database: NamePath, body: DatabaseBody, pre: Pre, response: Response
) -> DatabaseView:
    """Create or replace a database. A new one gets a schema `public`."""
    stored = put_owned(
        env,
        caller,
        "database",
        quote(database),
        body.owner,
        lambda: service.put_database(env, caller, database, body.comment, pre),
    )
    return _answer(stored, response)


@router.delete("/databases/{database}", status_code=204, responses=DELETING)
def delete_database(env: Env, caller: Caller, database: NamePath, pre: PreMatch) -> None:
    """Delete a database that holds nothing but an empty schema `public`."""
    service.delete_database(env, caller, database, pre)
