"""Statements about applications: what they answer."""

from __future__ import annotations

from leatstream.services import applications
from leatstream.services.applications import RunOne
from leatstream.services.atomic import discarded
from leatstream.services.catalog_view import Assumed, AssumedQuery, qualify
from leatstream.services.environment import Context, Environment, Principal
from leatstream.services.queries import get_query
from leatstream.services.statement_bodies import relation_definition, single
from leatstream.services.statement_results import Run, StatementResult
from leatstream.services.statement_writes import wait_running
from leatstream.services.tables import META, Table, all_pages, meta_cells, text_columns
from leatstream.sql import statements as ast
from leatstream.sql.applications import Written, key, whole_of, write_in


def create(run: Run, s: ast.CreateApplication, run_one: RunOne) -> StatementResult:
    """BEGIN APPLICATION … END APPLICATION: a row for each query that it made."""
    made = applications.create_application(run.env, run, s, whole_of(s), run_one)
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


def check(env: Environment, s: ast.CreateApplication, context: Context, run_one: RunOne) -> None:
    """Make the application, and give up what was made; LeatstreamError as creating it would raise."""
    who = Principal("", "sysadmin")  # the dry run has asked for its own privilege

    def work(inner: Environment) -> None:
        run = Run(inner, who, context, 0.0)
        applications.create_application(inner, run, s, whole_of(s), run_one)

    discarded(env, work)


def after(s: ast.CreateApplication, context: Context, assumed: Assumed) -> None:
    """Count what it would make as there, for the statements behind it in a dry run."""
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
            name = f"statement {one.position.offset}"
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
    found = all_pages(lambda t: applications.list_applications(env, who, 1000, t))
    columns = text_columns("name", "queries", "virtual_relations", *META)
    return columns, [[a.name, ", ".join(a.queries), ", ".join(a.virtual), *meta_cells(a)] for a in found]


def described(env: Environment, who: Principal, s: ast.Describe) -> Table:
    """Rows of DESCRIBE APPLICATION: what it is made of."""
    found = applications.get_application(env, who, single(s.name))
    queries = applications.application_queries(env, who, found.name)
    rows = [["virtual relation", name, None, None, None] for name in found.virtual]
    rows += [["relation", name, None, None, None] for name in found.relations]
    rows += [["query", q.name, q.status.state.value, ", ".join(q.sources), q.sink] for q in queries]
    return text_columns("type", "name", "state", "sources", "sink"), rows
