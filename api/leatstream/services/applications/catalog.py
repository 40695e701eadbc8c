"""Applications: queries and streams that are made together, all or none, and go together.

Each statement runs as a query of its own. A virtual relation is written into the statements that read it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from leatstream.errors import RequestError, not_found
from leatstream.model.names import quote
from leatstream.model.objects import DesiredState, Query, QueryState
from leatstream.model.registered import Application
from leatstream.ports import UnitOfWork
from leatstream.services.applications.making import ApplicationDefinition, make_application
from leatstream.services.applications.removal import end_queries, refuse_deleting
from leatstream.services.environment import (
    Environment,
    Page,
    Precondition,
    Principal,
    Stored,
    next_meta,
)
from leatstream.services.environment.authorization import OPERATE, READ, WRITE, authorize
from leatstream.services.environment.pages import ANY, Only, repository_page
from leatstream.services.environment.results import Run
from leatstream.services.nouns.names import single
from leatstream.services.queries import catalog as queries
from leatstream.services.queries.restart import restart_query
from leatstream.services.staging.atomic import all_or_nothing
from leatstream.sql import statements as ast
from leatstream.sql.parser import parse

# The first of these that one of its queries is in is the state of an application.
_STATES = (
    QueryState.FAILED,
    QueryState.LOST,
    QueryState.STOPPING,
    QueryState.PENDING,
    QueryState.STARTING,
    QueryState.STOPPED,
    QueryState.RUNNING,
    QueryState.COMPLETED,
)


@dataclass(frozen=True, slots=True)
class ShownApplication:
    """An application with its existing queries, in the order of their creation."""

    application: Application
    queries: list[Query]

    @property
    def state(self) -> QueryState:
        """The worst state of its queries; of one that was stopped alone only if no other shall run."""
        app = self.application
        if app.deleting:
            return QueryState.STOPPING
        meant = [q for q in self.queries if q.desired_state is app.desired_state]
        states = {_present(query) for query in meant or self.queries}
        otherwise = QueryState.RUNNING if app.desired_state is DesiredState.RUNNING else QueryState.STOPPED
        return next((state for state in _STATES if state in states), otherwise)


def _present(query: Query) -> QueryState:
    """The state of the query's present version."""
    status = query.status
    reached = status.state in (QueryState.RUNNING, QueryState.COMPLETED)
    if reached and status.observed_generation < query.meta.generation:
        return QueryState.STARTING
    return status.state


def put_application(
    env: Environment,
    principal: Principal,
    name: str,
    body: ApplicationDefinition,
    pre: Precondition = Precondition(),  # noqa: B008 - immutable
) -> Stored[Application]:
    """Create or replace an application: all of it, or nothing if one statement is wrong.

    Queries that it no longer contains are deleted and new ones are created; those whose statement stays are
    not touched. ``plan`` says what happens to each. An unchanged body changes nothing.

    Args:
        env: the environment.
        principal: who asks.
        name: of the application.
        body: its text and comment.
        pre: precondition.

    Raises:
        LeatstreamError: the first error, with the faults of every statement.
    """
    authorize(principal, WRITE, "application", name)
    statement = read_application(name, body.sql)

    def work(inner: Environment) -> Stored[Application]:
        return _put(inner, principal, statement, body, body.sql, pre)

    stored = work(env) if env.staged else all_or_nothing(env, work)
    if not env.staged:
        end_queries(env, stored.item.plan["removed"])
    return stored


def read_application(name: str, sql: str) -> ast.CreateApplication:
    """The application that a text says.

    Raises:
        RequestError: it says something else, or an application of another name.
    """
    statements = parse(sql)
    first = statements[0] if statements else None
    if len(statements) != 1 or not isinstance(first, ast.CreateApplication):
        raise RequestError(
            "validation",
            "An application's sql is one BEGIN APPLICATION … END APPLICATION.",
            pointer="#/sql",
            position=first.position if first is not None else None,
        )
    if single(first.name) != name:
        raise RequestError(
            "validation",
            f"The text makes application {quote(single(first.name))}, not {quote(name)}.",
            position=first.name.position,
            hint=f"BEGIN APPLICATION {quote(name)}",
        )
    return first


def create_application(env: Environment, run: Run, s: ast.CreateApplication, whole: str) -> Application:
    """BEGIN APPLICATION … END APPLICATION as a statement: the application must be new.

    Args:
        env: the environment, staged if the whole text is.
        run: who asks, and in which context.
        s: the application.
        whole: the text that its positions count in.
    """
    authorize(run.principal, WRITE, "application", single(s.name))
    body = ApplicationDefinition(sql=s.text, context=run.context)

    def work(inner: Environment) -> Stored[Application]:
        return _put(inner, run.principal, s, body, whole, Precondition(must_be_new=True))

    return (work(env) if env.staged else all_or_nothing(env, work)).item


def _put(
    env: Environment,
    principal: Principal,
    s: ast.CreateApplication,
    body: ApplicationDefinition,
    whole: str,
    pre: Precondition,
) -> Stored[Application]:
    name = single(s.name)
    with env.open_unit(write=False) as unit:
        old = unit.applications.find(name)
    pre.check(old.meta.generation if old else None, "application", quote(name))
    refuse_deleting(old)
    if old is not None and _same(old, body):
        return Stored(old, created=False, changed=False)
    made = make_application(env, principal, s, body, whole, old)
    return Stored(made, created=old is None, changed=True)


