"""``/v1/statements``"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from leatstream.errors import RequestError, sentence
from leatstream.rest import streams
from leatstream.rest.accepted import while_accepted
from leatstream.rest.answers import READING, WRITING_STORE
from leatstream.rest.deps import DURATION_PATTERN, ID_PATTERN, Caller, Env, seconds
from leatstream.rest.loads import hold, slow
from leatstream.rest.problem import about_sql
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.statements import (
    ContextView,
    RowView,
    StatementAnswer,
    StatementBody,
    StatementResultView,
    ValidatedStatement,
    ValidationAnswer,
    ValidationBody,
)
from leatstream.services.selects import interactive
from leatstream.services.statements import dry_run as validation
from leatstream.services.statements import execution as statements

router = api_router(prefix="/v1", tags=["statements"])

_LONGEST_WAIT = 60.0


@router.post("/statements", responses=WRITING_STORE)
@slow
def run_statements(env: Env, caller: Caller, body: StatementBody) -> StatementAnswer:
    """Run SQL. The first failure ends the run; what ran before it stands in the problem's `results`."""
    wait = min(seconds(body.wait_timeout), _LONGEST_WAIT) if body.wait_timeout else 0.0
    with about_sql():
        outcome = statements.execute(
            env, caller, body.sql, body.context(), wait, body.files, atomic=body.atomic
        )
    results = [StatementResultView.model_validate(one.as_json()) for one in outcome.results]
    return StatementAnswer(results=results, context=ContextView.model_validate(outcome.context.as_json()))


@router.post("/statements:validate", responses=WRITING_STORE)
@slow
def validate_statements(env: Env, caller: Caller, body: ValidationBody) -> ValidationAnswer:
    """Check SQL without running it: plans, inferred properties, and everything that is wrong."""
    try:
        assume = body.assume.to_domain() if body.assume else None
    except ValueError as error:
        raise RequestError("validation", sentence(str(error)), pointer="#/assume/relations") from error
    outcome = validation.validate(env, caller, body.sql, body.context(), assume, body.name, body.properties)
    return ValidationAnswer(
        valid=outcome.valid,
        statements=[ValidatedStatement.model_validate(one) for one in outcome.statements],
        canonical=outcome.canonical,
        hash=outcome.hash,
    )


_ROWS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": RowView,
        "description": "Rows as they come, one JSON object a line, or as server-sent events `row`. The last "
        "line or event is `end`, with the reason, or `error`, with the problem.",
    },
    **READING,
}


@router.get("/statements/{statement}/rows", response_class=StreamingResponse, responses=_ROWS)
async def read_rows(
    env: Env,
    caller: Caller,
    request: Request,
    statement: Annotated[
        str, Path(min_length=1, max_length=100, pattern=ID_PATTERN, description="Id of a running SELECT.")
    ],
    limit: Annotated[int | None, Query(ge=1, le=1_000_000_000, description="End after so many rows.")] = None,
    max_bytes: Annotated[
        int | None, Query(ge=1, le=1 << 30, description="End before the rows' JSON is longer; at most 1 GiB.")
    ] = None,
    max_time: Annotated[
        str | None,
        Query(pattern=DURATION_PATTERN, description="End after so long, such as `5m`; at most 60m."),
    ] = None,
    timeout: Annotated[
        str | None,
        Query(pattern=DURATION_PATTERN, description="End after so long without a row, such as `10s`."),
    ] = None,
    waits: Annotated[
        bool,
        Query(
            description="NDJSON only: while there is no row, say once a second what is waited for, in lines "
            'such as `{"waits": "waiting for a driver"}`.'
        ),
    ] = False,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Response:
    """Read the rows of a SELECT as they come: NDJSON, or server-sent events for `Accept: text/event-stream`.

    The SELECT ends with the answer: when a limit is reached, or when the client disconnects. If its token has
    ended, the SELECT is kept for half a minute: the same request with a new token gets the next row.
    """
    limits = interactive.Limits(
        rows=limit,
        bytes=max_bytes,
        seconds=seconds(max_time) if max_time is not None else None,
        idle=seconds(timeout) if timeout is not None else None,
    )
    await hold(lambda loads: loads.streams)
    rows = await run_in_threadpool(interactive.read_rows, env, caller, statement, limits)
    watched = partial(while_accepted, request, kept=partial(interactive.kept, env, statement))
    wanted = streams.EVENTS if accept and streams.EVENTS in accept else streams.NDJSON
    return streams.respond_rows(rows, wanted, watched, waits=waits)
