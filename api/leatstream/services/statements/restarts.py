"""RESTART QUERY, and what DESCRIBE says of it beforehand."""

from __future__ import annotations

from dataclasses import asdict, replace

from leatstream.errors import RequestError
from leatstream.model.objects import Query
from leatstream.services.environment import Environment, Principal
from leatstream.services.environment.results import Run, StatementResult
from leatstream.services.nouns.names import single
from leatstream.services.queries.restart import StartWish, read_offsets, restart_plan, restart_query, start_of
from leatstream.services.queries.restart_failed import check_cause, restart_failed
from leatstream.services.queries.skipping import skipping
from leatstream.sql import statements as ast

_COLUMNS = ("query", "start", "lost", "repeated", "state")


def restart(run: Run, s: ast.RestartQuery) -> StatementResult:
    """Restart; with FROM the result is a row that says what is lost and what is repeated."""
    name = single(s.name)
    result = StatementResult(
        "restart_query", status="running", object={"noun": "query", "name": name}, query=name
    )
    described = described_restart(run.env, run.principal, s)
    if s.skip is not None:
        try:
            restart_query(run.env, run.principal, name, skip=str(s.skip.value))
        except RequestError as error:
            raise error.at(s.skip.position) from None
        return result
    restart_query(run.env, run.principal, name, _wish(s))
    if described is None:
        return result
    columns = [{"name": column, "type": "VARCHAR"} for column in _COLUMNS]
    return replace(result, columns=columns, rows=[[name, *described.values()]])


def restart_all(run: Run, s: ast.RestartQueries) -> StatementResult:
    """Restart all queries of one cause; the result has a row for each."""
    try:
        found = restart_failed(run.env, run.principal, str(s.cause.value), skip=s.skip)
    except RequestError as error:
        raise error.at(s.cause.position) from None
    columns = [{"name": "query", "type": "VARCHAR"}]
    rows: list[list[str]] = [[name] for name in found.queries]
    return StatementResult("restart_queries", status="running", columns=columns, rows=rows)


def check_all(s: ast.RestartQueries) -> None:
    """The dry run: RequestError if the cause cannot be one of that kind. Which queries it hits may change."""
    try:
        check_cause(str(s.cause.value), skip=s.skip)
    except RequestError as error:
        raise error.at(s.cause.position) from None


def described_restart(env: Environment, principal: Principal, s: ast.RestartQuery) -> dict[str, str] | None:
    """What a restart would do; None for one from the checkpoint, which loses nothing.

    Args:
        env: the environment.
        principal: who asks.
        s: the statement.
    """
    try:
        wish = _wish(s)
        return None if wish is None else asdict(restart_plan(env, principal, single(s.name), wish))
    except RequestError as error:
        raise error.at(s.start.position if s.start else None) from None


def check_start(query: Query, s: ast.RestartQuery) -> None:
    """The dry run: RequestError if the query cannot start there."""
    try:
        wish = _wish(s)
        if wish is not None:
            start_of(query, wish)
        if s.skip is not None:
            skipping(query, str(s.skip.value), "", query.meta.updated_at)
    except RequestError as error:
        place = s.start or s.skip
        raise error.at(place.position if place else None) from None


def _wish(s: ast.RestartQuery) -> StartWish | None:
    if s.start is None:
        return None
    word, value = s.start.word, s.start.value
    if value is None:
        return StartWish(word)
    if word == "offsets":
        return StartWish(word, offsets=read_offsets(str(value.value)))
    return StartWish(word, timestamp=value.value if type(value.value) is int else str(value.value))
