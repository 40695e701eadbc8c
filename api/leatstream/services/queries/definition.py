"""What a user writes of a query, and its statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any

from leatstream.errors import Faults, RequestError
from leatstream.model.names import Fqn
from leatstream.model.objects import (
    DesiredState,
    Query,
)
from leatstream.services.environment import (
    Context,
    Environment,
)
from leatstream.services.planning.binding import ContinuousStatement
from leatstream.services.planning.query_properties import query_name
from leatstream.sql import statements as ast
from leatstream.sql.parser import parse
from leatstream.sql.statements import CreateAs, InsertInto, Value


@dataclass(frozen=True, slots=True)
class QueryDefinition:
    """What the user writes of a query."""

    sql: str
    context: Context = field(default_factory=Context)
    desired_state: DesiredState = DesiredState.RUNNING
    delete_sink_entity: bool = False
    properties: Mapping[str, Any] = field(default_factory=dict)
    comment: str | None = None


def definition_of(query: Query) -> QueryDefinition:
    """What the user has written of a query that there is."""
    return QueryDefinition(
        sql=query.sql,
        context=Context(**query.context),
        desired_state=query.desired_state,
        delete_sink_entity=query.delete_sink_entity,
        properties=query.properties,
        comment=query.comment,
    )


def statement_of(body: QueryDefinition) -> ContinuousStatement:
    """What a body says: its statement, as if the body's properties stood in QUERY WITH."""
    return with_properties(parse_continuous(body.sql), body.properties)


def with_properties(statement: ContinuousStatement, properties: Mapping[str, Any]) -> ContinuousStatement:
    """The statement as if these properties stood in its QUERY WITH; faults in them point into the body.

    Raises:
        RequestError: invalid-property, for each that has another value there.
    """
    found, faults = dict(statement.query_properties), Faults()
    for given, text in properties.items():
        name, pointer = given.strip().lower(), "#/properties/" + given.replace("~", "~0").replace("/", "~1")
        value = found.setdefault(name, Value(text, "string", statement.position, pointer=pointer))
        if str(value.value) != str(text):
            at = f"in QUERY WITH, line {value.position.line} column {value.position.column}"
            where = at if value.pointer is None else "among the properties"
            detail = f"Query property {name} has another value {where}."
            faults.add("invalid-property", detail, pointer=pointer, hint="Give it once.")
    faults.raise_if_any()
    return replace(statement, query_properties=found)


def parse_continuous(sql: str) -> ContinuousStatement:
    """Read text that must be one CREATE … AS SELECT, or INSERT INTO … SELECT."""
    statements = parse(sql)
    if len(statements) != 1 or not isinstance(statements[0], CreateAs | InsertInto):
        what = f"{len(statements)} statements" if len(statements) != 1 else "another statement"
        raise RequestError(
            "validation",
            "A query's sql is one CREATE STREAM, CHANGELOG, TABLE or MATERIALIZED VIEW … AS SELECT, or "
            f"INSERT INTO … SELECT; this is {what}.",
            pointer="#/sql",
            position=statements[0].position if statements else None,
        )
    return statements[0]


def suggest_query_name(
    env: Environment, statement: ast.CreateAs | ast.InsertInto, fqn: Fqn, application: str | None = None
) -> str:
    """``query.name`` if given, else the sink's name, numbered if taken.

    An application's INSERT has the application's name before it: several may write into one stream, and a
    plan is to tell the same name whichever of them is made first.

    Args:
        env: the environment.
        statement: as it was read.
        fqn: full name of the sink.
        application: that it is part of; None = none.
    """
    given = query_name(statement.query_properties)
    if given is not None:
        return given
    base = fqn.name if isinstance(statement, ast.CreateAs) else f"insert_into_{fqn.name}"
    if application is not None and isinstance(statement, ast.InsertInto):
        base = f"{application}_{base}"
    names = chain((base,), (f"{base}_{number}" for number in count(2)))
    with env.open_unit(write=False) as unit:
        # One by one: a reader of all queries has to start again when any of them changes.
        return next(name for name in names if unit.queries.find(name) is None)
