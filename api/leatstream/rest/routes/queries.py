"""``/v1/queries``"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse

from leatstream.errors import RequestError
from leatstream.model import objects
from leatstream.model.bounds import LOG_LINES
from leatstream.model.names import quote
from leatstream.model.objects import QueryState
from leatstream.rest import etag
from leatstream.rest.accepted import while_accepted
from leatstream.rest.answers import DELETING, LISTING, READING, WRITING_STORE
from leatstream.rest.deps import (
    Caller,
    Env,
    Moment,
    NamePart,
    NamePath,
    NameQuery,
    PageSize,
    PageToken,
    Pre,
    PreMatch,
    location,
    only,
)
from leatstream.rest.loads import hold, slow
from leatstream.rest.log_lines import follow_lines
from leatstream.rest.problem import about_sql
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.queries import (
    QueryBody,
    QueryEvents,
    QueryEventView,
    QueryHistory,
    QueryList,
    QueryLogs,
    QueryPatch,
    QueryProgressList,
    QueryProgressView,
    QueryVersionView,
    QueryView,
    ReplaceBody,
    RestartBody,
    RestartedQueries,
    RestartFailedBody,
    page_view,
)
from leatstream.rest.streams import EVENTS
from leatstream.rest.waiting import WaitFor, WaitTime, look_until
from leatstream.services.environment import Precondition, Stored
from leatstream.services.nouns.ownership import put_owned
from leatstream.services.queries import catalog as service
from leatstream.services.queries import history as query_log
from leatstream.services.queries import removal as remove
from leatstream.services.queries import restart as restarting
from leatstream.services.queries.definition import definition_of
from leatstream.services.queries.replace import blue_green
from leatstream.services.queries.restart_failed import restart_failed
from leatstream.sql.canonical import canonical

router = api_router(prefix="/v1", tags=["queries"])

_spelled = lru_cache(maxsize=4096)(canonical)


def _view(query: objects.Query, response: Response) -> QueryView:
    response.headers["ETag"] = etag.write(query.meta.generation)
    return QueryView.from_domain(query, _spelled(query.sql))


def _answer(stored: Stored[objects.Query], response: Response) -> QueryView:
    response.status_code = 201 if stored.created else 200
    if stored.created:
        response.headers["Location"] = location("queries", stored.item.name)
    return _view(stored.item, response)


@router.get("/queries", responses=LISTING)
def list_queries(
    env: Env,
    caller: Caller,
    page_size: PageSize = 100,
    page_token: PageToken = None,
    q: NamePart = None,
    state: Annotated[QueryState | None, Query(description="Only queries in this state.")] = None,
    kind: Annotated[objects.QueryKind | None, Query(description="Only queries of this kind.")] = None,
    database: NameQuery = None,
    schema: NameQuery = None,
    store: NameQuery = None,
    application: NameQuery = None,
    view: Annotated[
        Literal["full", "brief"],
        Query(description="`brief`: `plan` is null, `effective` and `statement_canonical` are empty."),
    ] = "full",
) -> QueryList:
    """List queries by name."""
    return page_view(
        service.list_queries(
            env,
            caller,
            page_size,
            page_token,
            only(
                q,
                state=state,
                kind=kind,
                database=database,
                schema=schema,
                store=store,
                application=application,
            ),
        ),
        _spelled,
        brief=view == "brief",
    )


@router.post("/queries/{query}:restart", status_code=202, responses=WRITING_STORE)
@slow
def restart_query(
    env: Env, caller: Caller, query: NamePath, response: Response, body: RestartBody | None = None
) -> QueryView:
    """Start the job again from its last checkpoint, from another place in its sources, or past a record.

    What another place loses and repeats stands in `status.message`.
    """
    wish, skip = (body.to_domain(), body.skip_record) if body is not None else (None, None)
    return _view(restarting.restart_query(env, caller, query, wish, skip=skip), response)


@router.post("/queries:restart", status_code=202, responses=WRITING_STORE)
def restart_failed_queries(env: Env, caller: Caller, body: RestartFailedBody) -> RestartedQueries:
    """Start every query again that has failed by one cause, such as one record of a topic that many read."""
    found = restart_failed(env, caller, body.failed_by, skip=body.skip_record)
    return RestartedQueries(queries=list(found.queries), other_causes=list(found.other_causes))


@router.post("/queries/{query}:replace", status_code=202, responses=WRITING_STORE)
@slow
def replace_query(
    env: Env, caller: Caller, query: NamePath, body: ReplaceBody, pre: PreMatch, response: Response
) -> QueryView:
    """Start the query's next version beside it, to take over when it has caught up.

    It is named like the query, with `__green` behind; the one that it takes over from is kept for a while,
    stopped, as `__blue`. Deleting `__green` calls the replacement off. The query itself is answered where it
    needs no other one, as its job stays, or resumes from its checkpoint and writes a topic.
    """

    def put(old: objects.Query, exact: Precondition) -> objects.Query:
        definition = replace(definition_of(old), sql=body.sql, desired_state=objects.DesiredState.RUNNING)
        green = blue_green.replace_beside(env, caller, query, definition, exact)
        return green or service.put_query(env, caller, query, definition, exact).item

    with about_sql():
        return _view(service.as_it_is(env, caller, query, pre, put), response)


@router.post("/queries/{query}:rollback", status_code=202, responses=WRITING_STORE)
@slow
def rollback_query(env: Env, caller: Caller, query: NamePath, response: Response) -> QueryView:
    """Let the version that a replacement took over from take over again, when it has caught up."""
    return _view(blue_green.rollback(env, caller, query), response)


@router.get("/queries/{query:noun}", responses=READING)
async def get_query(
    env: Env,
    caller: Caller,
    query: NamePath,
    response: Response,
    wait_for: WaitFor = None,
    timeout: WaitTime = "30s",
) -> QueryView:
    """Show a query; with `wait_for`, wait until it is in one of the states."""
    found = await look_until(
        env, lambda: service.get_query(env, caller, query), _present_state, wait_for, timeout
    )
    return _view(found, response)


def _present_state(query: objects.Query) -> QueryState | None:
    status = query.status
    reached = status.state in (QueryState.RUNNING, QueryState.COMPLETED)
    if reached and status.observed_generation < query.meta.generation:
        # The job of the version before still runs.
        return None
    return status.state


@router.put("/queries/{query:noun}", responses={201: {"model": QueryView}, **WRITING_STORE})
@slow
def put_query(
    env: Env, caller: Caller, query: NamePath, body: QueryBody, pre: Pre, response: Response
) -> QueryView:
    """Create or replace a query. Its plan is checked whole before anything is kept."""
    with about_sql():
        stored = put_owned(
            env,
            caller,
            "query",
            quote(query),
            body.owner,
            lambda: service.put_query(env, caller, query, body.to_domain(), pre),
        )
    return _answer(stored, response)


@router.patch("/queries/{query:noun}", responses=WRITING_STORE)
@slow
def patch_query(
    env: Env, caller: Caller, query: NamePath, body: QueryPatch, pre: PreMatch, response: Response
) -> QueryView:
    """Change some members of a query (JSON merge patch), such as `{"desired_state": "stopped"}`."""
    if "sql" in body.model_fields_set and not body.sql:
        raise RequestError("validation", "'sql' cannot be removed.", pointer="#/sql")
    with about_sql():
        stored = service.patch_query(env, caller, query, body.changes, pre)
    return _answer(stored, response)


@router.delete(
    "/queries/{query:noun}",
    status_code=204,
    responses={202: {"model": QueryView}, **DELETING},
    response_model=None,
)
@slow
def delete_query(
    env: Env,
    caller: Caller,
    query: NamePath,
    pre: PreMatch,
    response: Response,
    delete_entity: Annotated[
        bool, Query(description="Also delete the sink's topic and its records.")
    ] = False,
) -> Any:
    """End and delete a query, its checkpoints and the stream that it made. The topic stays unless asked."""
    left = remove.delete_query(env, caller, query, delete_entity, pre)
    if left is None:
        return None
    response.status_code = 202
    return _view(left, response)


Tail = Annotated[int, Query(ge=1, le=LOG_LINES, description="How many of the last lines at most.")]


@router.get("/queries/{query}/logs", responses=READING)
def get_query_logs(env: Env, caller: Caller, query: NamePath, tail: Tail = 50) -> QueryLogs:
    """Show the last log lines of the query's job."""
    return QueryLogs(lines=service.query_logs(env, caller, query, tail))


