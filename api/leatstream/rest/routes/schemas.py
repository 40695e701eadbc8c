"""``/v1/databases/{database}/schemas``"""

from __future__ import annotations

from fastapi import Response

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
from leatstream.rest.schemas.databases import SchemaBody, SchemaList, SchemaView
from leatstream.services.nouns import schemas as service
from leatstream.services.nouns.ownership import put_owned

router = api_router(prefix="/v1/databases/{database}", tags=["schemas"])


@router.get("/schemas", responses=LISTING)
def list_schemas(
    env: Env,
    caller: Caller,
    database: NamePath,
    page_size: PageSize = 100,
    page_token: PageToken = None,
    q: NamePart = None,
) -> SchemaList:
    """List the schemas of a database by name."""
    return SchemaList.from_domain(service.list_schemas(env, caller, database, page_size, page_token, only(q)))


@router.get("/schemas/{schema}", responses=READING)
def get_schema(
    env: Env, caller: Caller, database: NamePath, schema: NamePath, response: Response
) -> SchemaView:
    """Show a schema."""
    found = service.get_schema(env, caller, database, schema)
    response.headers["ETag"] = etag.write(found.meta.generation)
    return SchemaView.from_domain(found)


@router.put("/schemas/{schema}", responses={201: {"model": SchemaView}, **WRITING})
def put_schema(
    env: Env,
    caller: Caller,
    database: NamePath,
    schema: NamePath,
    body: SchemaBody,
    pre: Pre,
    response: Response,
) -> SchemaView:
    """Create or replace a schema."""
    stored = put_owned(
        env,
        caller,
        "schema",
        f"{quote(database)}.{quote(schema)}",
        body.owner,
        lambda: service.put_schema(env, caller, database, schema, body.comment, pre),
    )
    response.status_code = 201 if stored.created else 200
    response.headers["ETag"] = etag.write(stored.item.meta.generation)
    if stored.created:
        response.headers["Location"] = location("databases", database, "schemas", schema)
    return SchemaView.from_domain(stored.item)


@router.delete("/schemas/{schema}", status_code=204, responses=DELETING)
def delete_schema(env: Env, caller: Caller, database: NamePath, schema: NamePath, pre: PreMatch) -> None:
    """Delete an empty schema."""
    service.delete_schema(env, caller, database, schema, pre)
