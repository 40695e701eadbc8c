"""``/v1/lineage``"""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from leatstream.rest.answers import LISTING
from leatstream.rest.deps import Caller, Env
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.catalog import LineageView
from leatstream.services.lineage.graph import lineage

router = api_router(prefix="/v1", tags=["catalog"])


@router.get("/lineage", responses=LISTING)
def get_lineage(
    env: Env,
    caller: Caller,
    root: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=800,
            description="Object in the middle: `demo.public.pageviews`, or with its kind `query:enriched`, "
            "`store:kafka`, `entity:kafka/pageviews`. Left out = everything that the caller sees.",
        ),
    ] = None,
    depth: Annotated[
        int | None, Query(ge=1, le=1000, description="The most edges from the root; left out = all.")
    ] = None,
) -> LineageView:
    """Show what records pass through before and after an object: stores, entities, relations and queries."""
    return LineageView.from_domain(lineage(env, caller, root, depth))
