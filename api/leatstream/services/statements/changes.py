"""Statements about records, changes and queries that run: each ends in a service function."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from leatstream.errors import LeatstreamError
from leatstream.model.names import Fqn
from leatstream.model.objects import DesiredState, Query
from leatstream.services.environment import Precondition
from leatstream.services.environment.results import Run, StatementResult, about_store, kind_of
from leatstream.services.nouns import stores
from leatstream.services.nouns.names import entity_name, single, store_of
from leatstream.services.planning.query_properties import is_blue_green
from leatstream.services.queries import catalog as queries
from leatstream.services.queries.definition import definition_of, with_properties
from leatstream.services.queries.replace import blue_green
from leatstream.services.relations import entities
from leatstream.services.relations.declarations import entity_properties
from leatstream.services.statements import generate as generating
from leatstream.services.statements import inserted_values as records
from leatstream.services.statements.listings import described_query
from leatstream.services.statements.waiting import wait_running
from leatstream.sql import statements as ast
from leatstream.sql.applications import placed
from leatstream.sql.store_properties import read_store_registry, read_store_update


def insert_values(run: Run, s: ast.InsertValues) -> StatementResult:
    """INSERT INTO stream VALUES: the rows are written at once, no query is made."""
    name = records.insert_values(run.env, run.principal, s, run.context)
    thing = {"noun": "relation", "name": name, "records": len(s.rows)}
    return StatementResult("insert_values", object=thing)


def insert_entity(run: Run, s: ast.InsertEntity) -> StatementResult:
    """INSERT INTO ENTITY: one record, as it is."""
    store, name = store_of(run.env, s.store, run.context), entity_name(s.name)
    warnings = records.insert_json(run.env, run.principal, store, name, s)
    thing: dict[str, Any] = {"noun": "entity", "name": name, "store": store, "records": 1}
    return StatementResult("insert_entity", object=thing | ({"warnings": warnings} if warnings else {}))


def update_store(run: Run, s: ast.UpdateStore) -> StatementResult:
    """UPDATE STORE: what is not named stays."""
    name = single(s.name)
    stored = stores.update_store(
        run.env,
        run.principal,
        name,
        lambda old: read_store_update(s.properties, old.kind, old.config, old.secret_names),
        read_store_registry(s.properties),
    )
    return StatementResult("update_store", object=about_store(name, stored))


def update_entity(run: Run, s: ast.UpdateEntity) -> StatementResult:
    """UPDATE ENTITY: what is not named stays."""
    store, name = store_of(run.env, s.store, run.context), entity_name(s.name)
    entities.update_entity(run.env, run.principal, store, name, *entity_properties(s.properties))
    return StatementResult("update_entity", object={"noun": "entity", "name": name, "store": store})


def generate(run: Run, s: ast.Generate) -> StatementResult:
    """GENERATE COLUMNS and GENERATE TEMPLATE."""
    store, name = store_of(run.env, s.store, run.context), entity_name(s.name)
    found = generating.sample(run.env, run.principal, store, name, s.properties)
    thing = {"noun": "entity", "name": name, "store": store}
    if s.what == "columns":
        columns, rows = generating.columns_table(found)
        return StatementResult("generate_columns", object=thing, columns=columns, rows=rows)
    entity = entities.get_entity(run.env, run.principal, store, name)
    text = generating.template(store, name, found, str(entity.details.get("format", "json")))
    columns = [{"name": "statement", "type": "VARCHAR"}]
    return StatementResult("generate_template", object=thing, columns=columns, rows=[[text]])


def describe_query(run: Run, s: ast.DescribeQuery) -> StatementResult:
    """DESCRIBE QUERY STATE and DESCRIBE QUERY METRICS."""
    columns, rows = described_query(run.env, run.principal, s)
    thing = {"noun": "query", "name": single(s.name)}
    return StatementResult(f"describe_query_{s.what}", object=thing, columns=columns, rows=rows)


def replace_query(run: Run, s: ast.CreateAs, fqn: Fqn, old: Query) -> StatementResult:
    """Put the query that makes the stream; what else was said of it (its comment, its topic's end) stays.

    Args:
        run: who asks, and in which context.
        s: the statement.
        fqn: full name of the stream.
        old: the query as it is.
    """
    changes = {
        "sql": s.text,
        "context": replace(run.context, role=None),
        "desired_state": DesiredState.RUNNING,
    }
    pre = Precondition(if_match=old.meta.generation)
    beside = _beside(run, s, old, pre)
    if beside is not None:
        return StatementResult(
            kind_of(s),
            status="running",
            object={"noun": "relation", "name": str(fqn)},
            query=beside.name,
            columns=[{"name": n, "type": "VARCHAR"} for n in ("query", "change", "reason")],
            rows=[[beside.name, "blue-green", beside.status.message]],
        )
    try:
        stored = queries.patch_query(run.env, run.principal, old.name, changes, pre)
    except LeatstreamError as error:
        raise placed(error, s) from None
    change = stored.item.plan.get("change") if stored.changed else None
    described = change or {"class": "none", "reason": "the query stays the same"}
    running = wait_running(run, stored.item)
    return StatementResult(
        kind_of(s),
        status="succeeded" if running else "running",
        object={"noun": "relation", "name": str(fqn)},
        query=old.name,
        columns=[{"name": n, "type": "VARCHAR"} for n in ("query", "change", "reason")],
        rows=[[old.name, described["class"], described["reason"]]],
    )


def _beside(run: Run, s: ast.CreateAs, old: Query, pre: Precondition) -> Query | None:
    """The query that is to take over, where the statement asks for one, or what was said of it before."""
    body = replace(definition_of(old), sql=s.text, context=replace(run.context, role=None))
    body = replace(body, desired_state=DesiredState.RUNNING)
    try:
        if not is_blue_green(with_properties(s, old.properties).query_properties):
            return None
        return blue_green.replace_beside(run.env, run.principal, old.name, body, pre)
    except LeatstreamError as error:
        raise placed(error, s) from None


def rollback(run: Run, s: ast.RollbackQuery) -> StatementResult:
    """ROLLBACK QUERY: the version before takes over again."""
    green = blue_green.rollback(run.env, run.principal, single(s.name))
    thing = {"noun": "query", "name": single(s.name)}
    return StatementResult("rollback_query", status="running", object=thing, query=green.name)
