"""``/v1/applications``: made by SQL, shown and deleted here"""

from __future__ import annotations

from fastapi import APIRouter, Response

from leatstream.rest import etag
from leatstream.rest.answers import DELETING, LISTING, READING
from leatstream.rest.deps import Caller, Env, NamePath, PageSize, PageToken, PreMatch
from leatstream.rest.schemas.applications import ApplicationList, ApplicationView
from leatstream.services import applications as service

router = APIRouter(prefix="/v1", tags=["applications"])


@router.get("/applications", responses=LISTING)
def list_applications(
    env: Env, caller: Caller, page_size: PageSize = 100, page_token: PageToken = None
) -> ApplicationList:
    """List applications by name."""
    return ApplicationList.from_domain(service.list_applications(env, caller, page_size, page_token))


@router.get("/applications/{application:noun}", responses=READING)
def get_application(env: Env, caller: Caller, application: NamePath, response: Response) -> ApplicationView:
    """Show an application and the names of what it is made of."""
    found = service.get_application(env, caller, application)
    response.headers["ETag"] = etag.write(found.meta.generation)
    return ApplicationView.from_domain(found)


@router.delete("/applications/{application:noun}", status_code=204, responses=DELETING)
def delete_application(env: Env, caller: Caller, application: NamePath, pre: PreMatch) -> None:
    """End and delete an application's queries and the streams it made; topics and records stay."""
    service.delete_application(env, caller, application, pre)
