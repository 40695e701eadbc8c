"""``/v1/stores``"""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from leatstream.model.names import quote
from leatstream.model.objects import Store, StoreState
from leatstream.rest import etag
from leatstream.rest.answers import DELETING, LISTING, READING, WRITING_STORE, problems
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
from leatstream.rest.loads import slow
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.stores import StoreBody, StoreList, StoreView
from leatstream.services.environment import Environment, Stored
from leatstream.services.nouns import stores as service
from leatstream.services.nouns.ownership import put_owned
from leatstream.services.statements.object_dry_run import try_store

router = api_router(prefix="/v1", tags=["stores"])


@router.get("/stores", responses=LISTING)
def list_stores(
    env: Env,
    caller: Caller,
    page_size: PageSize = 100,
    page_token: PageToken = None,
    q: NamePart = None,
    kind: Annotated[
        str | None, Query(max_length=100, description="Only stores of this kind, such as `kafka`.")
    ] = None,
    state: Annotated[StoreState | None, Query(description="Only stores in this state.")] = None,
) -> StoreList:
    """List stores by name."""
    return StoreList.from_domain(
        service.list_stores(env, caller, page_size, page_token, only(q, kind=kind, state=state))
    )


@router.post("/stores/{store}:test", responses=problems(404, 409))
@slow
def test_store(env: Env, caller: Caller, store: NamePath) -> StoreView:
    """Connect to the store now; the answer's status shows the result."""
    return StoreView.from_domain(service.test_store(env, caller, store))


@router.get("/stores/{store:noun}", responses=READING)
def get_store(env: Env, caller: Caller, store: NamePath, response: Response) -> StoreView:
    """Show a store, without its secrets."""
    found = service.get_store(env, caller, store)
    response.headers["ETag"] = etag.write(found.meta.generation)
    return StoreView.from_domain(found)


@router.put("/stores/{store:noun}", responses={201: {"model": StoreView}, **WRITING_STORE})
@slow
def put_store(
    env: Env,
    caller: Caller,
    store: NamePath,
    body: StoreBody,
    pre: Pre,
    response: Response,
    dry_run: Annotated[
        bool, Query(description="Keep nothing: check these settings, connect with them, and show the status.")
    ] = False,
) -> StoreView:
    """Create or replace a store and ask it once. One that does not answer is kept; its status says why."""
    connector_class = env.connector_classes.get(body.kind)
    config, secrets = body.settings(connector_class.secret_fields() if connector_class else ())

    def put(into: Environment) -> Stored[Store]:
        return put_owned(
            into,
            caller,
            "store",
            quote(store),
            body.owner,
            lambda: service.put_store(
                into, caller, store, body.kind, config, secrets, body.comment, pre, body.schema_registry
            ),
        )

    if dry_run:
        return StoreView.from_domain(try_store(env, put))
    stored = put(env)
    response.status_code = 201 if stored.created else 200
    response.headers["ETag"] = etag.write(stored.item.meta.generation)
    if stored.created:
        response.headers["Location"] = location("stores", store)
    return StoreView.from_domain(stored.item)


@router.delete("/stores/{store:noun}", status_code=204, responses=DELETING)
def delete_store(env: Env, caller: Caller, store: NamePath, pre: PreMatch) -> None:
    """Delete a store that no relation uses. Its secrets go with it; the data in it stays."""
    service.delete_store(env, caller, store, pre)
