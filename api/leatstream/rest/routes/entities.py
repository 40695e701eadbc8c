"""``/v1/stores/{store}/entities``"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from leatstream.errors import CatalogError, StoreError
from leatstream.rest import streams
from leatstream.rest.accepted import while_accepted
from leatstream.rest.answers import DELETING, READING_STORE, WRITING_STORE
from leatstream.rest.deps import (
    DURATION_PATTERN,
    Caller,
    EntityPath,
    Env,
    Moment,
    MustBeNew,
    NamePart,
    NamePath,
    PageSize,
    PageToken,
    location,
    only,
    seconds,
)
from leatstream.rest.loads import hold, slow
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.entities import EntityBody, EntityList, EntityView, RecordView
from leatstream.services.environment import Environment, Principal
from leatstream.services.relations import entities as service
from leatstream.services.relations.record_streams import RecordsWanted, records_from

router = api_router(prefix="/v1/stores/{store}", tags=["entities"])
_AFTER = r"^[0-9]{1,9}:[0-9]{1,18}(,[0-9]{1,9}:[0-9]{1,18})*$"

_RECORDS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": RecordView,
        "description": "Records as they come, one JSON object a line, or as server-sent events. "
        "An error on the way is a last line or event with the member `error`.",
    },
    **READING_STORE,
}


@router.get("/entities", responses=READING_STORE)
@slow
def list_entities(
    env: Env,
    caller: Caller,
    store: NamePath,
    page_size: PageSize = 100,
    page_token: PageToken = None,
    q: NamePart = None,
) -> EntityList:
    """List the entities of a store by name, read live."""
    return EntityList.from_domain(
        service.list_entities(env, caller, store, page_size, page_token, only(q)), store
    )


@router.get("/entities/{entity}", responses=READING_STORE)
@slow
def get_entity(env: Env, caller: Caller, store: NamePath, entity: EntityPath) -> EntityView:
    """Show an entity, read live."""
    return EntityView.from_domain(service.get_entity(env, caller, store, entity), store)


@router.put("/entities/{entity}", responses={201: {"model": EntityView}, **WRITING_STORE})
@slow
def put_entity(
    env: Env,
    caller: Caller,
    store: NamePath,
    entity: EntityPath,
    body: EntityBody,
    new: MustBeNew,
    response: Response,
) -> EntityView:
    """Create an entity, or bring it to the given settings."""
    if new:
        _refuse_existing(env, caller, store, entity)
    stored = service.put_entity(env, caller, store, entity, body.properties(), body.configs(), body.shape())
    response.status_code = 201 if stored.created else 200
    if stored.created:
        response.headers["Location"] = location("stores", store, "entities", raw=stored.item.name)
    return EntityView.from_domain(stored.item, store)


def _refuse_existing(env: Environment, caller: Principal, store: str, entity: str) -> None:
    try:
        service.get_entity(env, caller, store, entity)
    except StoreError as error:
        if error.code != "entity-not-found":
            raise
    else:
        raise CatalogError("already-exists", f"Store {store} has an entity '{entity}' already.")


@router.delete("/entities/{entity}", status_code=204, responses=DELETING)
@slow
def delete_entity(env: Env, caller: Caller, store: NamePath, entity: EntityPath) -> None:
    """Delete an entity and its records; no relation may stand on it."""
    service.delete_entity(env, caller, store, entity)


@router.get("/entities/{entity}/records", response_class=StreamingResponse, responses=_RECORDS)
async def read_records(
    env: Env,
    caller: Caller,
    request: Request,
    store: NamePath,
    entity: EntityPath,
    start: Annotated[
        Literal["beginning", "latest"], Query(alias="from", description="Where to begin.")
    ] = "latest",
    since: Annotated[
        Moment | None,
        Query(
            description="Begin with records of this time, in place of `from`. Without an offset it is UTC."
        ),
    ] = None,
    partition: Annotated[
        str | None, Query(min_length=1, max_length=200, description="Only this partition or shard.")
    ] = None,
    offset: Annotated[
        int | None, Query(ge=0, lt=2**63, description="Begin at this offset of the partition.")
    ] = None,
    after: Annotated[
        str | None,
        Query(
            max_length=20_000,
            pattern=_AFTER,
            description="Continue behind these places, as `partition:offset`, joined by commas. Other "
            "partitions begin where `from` or `since` says.",
            examples=["0:41,1:12"],
        ),
    ] = None,
    q: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=1000,
            description="Only records with this text in key or value, in any case.",
        ),
    ] = None,
    rate: Annotated[
        int | None, Query(ge=1, le=10_000, description="The most records a second; the others come later.")
    ] = None,
    limit: Annotated[int | None, Query(ge=1, le=1_000_000, description="End after so many records.")] = None,
    timeout: Annotated[
        str | None,
        Query(pattern=DURATION_PATTERN, description="End after so long without a record, such as `10s`."),
    ] = None,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Response:
    """Print records as they come: NDJSON, or server-sent events for `Accept: text/event-stream`.

    Without limit and timeout the answer ends when the client disconnects.
    """
    idle = seconds(timeout) if timeout is not None else None
    threads = await hold(lambda loads: loads.streams)
    behind = dict(one.split(":") for one in after.split(",")) if after else {}
    continued = {one: int(at) for one, at in behind.items()}
    place = replace(records_from(start == "beginning", since, partition, offset), after=continued)
    wanted_records = RecordsWanted(place, q, limit, rate, idle)
    read = partial(service.read_records, env, caller, store, entity, wanted_records)
    records = await to_thread.run_sync(read, limiter=threads)
    wanted = streams.EVENTS if accept and streams.EVENTS in accept else streams.NDJSON
    return await streams.respond(records, wanted, partial(while_accepted, request))
