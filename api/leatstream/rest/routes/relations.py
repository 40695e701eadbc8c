"""``/v1/relations``"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query, Response

from leatstream.model.objects import RelationKind
from leatstream.rest import etag
from leatstream.rest.answers import DELETING, LISTING, READING, READING_STORE, WRITING_STORE, problems
from leatstream.rest.deps import (
    Caller,
    Env,
    FqnPath,
    NamePart,
    NameQuery,
    PageSize,
    PageToken,
    Pre,
    PreMatch,
    location,
    only,
    read_fqn,
)
from leatstream.rest.loads import slow
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.relations import RelationBody, RelationList, RelationView
from leatstream.rest.schemas.samples import RelationSample
from leatstream.services.nouns.ownership import put_owned
from leatstream.services.relations import relations as service
from leatstream.services.selects.samples import MOST_RECORDS
from leatstream.services.selects.samples import sample_relation as sample

router = api_router(prefix="/v1", tags=["relations"])


@router.get("/relations", responses=LISTING)
def list_relations(
    env: Env,
    caller: Caller,
    database: NameQuery = None,
    schema: NameQuery = None,
    page_size: PageSize = 100,
    page_token: PageToken = None,
    q: NamePart = None,
    kind: Annotated[RelationKind | None, Query(description="Only relations of this kind.")] = None,
    store: NameQuery = None,
    view: Annotated[
        Literal["full", "brief"],
        Query(description="`brief`: `columns` and `statement` are empty, `effective` has only the topic."),
    ] = "full",
) -> RelationList:
    """List relations by full name, of one database or schema if given."""
    found = service.list_relations(
        env, caller, database, schema, page_size, page_token, only(q, kind=kind, store=store)
    )
    return RelationList.from_domain(found, brief=view == "brief")


@router.get("/relations/{relation}", responses=READING)
def get_relation(env: Env, caller: Caller, relation: FqnPath, response: Response) -> RelationView:
    """Show a relation."""
    found = service.get_relation(env, caller, read_fqn(relation))
    response.headers["ETag"] = etag.write(found.meta.generation)
    return RelationView.from_domain(found)


@router.get("/relations/{relation}/sample", responses=READING_STORE | problems(504))
@slow
def sample_relation(
    env: Env,
    caller: Caller,
    relation: FqnPath,
    limit: Annotated[int, Query(ge=1, le=MOST_RECORDS, description="The most records.")] = 20,
    start: Annotated[
        Literal["latest", "earliest"],
        Query(
            alias="from",
            description="The newest records, newest first, or the oldest. Tables and views have no order.",
        ),
    ] = "latest",
) -> RelationSample:
    """Show a few records of a relation as rows, decoded by its columns and formats; no Spark driver starts.

    A record that is no row of the relation is shown with the reason, and no values.
    """
    return RelationSample.from_domain(sample(env, caller, read_fqn(relation), start, limit))


@router.put("/relations/{relation}", responses={201: {"model": RelationView}, **WRITING_STORE})
@slow
def put_relation(
    env: Env, caller: Caller, relation: FqnPath, body: RelationBody, pre: Pre, response: Response
) -> RelationView:
    """Create or replace a stream. Its entity is made if the store has none and the properties say how."""
    fqn = read_fqn(relation)
    stored = put_owned(
        env,
        caller,
        "relation",
        str(fqn),
        body.owner,
        lambda: service.put_relation(env, caller, fqn, body.to_domain(), pre),
    )
    response.status_code = 201 if stored.created else 200
    response.headers["ETag"] = etag.write(stored.item.meta.generation)
    if stored.created:
        response.headers["Location"] = location("relations", raw=str(stored.item.fqn))
    return RelationView.from_domain(stored.item)


@router.delete("/relations/{relation}", status_code=204, responses=DELETING)
@slow
def delete_relation(env: Env, caller: Caller, relation: FqnPath, pre: PreMatch) -> None:
    """Forget a relation that no query uses; its entity and records stay."""
    service.delete_relation(env, caller, read_fqn(relation), pre)
