"""SQL statements: each one ends in the same service functions as the typed resources."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from leatstream.errors import AccessError, Faults, LeatstreamError
from leatstream.model.names import quote
from leatstream.model.objects import DesiredState, RelationKind
from leatstream.services.environment import Context, Environment, Principal
from leatstream.services.environment.authorization import READ, authorize
from leatstream.services.environment.results import Run, StatementResult, kind_of
from leatstream.services.nouns.acting import in_role
from leatstream.services.nouns.names import entity_name, qualify_schema, single, store_of
from leatstream.services.nouns.session_defaults import set_default, used, with_defaults
from leatstream.services.queries import catalog as queries
from leatstream.services.queries.checkpoints import savepoints
from leatstream.services.relations import relations
from leatstream.services.selects import snapshots
from leatstream.services.selects.interactive import begin
from leatstream.services.staging.atomic import all_or_nothing
from leatstream.services.staging.catalog_view import qualify
from leatstream.services.statements import access as access_handlers
from leatstream.services.statements import applications as application_statements
from leatstream.services.statements import creates as creations
from leatstream.services.statements import secrets_and_registries as registered_statements
from leatstream.services.statements.changes import (
    describe_query,
    generate,
    insert_entity,
    insert_values,
    rollback,
    update_entity,
    update_store,
)
from leatstream.services.statements.drops import drop
from leatstream.services.statements.dry_run import plan_of
from leatstream.services.statements.functions import create_function, create_function_source
from leatstream.services.statements.listings import described, listed
from leatstream.services.statements.printed_records import printed
from leatstream.services.statements.restarts import described_restart, restart, restart_all
from leatstream.services.statements.waiting import wait_running
from leatstream.sql import statements as ast
from leatstream.sql.noun_statements import RELATIONS
from leatstream.sql.parser import parse


@dataclass(frozen=True, slots=True)
class StatementOutcome:
    """Results in order, and the context after the last one."""

    results: list[StatementResult]
    context: Context


def execute(
    env: Environment,
    principal: Principal,
    sql: str,
    context: Context,
    wait_timeout: float = 0.0,
    files: Mapping[str, str] | None = None,
    *,
    atomic: bool = False,
) -> StatementOutcome:
    """Run a text of one or more statements, one after the other.

    Args:
        env: the environment.
        principal: who asks.
        sql: statements separated by semicolons; the whole text is parsed before the first one runs.
        context: what unqualified names mean, and the role; USE changes it for the statements after.
        wait_timeout: seconds to wait for a created query's job to run.
        files: that the text names with ``'@name'``, by name, in base64.
        atomic: keep the changes of all statements or of none.

    Raises:
        LeatstreamError: of the first statement that fails; ``extra['results']`` holds what ran before it and
            stands, nothing if the text is atomic.
    """
    deadline = time.monotonic() + wait_timeout
    statements = parse(sql)
    caller = principal
    env, principal = in_role(env, caller, context.role)
    context = with_defaults(env, principal, context)
    if not atomic:
        run = Run(env, principal, context, deadline, files=files or {}, caller=caller)
        _run_all(run, statements)
        return StatementOutcome(run.results, run.context)
    _refuse_in_atomic(statements)

    def work(inner: Environment) -> Run:
        # Nothing runs before all is kept, so nobody waits inside.
        whole = Run(inner, principal, context, 0.0, files=files or {})
        try:
            _run_all(whole, statements)
        except LeatstreamError as error:
            error.extra["results"] = []
            raise
        return whole

    run = all_or_nothing(env, work)
    outside = Run(env, principal, context, deadline)
    return StatementOutcome([_awaited(outside, result) for result in run.results], run.context)


def _run_all(run: Run, statements: list[ast.Statement]) -> None:
    for statement in statements:
        try:
            run.keep(HANDLERS[type(statement)](run, statement))
        except LeatstreamError as error:
            if isinstance(error, AccessError):
                error.refused = replace(error.refused, role=run.principal.role)  # the one in use
            error.at(statement.position)
            error.extra["results"] = [r.as_json() for r in run.results]
            raise


def _refuse_in_atomic(statements: list[ast.Statement]) -> None:
    faults = Faults()
    for statement in statements:
        if isinstance(statement, ast.Select | ast.Print):
            detail = f"{kind_of(statement).upper()} answers with rows and cannot be part of an atomic text."
            faults.add("unsupported", detail, position=statement.position, hint="Send it on its own.")
        elif isinstance(statement, ast.Use) and statement.noun == "role":
            detail = "All statements of an atomic text run in one role."
            faults.add("unsupported", detail, position=statement.position, hint="Send USE ROLE before it.")
    faults.raise_if_any()


def _awaited(run: Run, result: StatementResult) -> StatementResult:
    """The result after waiting, up to the deadline, for the job of the query that it made."""
    if result.query is None or result.status != "running":
        return result
    query = queries.get_query(run.env, run.principal, result.query)
    return replace(result, status="succeeded") if wait_running(run, query) else result


def _set_default(run: Run, s: ast.SetDefault) -> StatementResult:
    if s.noun == "schema":
        name: tuple[str, ...] = qualify_schema(s.name, None, run.context)
    else:
        name = (single(s.name),)
    kept = set_default(run.env, run.principal, s.noun, name)
    run.context = replace(
        run.context,
        database=kept.database or run.context.database,
        schema=kept.schema or run.context.schema,
        store=kept.store or run.context.store,
    )
    return StatementResult(
        f"set_default_{s.noun}", object={"noun": s.noun, "name": ".".join(map(quote, name))}
    )


def _use(run: Run, s: ast.Use) -> StatementResult:
    caller = run.caller or run.principal
    name, run.context = used(run.env, caller if s.noun == "role" else run.principal, s, run.context)
    if s.noun == "role":
        run.env, run.principal = in_role(run.env, caller, name)
    return StatementResult(f"use_{s.noun}", object={"noun": s.noun, "name": name})


def _list(run: Run, s: ast.ListObjects) -> StatementResult:
    columns, rows = listed(run.env, run.principal, s, run.context)
    return StatementResult(f"list_{s.noun}", columns=columns, rows=rows)


def _describe(run: Run, s: ast.Describe) -> StatementResult:
    columns, rows = described(run.env, run.principal, s, run.context)
    thing: dict[str, Any] | None = None
    shown = s.noun
    if s.noun in RELATIONS:
        shown = "relation"
        relation = relations.get_relation(run.env, run.principal, qualify(s.name, run.context))
        thing = {"noun": "relation", "name": str(relation.fqn), "comment": relation.comment}
        thing["effective"] = {name: one.as_json() for name, one in relation.effective.items()}
        if relation.kind is RelationKind.MATERIALIZED_VIEW:
            thing["indexes"] = {index.name: list(index.columns) for index in relation.indexes}
    return StatementResult(f"describe_{shown}", object=thing, columns=columns, rows=rows)


def _describe_statement(run: Run, s: ast.DescribeStatement) -> StatementResult:
    authorize(run.principal, READ, "statements")
    kind, plan = plan_of(run.env, s.statement, run.context)
    if isinstance(s.statement, ast.RestartQuery):
        plan = described_restart(run.env, run.principal, s.statement)
    columns = [{"name": "kind", "type": "VARCHAR"}, {"name": "plan", "type": "JSON"}]
    return StatementResult("describe_statement", columns=columns, rows=[[kind, plan]])


def _print(run: Run, s: ast.Print) -> StatementResult:
    store = store_of(run.env, s.store, run.context)
    columns, rows = printed(run.env, run.principal, store, entity_name(s.name), s.properties)
    return StatementResult("print", columns=columns, rows=rows)


def _terminate(run: Run, s: ast.TerminateQuery) -> StatementResult:
    name = single(s.name)
    if s.savepoint is not None:
        savepoints.take_savepoint(run.env, run.principal, name, single(s.savepoint))
        thing = {"noun": "savepoint", "name": single(s.savepoint)}
        return StatementResult("terminate_query", status="running", object=thing, query=name)
    queries.patch_query(run.env, run.principal, name, {"desired_state": DesiredState.STOPPED})
    return StatementResult("terminate_query", object={"noun": "query", "name": name}, query=name)


def _select(run: Run, s: ast.Select) -> StatementResult:
    authorize(run.principal, READ, "statements")
    answered = snapshots.select(run.env, run.principal, s, run.context)
    if answered is not None:
        return answered
    selection, planned = begin(run.env, run.principal, s, run.context)
    return StatementResult(
        "select",
        status="running",
        object={"noun": "statement", "name": selection.id, "changelog": planned.changelog},
        columns=[{"name": c.name, "type": str(c.type)} for c in planned.columns],
        rows=f"/v1/statements/{selection.id}/rows",
    )


HANDLERS: dict[type[ast.Statement], Callable[[Run, Any], StatementResult]] = {
    ast.CreateDatabase: creations.create_database,
    ast.CreateSchema: creations.create_schema,
    ast.CreateStore: creations.create_store,
    ast.CreateEntity: creations.create_entity,
    ast.CreateApplication: application_statements.create,
    ast.TerminateApplication: application_statements.terminate,
    ast.RestartApplication: application_statements.restart,
    ast.CreateSecret: registered_statements.create,
    ast.CreateSchemaRegistry: registered_statements.create,
    ast.CreateDescriptorSource: registered_statements.create,
    ast.UpdateSecret: registered_statements.update_secret,
    ast.UpdateSchemaRegistry: registered_statements.update_registry,
    ast.CreateFunctionSource: create_function_source,
    ast.CreateFunction: create_function,
    ast.CreateStream: creations.create_stream,
    ast.CreateChangelog: creations.create_stream,
    ast.CreateTable: creations.create_stream,
    ast.CreateStreamAs: creations.create_query,
    ast.CreateChangelogAs: creations.create_query,
    ast.CreateTableAs: creations.create_query,
    ast.CreateMaterializedViewAs: creations.create_query,
    ast.CreateIndex: creations.create_index,
    ast.InsertInto: creations.create_query,
    ast.InsertValues: insert_values,
    ast.InsertEntity: insert_entity,
    ast.UpdateStore: update_store,
    ast.UpdateEntity: update_entity,
    ast.Generate: generate,
    ast.Drop: drop,
    ast.Use: _use,
    ast.SetDefault: _set_default,
    ast.ListObjects: _list,
    ast.Describe: _describe,
    ast.DescribeQuery: describe_query,
    ast.DescribeStatement: _describe_statement,
    ast.Print: _print,
    ast.TerminateQuery: _terminate,
    ast.RestartQuery: restart,
    ast.RestartQueries: restart_all,
    ast.RollbackQuery: rollback,
    ast.Select: _select,
    **access_handlers.HANDLERS,
}