Newest = Annotated[int, Query(ge=1, le=200, description="How many of the newest at most.")]


@router.get("/queries/{query}/events", responses=READING)
def list_query_events(env: Env, caller: Caller, query: NamePath, limit: Newest = 50) -> QueryEvents:
    """Show what happened to the query's job: changes of state with time, attempt and reason."""
    found = query_log.query_events(env, caller, query, limit)
    return QueryEvents(items=[QueryEventView.model_validate(e, from_attributes=True) for e in found])


@router.get("/queries/{query}/progress", responses=READING)
def list_query_progress(
    env: Env,
    caller: Caller,
    query: NamePath,
    limit: Annotated[int, Query(ge=1, le=600, description="How many of the newest at most.")] = 50,
    since: Annotated[
        Moment | None,
        Query(description="Only moments after this one. Without an offset it is UTC."),
    ] = None,
) -> QueryProgressList:
    """Show what the query's job reported in the last day, oldest first.

    Of the last hour that is a moment every 15 seconds, before it the one with the highest lag of each five
    minutes.
    """
    found = query_log.query_progress(env, caller, query, limit, since)
    return QueryProgressList(items=[QueryProgressView.model_validate(p, from_attributes=True) for p in found])


@router.get("/queries/{query}/logs:follow", responses=READING)
async def follow_query_logs(
    env: Env, caller: Caller, request: Request, query: NamePath, tail: Tail = 50
) -> StreamingResponse:
    """Stream the log lines of the query's job as they come, as server-sent events, until it is deleted.

    The first events are the last lines that there are; an event `live` follows them.
    """
    await hold(lambda loads: loads.streams)
    await to_thread.run_sync(service.query_logs, env, caller, query)
    lines = follow_lines(lambda: service.query_logs(env, caller, query, LOG_LINES), tail)
    headers = {"X-Accel-Buffering": "no"}
    watched = while_accepted(request, lines, EVENTS)
    return StreamingResponse(watched, media_type=EVENTS, headers=headers)


@router.get("/queries/{query}/history", responses=READING)
def list_query_versions(env: Env, caller: Caller, query: NamePath, limit: Newest = 50) -> QueryHistory:
    """Show the query's versions: statement, time, who wrote it, and what it changed for the job."""
    found = query_log.query_history(env, caller, query, limit)
    return QueryHistory(items=[QueryVersionView.model_validate(v, from_attributes=True) for v in found])
