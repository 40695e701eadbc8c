"""Statements: what running a text did, and the verdict on one."""

from __future__ import annotations

import strawberry

from leatstream.rest.graphql.plans import Plan, plan_of
from leatstream.rest.graphql.request import named
from leatstream.rest.graphql.values import JSON, NamedValue, Problem, named_values, problem_of
from leatstream.services.environment import Context
from leatstream.services.environment.results import StatementResult
from leatstream.services.statements.dry_run import ValidationOutcome
from leatstream.services.statements.execution import StatementOutcome


@strawberry.input(description="What unqualified names mean. Names fold to lower case unless quoted.")
class ContextInput:
    """What unqualified names mean."""

    database: str | None = None
    schema: str | None = None
    store: str | None = None
    role: str | None = None


@strawberry.input(description="A file that the SQL names with '@name'.")
class FileInput:
    """A file that the SQL names."""

    name: str
    content: str = strawberry.field(description="In base64.")


@strawberry.type(description="What unqualified names mean now; send it with the next statement.")
class SessionContext:
    """What unqualified names mean now."""

    database: str | None
    schema: str | None
    store: str | None
    role: str | None


@strawberry.type(description="A column of a statement's rows.")
class ResultColumn:
    """A column of a statement's rows."""

    name: str
    type: str


@strawberry.type(description="What one statement did.")
class Result:
    """What one statement did."""

    kind: str = strawberry.field(description="Such as create_stream.")
    status: str = strawberry.field(description="succeeded, or running while a job is starting or rows come.")
    object: list[NamedValue] | None = strawberry.field(description="Noun and name of its object.")
    query: str | None = strawberry.field(description="Name of the query it made.")
    columns: list[ResultColumn] | None
    rows: list[list[JSON | None]] | None
    rows_path: str | None = strawberry.field(description="REST path of the rows of a SELECT on streams.")
    truncated: bool | None


@strawberry.type(description="Results in order, and the context after the last statement.")
class StatementAnswer:
    """Results in order, and the context after the last statement."""

    results: list[Result]
    context: SessionContext


@strawberry.type(description="The verdict on one statement.")
class ValidatedStatement:
    """The verdict on one statement."""

    kind: str
    plan: Plan | None
    problems: list[Problem]


@strawberry.type(description="The verdict on a text.")
class Validation:
    """The verdict on a text."""

    valid: bool
    statements: list[ValidatedStatement]
    canonical: str = strawberry.field(description="The text without comments, in one spelling.")
    hash: str = strawberry.field(description="Equal for texts of the same meaning.")


def context_of(given: ContextInput | None) -> Context:
    """The context for the services."""
    if given is None:
        return Context()
    names = (given.database, given.schema, given.store, given.role)
    return Context(*(named(name) if name is not None else None for name in names))


def _result(done: StatementResult) -> Result:
    path = isinstance(done.rows, str)
    return Result(
        kind=done.kind,
        status=done.status,
        object=named_values(done.object) if done.object is not None else None,
        query=done.query,
        columns=[ResultColumn(name=c["name"], type=c["type"]) for c in done.columns]
        if done.columns is not None
        else None,
        rows=None if path or done.rows is None else [[JSON(v) for v in row] for row in done.rows],
        rows_path=str(done.rows) if path else None,
        truncated=done.truncated,
    )


def answer_of(outcome: StatementOutcome) -> StatementAnswer:
    """What running a text did, as clients see it."""
    context = SessionContext(**outcome.context.as_json())
    return StatementAnswer(results=[_result(one) for one in outcome.results], context=context)


def validation_of(outcome: ValidationOutcome) -> Validation:
    """A verdict as clients see it."""
    statements = [
        ValidatedStatement(
            kind=one["kind"],
            plan=plan_of(one["plan"]),
            problems=[problem_of(problem) for problem in one["problems"]],
        )
        for one in outcome.statements
    ]
    return Validation(
        valid=outcome.valid, statements=statements, canonical=outcome.canonical, hash=outcome.hash
    )
