"""``/v1/server``, health, metrics, and what problem codes mean."""

from __future__ import annotations

from typing import Annotated

from anyio import to_thread
from fastapi import Path, Query, Request, Response
from fastapi.responses import PlainTextResponse

from leatstream.errors import FAMILIES, CatalogError
from leatstream.model.access import Privilege
from leatstream.rest import metrics
from leatstream.rest.answers import LISTING, READING, problems
from leatstream.rest.deps import Caller, Env, PageSize, PageToken, only
from leatstream.rest.problem import HTTP_FAULTS
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.drivers import DriverList, DriverRole, DriverState
from leatstream.rest.schemas.server import (
    CapabilitiesView,
    CapabilityMatrix,
    HealthView,
    ProblemType,
    ReadinessView,
    ServerView,
)
from leatstream.services import drivers
from leatstream.services.environment.authorization import require
from leatstream.services.nouns import server as service

router = api_router(tags=["server"])


@router.get("/v1/server", responses=problems())
def get_server(env: Env, caller: Caller) -> ServerView:
    """Show the server's version, features, and what each kind of store can be used for."""
    return ServerView.model_validate(service.describe_server(env, caller))


@router.get("/v1/server/capabilities", responses=problems())
def get_capabilities(env: Env, caller: Caller) -> CapabilityMatrix:
    """Show what each kind of store can be used for, and what its sinks promise."""
    found = service.capability_matrix(env, caller)
    return CapabilityMatrix(items=[CapabilitiesView.model_validate(row) for row in found])


@router.get("/v1/drivers", responses=LISTING)
def list_drivers(
    env: Env,
    caller: Caller,
    page_size: PageSize = 100,
    page_token: PageToken = None,
    state: Annotated[DriverState | None, Query(description="Only drivers in this state.")] = None,
    role: Annotated[DriverRole | None, Query(description="Only drivers of this role.")] = None,
) -> DriverList:
    """List the drivers of all servers by id, with what they run and use."""
    return DriverList.from_domain(
        drivers.list_drivers(env, caller, page_size, page_token, only(None, state=state, role=role))
    )


@router.get("/healthz")
async def get_health() -> HealthView:
    """Tell that the process answers. Needs no token."""
    return HealthView(status="ok")


@router.get("/readyz", responses={503: {"model": ReadinessView, "description": "Not ready."}})
async def get_readiness(env: Env, request: Request, response: Response) -> ReadinessView:
    """Tell whether the server can do its work, and whether a driver is warm. Needs no token."""
    parts = await to_thread.run_sync(service.readiness, env, limiter=request.app.state.probe_threads)
    ready = all(value is True for value in parts.values())
    response.status_code = 200 if ready else 503
    return ReadinessView(ready=ready, parts=dict(parts), warm=env.drivers.warm())


@router.get("/metrics", response_class=PlainTextResponse, responses=problems())
def get_metrics(caller: Caller, request: Request) -> Response:
    """Metrics in Prometheus' text format. Needs a token, as they name queries."""
    require(caller, Privilege.MONITOR, "read metrics")
    # They are of all queries, whatever else the role may see.
    text = metrics.render(request.app.state.env, request.app.state.times)
    return Response(text, media_type=metrics.CONTENT_TYPE)


@router.get("/problems/{code}", responses={404: READING[404], 422: READING[422]})
def get_problem_type(code: Annotated[str, Path(pattern=r"^[a-z-]{1,64}$")]) -> ProblemType:
    """Explain a problem code. Needs no token."""
    for family in FAMILIES:
        kind = family.kinds.get(code)
        if kind is not None:
            return ProblemType(
                code=code,
                title=kind.title,
                status=kind.status,
                sqlstate=kind.sqlstate,
                domain=family.domain,
                retryable=kind.retryable,
            )
    for status, fault in HTTP_FAULTS.items():
        if fault.code == code:
            return ProblemType(
                code=code,
                title=fault.title,
                status=status,
                sqlstate=fault.sqlstate,
                domain="user",
                retryable=False,
            )
    raise CatalogError("not-found", f"There is no problem code {code}.")
