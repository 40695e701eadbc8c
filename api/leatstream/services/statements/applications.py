"""Statements about applications: what they answer, and their dry run."""

from __future__ import annotations

from typing import Any

from leatstream.errors import CatalogError, LeatstreamError, RequestError, already_exists
from leatstream.model.objects import DesiredState
from leatstream.services.applications import catalog as applications
from leatstream.services.applications.making import ApplicationDefinition
from leatstream.services.environment import Context, Environment, Principal
from leatstream.services.environment.pages import every
from leatstream.services.environment.results import Run, StatementResult
from leatstream.services.nouns.names import single
from leatstream.services.queries.catalog import get_query
from leatstream.services.queries.joint_jobs import leader_of
from leatstream.services.relations.declarations import relation_definition
from leatstream.services.staging.atomic import discarded
from leatstream.services.staging.catalog_view import Assumed, AssumedQuery, CatalogView, qualify
from leatstream.services.statements.result_tables import META, Table, meta_cells, text_columns
from leatstream.services.statements.waiting import wait_running
from leatstream.sql import statements as ast
from leatstream.sql.applications import Written, key, whole_of, write_in
from leatstream.sql.parser import parse


def create(run: Run, s: ast.CreateApplication) -> StatementResult:
    """BEGIN APPLICATION … END APPLICATION: a row for each query that it made."""
    made = applications.create_application(run.env, run, s, whole_of(s))
    found = [get_query(run.env, run.principal, name) for name in made.queries]
    # Inside an atomic text nothing runs yet, and the deadline is over.
    running = all(wait_running(run, query) for query in found)
    return StatementResult(
        "create_application",
        status="succeeded" if running else "running",
        object={"noun": "application", "name": made.name},
        columns=text_columns("query", "sink"),
        rows=[[query.name, query.sink] for query in found],
    )


def check(
    env: Environment, view: CatalogView, s: ast.CreateApplication, context: Context, name: str | None = None
) -> dict[str, Any]:
    """Make the application, and give up what was made; its plan.

    Args:
        env: the environment.
        view: the catalog with planned objects.
        s: the application.
        context: what unqualified names mean.
        name: of the application that the text may replace.

    Raises:
        LeatstreamError: everything that is wrong with it.
    """
    old = view.unit.applications.find(single(s.name))
    if name is not None and name != single(s.name):
        detail = f"The text makes application {single(s.name)}, not {name}."
        raise RequestError("validation", detail, position=s.name.position)
    if old is not None and name is None:
        raise already_exists("application", old.name, position=s.name.position)
    wanted = old.desired_state if old is not None else DesiredState.RUNNING
    body = ApplicationDefinition(s.text, context, wanted)

    def work(inner: Environment) -> dict[str, Any]:
        return dict(applications.plan_application(inner, env.caller, s, body, whole_of(s)).plan)

    try:
        return discarded(env, work, view)
    except CatalogError as error:
        if old is None or {fault.code for fault in error.faults} != {"requires-replacement"}:
            raise
        reason = " ".join(dict.fromkeys(fault.detail for fault in error.faults))
        return {"queries": None, "relations": None, "change": {"class": "refused", "reason": reason}}


def assume_all(assumed: Assumed, but: str | None) -> None:
    """Count what planned applications would make as there, except for the one that is checked."""
    for item in assumed.applications:
        if item.name == but:
            continue
        try:
            for statement in parse(item.sql):
                if isinstance(statement, ast.CreateApplication):
                    after(statement, item.context, assumed)
        except LeatstreamError:
            continue  # its faults are reported where it is planned itself


def after(s: ast.CreateApplication, context: Context, assumed: Assumed) -> None:
    """Count what it would make as there, for the statements behind it in a dry run.

    Args:
        s: the application.
        context: database, schema and store of the session.
        assumed: takes what it would make.
    """
    known: dict[str, Written] = {}
    whole = whole_of(s)
    for one in s.statements:
        if isinstance(one, ast.Use):
            parts = one.name.parts
            if one.noun == "database":
                context = Context(parts[0], "public", context.store)
            elif one.noun == "schema":
                context = Context(parts[0] if len(parts) > 1 else context.database, parts[-1], context.store)
            else:
                context = Context(context.database, context.schema, parts[0])
        elif isinstance(one, ast.CreateVirtual):
            known[key(one.name)] = write_in(whole, one, known)
        elif isinstance(one, ast.CreateAs):
            name = f"application {single(s.name)} statement {one.position.offset}"
            assumed.queries.append(AssumedQuery(name, write_in(whole, one, known).text, context))
        elif isinstance(one, ast.CreateStream):
            assumed.relations[str(qualify(one.name, context))] = relation_definition(one, context)


def terminate(run: Run, s: ast.TerminateApplication) -> StatementResult:
    """TERMINATE APPLICATION."""
    name = single(s.name)
    applications.stop_application(run.env, run.principal, name)
    return StatementResult("terminate_application", object={"noun": "application", "name": name})


def restart(run: Run, s: ast.RestartApplication) -> StatementResult:
    """RESTART APPLICATION."""
    name = single(s.name)
    applications.restart_application(run.env, run.principal, name)
    thing = {"noun": "application", "name": name}
    return StatementResult("restart_application", status="running", object=thing)


def listed(env: Environment, who: Principal) -> Table:
    """Rows of LIST APPLICATIONS."""
    found = every(env, who, applications.list_applications)
    columns = text_columns("name", "state", "queries", "virtual_relations", *META)
    apps = [(one.state, one.application) for one in found]
    return columns, [
        [a.name, state.value, ", ".join(a.queries), ", ".join(a.virtual), *meta_cells(a)] for state, a in apps
    ]


def described(env: Environment, who: Principal, s: ast.Describe) -> Table:
    """Rows of DESCRIBE APPLICATION: what it is made of.

    Args:
        env: the environment.
        who: who asks.
        s: the statement.
    """
    found = applications.show_application(env, who, single(s.name))
    rows: list[list[Any]] = [["virtual relation", name, *[None] * 4] for name in found.application.virtual]
    rows += [["relation", name, *[None] * 4] for name in found.application.relations]
    names = {query.meta.id: query.name for query in found.queries}
    for query in found.queries:
        job = names.get(leader_of(query) or "", query.name)
        rows.append(
            ["query", query.name, query.status.state.value, ", ".join(query.sources), query.sink, job]
        )
    return text_columns("type", "name", "state", "sources", "sink", "job"), rows
