"""``/v1/applications``"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Response

from leatstream.model.names import quote
from leatstream.model.objects import QueryState
from leatstream.model.registered import Application
from leatstream.rest import etag
from leatstream.rest.answers import DELETING, LISTING, READING, WRITING_STORE
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
from leatstream.rest.problem import about_sql
from leatstream.rest.routers import api_router
from leatstream.rest.routes.queries import Tail
from leatstream.rest.schemas.applications import ApplicationBody, ApplicationList, ApplicationView
from leatstream.rest.schemas.queries import QueryLogs
from leatstream.rest.waiting import WaitFor, WaitTime, look_until
from leatstream.services.applications import catalog as service
from leatstream.services.applications import removal
from leatstream.services.environment import Environment
from leatstream.services.nouns.ownership import put_owned

router = api_router(prefix="/v1", tags=["applications"])

OnlyFailed = Annotated[bool, Query(description="Leave those alone that have not failed.")]


def _view(env: Environment, application: Application, response: Response) -> ApplicationView:
    response.headers["ETag"] = etag.write(application.meta.generation)
    with env.open_unit(write=False) as unit:
        return ApplicationView.from_domain(service.shown(unit, application))


@router.get("/applications", responses=LISTING)
def list_applications(
    env: Env,
    caller: Caller,
    page_size: PageSize = 100,
    page_token: PageToken = None,
    q: NamePart = None,
    state: Annotated[QueryState | None, Query(description="Only applications in this state.")] = None,
) -> ApplicationList:
    """List applications by name."""
    return ApplicationList.from_domain(
        service.list_applications(env, caller, page_size, page_token, only(q, state=state))
    )


@router.get("/applications/{application:noun}", responses=READING)
async def get_application(
    env: Env,
    caller: Caller,
    application: NamePath,
    response: Response,
    wait_for: WaitFor = None,
    timeout: WaitTime = "30s",
) -> ApplicationView:
    """Show an application and what it is made of; with `wait_for`, wait until its queries are so."""
    found = await look_until(
        env,
        lambda: service.show_application(env, caller, application),
        lambda one: one.state,
        wait_for,
        timeout,
    )
    response.headers["ETag"] = etag.write(found.application.meta.generation)
    return ApplicationView.from_domain(found)


@router.put("/applications/{application:noun}", responses={201: {"model": ApplicationView}, **WRITING_STORE})
@slow
def put_application(
    env: Env, caller: Caller, application: NamePath, body: ApplicationBody, pre: Pre, response: Response
) -> ApplicationView:
    """Create or replace an application, all of it or nothing. `plan` says what became of each query."""
    with about_sql():
        stored = put_owned(
            env,
            caller,
            "application",
            quote(application),
            body.owner,
            lambda: service.put_application(env, caller, application, body.to_domain(), pre),
        )
    response.status_code = 201 if stored.created else 200
    if stored.created:
        response.headers["Location"] = location("applications", stored.item.name)
    return _view(env, stored.item, response)


@router.post("/applications/{application}:restart", status_code=202, responses=WRITING_STORE)
def restart_application(
    env: Env, caller: Caller, application: NamePath, response: Response, only_failed: OnlyFailed = False
) -> ApplicationView:
    """Start its queries again from their last checkpoints."""
    service.restart_application(env, caller, application, only_failed)
    return _view(env, service.get_application(env, caller, application), response)


@router.get("/applications/{application}/logs", responses=READING)
def get_application_logs(env: Env, caller: Caller, application: NamePath, tail: Tail = 50) -> QueryLogs:
    """Show the last log lines of its queries, of those that failed if any has."""
    return QueryLogs(lines=service.application_logs(env, caller, application, tail))


@router.delete(
    "/applications/{application:noun}",
    status_code=204,
    responses={202: {"model": ApplicationView}, **DELETING},
    response_model=None,
)
@slow
def delete_application(
    env: Env, caller: Caller, application: NamePath, pre: PreMatch, response: Response
) -> Any:
    """End and delete an application's queries and the streams it made; topics and records stay."""
    going = removal.delete_application(env, caller, application, pre)
    if going is None:
        return None
    response.status_code = 202
    return _view(env, going, response)
