"""What the engine's analyzer says of a query: its columns, and the types that its parts need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from leatstream.errors import Faults
from leatstream.model.names import quote
from leatstream.model.objects import HIDDEN_PREFIX
from leatstream.plan.logical import (
    AnalysisFailure,
    AnalyzedColumn,
    FunctionShape,
    LogicalPlan,
    Origin,
    Quotient,
    Scan,
)
from leatstream.services.environment import Environment
from leatstream.services.planning.sink_columns import check_comparable, same_kind
from leatstream.services.staging.catalog_view import CatalogView
from leatstream.sql.analysis import explain_failure
from leatstream.sql.passes.quotients import Settled, probe, settle
from leatstream.sql.views import view_schema

# A statement must not keep the analyzer to itself.
_MOST_PROBES = 8


def analyze(env: Environment, logical: LogicalPlan) -> list[AnalyzedColumn]:
    """Names and types of the query's columns; RequestError for what the engine refuses."""
    result = _analyzed(env, logical, logical.sql)
    columns = [c for c in result if not c.name.startswith(HIDDEN_PREFIX)]
    if logical.distinct:
        check_comparable(columns, logical.left_most.position)
    return columns


def typed_plan(env: Environment, bound: Callable[[Settled], LogicalPlan]) -> LogicalPlan:
    """A query's plan with the types of its quotients and of its row pattern.

    Args:
        env: whose analyzer is asked.
        bound: binds the query with the types of the quotients that are settled; it is called again for each
            level of the query whose quotients are open.

    Raises:
        RequestError: the query is wrong, or its pattern does not fit the types.
        EngineError: no driver is there to analyze.
    """
    settled: dict[Origin, str | None] = {}
    logical = bound(settled)
    if logical.pattern is not None and logical.pattern.quotients:
        settled |= _settled(env, logical, logical.pattern.input, logical.pattern.quotients)
        logical = bound(settled)
    typed = _with_types(env, logical)
    if not typed.quotients:
        return typed
    settled |= _settled(env, typed, typed.sql, typed.quotients)
    return _with_types(env, bound(settled))


def _settled(
    env: Environment, logical: LogicalPlan, sql: str, quotients: Sequence[Quotient]
) -> dict[Origin, str | None]:
    """The types of quotients; one that takes no remainder, as of an interval, is none of whole numbers."""
    left = list(quotients)
    for _ in range(_MOST_PROBES):
        if not left:
            break
        places = [(q.start, q.stop) for q in left]
        found = _asked(env, logical, probe(sql, left), places)
        if not isinstance(found, AnalysisFailure):
            return {q.origin: None for q in quotients} | settle(left, found)
        around = [q for q in left if found.start is not None and q.start <= found.start <= q.stop]
        if not around:
            break
        left.remove(min(around, key=lambda q: q.stop - q.start))
    # The query itself is wrong, which its analysis says.
    return {q.origin: None for q in quotients}


def with_places(env: Environment, view: CatalogView, logical: LogicalPlan) -> LogicalPlan:
    """The plan with what each source's kind of store knows of where records lie.

    Args:
        env: the environment.
        view: the catalog, with what is assumed.
        logical: the bound SELECT.
    """

    def placed(scan: Scan) -> Scan:
        store = view.find_store(scan.relation.store)
        connector_class = env.connector_classes.get(store.kind) if store is not None else None
        return scan if connector_class is None else replace(scan, place=connector_class.place_members)

    return replace(logical, scans=tuple(map(placed, logical.scans)))


def _with_types(env: Environment, logical: LogicalPlan) -> LogicalPlan:
    """The plan with its row pattern typed, if it has one; RequestError for what does not fit."""
    pattern = logical.pattern
    if pattern is None:
        return logical
    plain = replace(logical, source_map=pattern.source_map)
    kinds = {column.name: column.type for column in _analyzed(env, plain, pattern.input)}
    return replace(logical, matches=pattern.typed([kinds[f"c{i}"] for i in range(pattern.cells)]))


def _analyzed(env: Environment, logical: LogicalPlan, sql: str) -> list[AnalyzedColumn]:
    result = _asked(env, logical, sql)
    if isinstance(result, AnalysisFailure):
        raise explain_failure(logical, result)
    return result


def _asked(
    env: Environment, logical: LogicalPlan, sql: str, places: Sequence[tuple[int, int]] = ()
) -> list[AnalyzedColumn] | AnalysisFailure:
    views = [view_schema(s) for s in logical.scans]
    if logical.matches is not None:
        views.append(logical.matches.view)
    shapes = [FunctionShape(use.name, str(use.function.returns)) for use in logical.functions]
    asked = {"places": tuple(places)} if places else {}
    return env.analyzer.analyze(views, sql, env.settings.analysis_timeout, shapes, **asked)


def check_lookup_types(env: Environment, logical: LogicalPlan) -> None:
    """The values that rows of tables are looked up by are of their columns' types.

    Raises:
        RequestError: type-mismatch, with every fault.
    """
    faults = Faults()
    for lookup in logical.lookups:
        relation = lookup.scan.relation
        named = ", ".join(f"{value} AS `leat_key_{i}`" for i, value in enumerate(lookup.values))
        found = _analyzed(env, logical, f"SELECT {named} FROM {lookup.left}")  # noqa: S608 - our compiler's
        for key, value in zip(lookup.keys, found, strict=True):
            column = relation.find_column(key)
            if column is None or same_kind(column.type, value.type):
                continue
            shown = f"{quote(lookup.scan.alias)}.{quote(key)}"
            detail = f"{shown} is {column.type}, but is looked up by a value of Spark type {value.type}."
            faults.add("type-mismatch", detail, position=lookup.position, hint=f"CAST(… AS {column.type})")
    faults.raise_if_any()
