"""The FastAPI application over an environment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, FastAPI

from leatstream import __version__
from leatstream.rest import console, openapi, problem, sign_in
from leatstream.rest.gate import Gate
from leatstream.rest.graphql import routes as graphql
from leatstream.rest.loads import Load, Loads
from leatstream.rest.metrics import RequestTimes
from leatstream.rest.routers import serve
from leatstream.rest.routes import (
    access,
    applications,
    catalog,
    databases,
    descriptor_sources,
    drivers,
    entities,
    events,
    function_sources,
    functions,
    grants,
    invitations,
    lineage,
    objects,
    queries,
    relations,
    savepoints,
    schema_registries,
    schemas,
    secrets,
    server,
    sessions,
    statements,
    stores,
    vocabulary,
)
from leatstream.services.environment import Environment

# Reads of the catalog, which must not queue behind anything that takes long. A principal has a part.
THREADS, REQUESTS_OF_A_PRINCIPAL, REQUEST_PATIENCE = 40, 25, 10.0
# Calls to stores and the analyzer block for seconds, as do SELECTs over views. A principal has a third.
SLOW_THREADS, SLOW_OF_A_PRINCIPAL, SLOW_PATIENCE = 60, 20, 10.0
# Each step of a stream waits up to a second in a thread.
STREAM_THREADS, STREAMS_OF_A_PRINCIPAL = 100, 50
WAITS_OF_A_PRINCIPAL = 200
# Drivers must be heard whatever requests wait for, and requests answered while drivers wait for the catalog.
DRIVER_THREADS = 40
# A probe that finds none would have the server taken for one that is not ready.
PROBE_THREADS = 2
# Of requests with tokens of other issuers, whose keys may be slow to read.
ISSUER_THREADS = 10
# Of browsers with a session, whose token may have to be renewed: programs with tokens do not wait for them.
SESSION_THREADS = 10
# Of browsers that begin or end a sign-in, which anybody can do.
SIGN_IN_THREADS = 4
Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]

ROUTERS: tuple[APIRouter, ...] = tuple(
    module.router
    for module in (
        databases,
        schemas,
        secrets,
        schema_registries,
        descriptor_sources,
        stores,
        entities,
        relations,
        savepoints,
        queries,
        function_sources,
        functions,
        objects,
        applications,
        statements,
        vocabulary,
        catalog,
        lineage,
        events,
        access,
        grants,
        invitations,
        sessions,
        server,
        drivers,
    )
)


def create_app(env: Environment, *, lifespan: Lifespan | None = None) -> FastAPI:
    """Make the application.

    Args:
        env: the outside world; its database must have been migrated.
        lifespan: started before the first request and ended after the last one.
    """

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        if lifespan is None:
            yield
            return
        async with lifespan(app):
            yield

    app = FastAPI(
        title="leatstream",
        version=__version__,
        lifespan=living,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
        **openapi.ABOUT,
    )
    times = RequestTimes()
    app.state.env = env
    app.state.times = times
    app.state.driver_threads = CapacityLimiter(DRIVER_THREADS)
    app.state.probe_threads = CapacityLimiter(PROBE_THREADS)
    app.state.issuer_threads = CapacityLimiter(ISSUER_THREADS)
    app.state.session_threads = CapacityLimiter(SESSION_THREADS)
    app.state.sign_in_threads = CapacityLimiter(SIGN_IN_THREADS)
    routes: list[Any] = []
    for router in ROUTERS:
        serve(app, router)
        routes.extend(router.routes)
    routes.extend(graphql.install(app))
    routes.extend(sign_in.install(app))
    routes.extend(console.install(app))
    problem.install(app, routes)
    loads = Loads(
        quick=Load("requests", REQUESTS_OF_A_PRINCIPAL, REQUEST_PATIENCE, 1),
        slow=Load("slow requests", SLOW_OF_A_PRINCIPAL, SLOW_PATIENCE, SLOW_THREADS),
        streams=Load("streams", STREAMS_OF_A_PRINCIPAL, 0.0, STREAM_THREADS),
        waits=Load("waiting requests", WAITS_OF_A_PRINCIPAL, 0.0, 1),
    )
    app.add_middleware(Gate, env=env, times=times, loads=loads)
    openapi.install(app)
    return app