def _same(old: Application, body: ApplicationDefinition) -> bool:
    return (old.sql, old.desired_state, old.comment, dict(old.context)) == (
        body.sql,
        body.desired_state,
        body.comment,
        replace(body.context, role=None).as_json(),
    )


def get_application(env: Environment, principal: Principal, name: str) -> Application:
    """The application; CatalogError not-found.

    Args:
        env: the environment.
        principal: who asks.
        name: of the application.
    """
    authorize(principal, READ, "application", name)
    with env.open_unit(write=False) as unit:
        return require_application(unit, name)


def require_application(unit: UnitOfWork, name: str) -> Application:
    """The application inside a unit; CatalogError not-found."""
    found = unit.applications.find(name)
    if found is None:
        raise not_found("application", quote(name))
    return found


def show_application(env: Environment, principal: Principal, name: str) -> ShownApplication:
    """The application with its queries; CatalogError not-found.

    Args:
        env: the environment.
        principal: who asks.
        name: of the application.
    """
    authorize(principal, READ, "application", name)
    with env.open_unit(write=False) as unit:
        return shown(unit, require_application(unit, name))


def shown(unit: UnitOfWork, application: Application) -> ShownApplication:
    """An application with its queries."""
    found = [unit.queries.find(name) for name in application.queries]
    return ShownApplication(application, [query for query in found if query is not None])


def list_applications(
    env: Environment,
    principal: Principal,
    page_size: int = 100,
    page_token: str | None = None,
    only: Only = ANY,
) -> Page[ShownApplication]:
    """One page of applications by name.

    Args:
        env: the environment.
        principal: who asks.
        page_size: the most items of a page.
        page_token: of the page wanted; None = the first.
        only: what the list is narrowed to.
    """
    authorize(principal, READ, "applications")
    with env.open_unit(write=False) as unit:
        page = repository_page(
            unit.applications,
            lambda a: a.name,
            "applications",
            page_size,
            page_token,
            only=only,
            has=lambda a: {"state": shown(unit, a).state},
        )
        return Page([shown(unit, one) for one in page.items], page.next_page_token)


def stop_application(env: Environment, principal: Principal, name: str) -> None:
    """Stop every query of it.

    Args:
        env: the environment.
        principal: who asks.
        name: of the application.
    """

    def stop(inner: Environment, query: Query) -> None:
        stopped = {"desired_state": DesiredState.STOPPED}
        queries.patch_query(inner, principal, query.name, stopped, within=(query.name,))

    _turn(env, principal, name, DesiredState.STOPPED, stop)


def restart_application(env: Environment, principal: Principal, name: str, only_failed: bool = False) -> None:
    """Start every query of it again, from its checkpoint; or only those that have failed.

    Args:
        env: the environment.
        principal: who asks.
        name: of the application.
        only_failed: leave its other queries as they are.
    """

    def restart(inner: Environment, query: Query) -> None:
        if not only_failed or query.status.state is QueryState.FAILED:
            restart_query(inner, principal, query.name, within=(query.name,))

    _turn(env, principal, name, DesiredState.RUNNING, restart)


def application_logs(env: Environment, principal: Principal, name: str, tail: int) -> list[str]:
    """The last log lines of the queries that failed, or of all if none has, each with its query's name.

    Args:
        env: the environment.
        principal: who asks.
        name: of the application.
        tail: the most lines, of all queries together.
    """
    found = show_application(env, principal, name).queries
    failed = [query for query in found if query.status.state is QueryState.FAILED] or found
    share = max(1, tail // max(1, len(failed)))
    return [
        f"{query.name}: {line}"
        for query in failed
        for line in queries.query_logs(env, principal, query.name, share)
    ][:tail]


def _turn(
    env: Environment,
    principal: Principal,
    name: str,
    wanted: DesiredState,
    turn: Callable[[Environment, Query], None],
) -> None:
    authorize(principal, OPERATE, "application", name)

    def work(inner: Environment) -> None:
        found = show_application(inner, principal, name)
        refuse_deleting(found.application)
        for query in found.queries:
            turn(inner, query)
        if found.application.desired_state is not wanted:
            meta = next_meta(found.application.meta, inner.clock.now())
            with inner.open_unit() as unit:
                unit.applications.update(replace(found.application, meta=meta, desired_state=wanted))
                unit.commit()

    if env.staged:
        work(env)
    else:
        all_or_nothing(env, work)


def plan_application(
    env: Environment, principal: Principal, s: ast.CreateApplication, body: ApplicationDefinition, whole: str
) -> Application:
    """What putting an application makes, in an environment whose changes are given up.

    Args:
        env: the environment.
        principal: who asks.
        s: the application, read.
        body: its text and comment.
        whole: the text in which positions count.

    Raises:
        LeatstreamError: the faults of every statement; ``requires-replacement`` if it cannot change in place.
    """
    return _put(env, principal, s, body, whole, Precondition()).item
