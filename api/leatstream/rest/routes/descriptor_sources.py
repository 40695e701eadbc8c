"""``/v1/descriptor-sources``"""

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
from leatstream.rest.schemas.registered import (
    DescriptorSourceBody,
    DescriptorSourceList,
    DescriptorSourceView,
)
from leatstream.services.nouns import descriptor_sources as service
from leatstream.services.nouns.ownership import put_owned

router = api_router(prefix="/v1", tags=["descriptor-sources"])


@router.get("/descriptor-sources", responses=LISTING)
def list_descriptor_sources(
    env: Env, caller: Caller, page_size: PageSize = 100, page_token: PageToken = None, q: NamePart = None
) -> DescriptorSourceList:
    """List descriptor sources by name."""
    return DescriptorSourceList.from_domain(
        service.list_descriptor_sources(env, caller, page_size, page_token, only(q))
    )


@router.get("/descriptor-sources/{source:noun}", responses=READING)
def get_descriptor_source(
    env: Env, caller: Caller, source: NamePath, response: Response
) -> DescriptorSourceView:
    """Show a descriptor source."""
    found = service.get_descriptor_source(env, caller, source)
    response.headers["ETag"] = etag.write(found.meta.generation)
    return DescriptorSourceView.from_domain(found)


@router.put("/descriptor-sources/{source:noun}", responses={201: {"model": DescriptorSourceView}, **WRITING})
def put_descriptor_source(
    env: Env, caller: Caller, source: NamePath, body: DescriptorSourceBody, pre: Pre, response: Response
) -> DescriptorSourceView:
    """Create or replace a descriptor source; a file that is no descriptor set is refused."""
    stored = put_owned(
        env,
        caller,
        "descriptor_source",
        quote(source),
        body.owner,
        lambda: service.put_descriptor_source(env, caller, source, body.descriptor_set, body.comment, pre),
    )
    response.status_code = 201 if stored.created else 200
    response.headers["ETag"] = etag.write(stored.item.meta.generation)
    if stored.created:
        response.headers["Location"] = location("descriptor-sources", source)
    return DescriptorSourceView.from_domain(stored.item)


@router.delete("/descriptor-sources/{source:noun}", status_code=204, responses=DELETING)
def delete_descriptor_source(env: Env, caller: Caller, source: NamePath, pre: PreMatch) -> None:
    """Delete a descriptor source."""
    service.delete_descriptor_source(env, caller, source, pre)
