"""What the engine's analyzer says of a query: its columns, and the types that its parts need."""

from __future__ import annotations

from dataclasses import replace

from leatstream.errors import Faults
from leatstream.model.names import quote
from leatstream.model.objects import HIDDEN_PREFIX
from leatstream.plan.logical import AnalysisFailure, AnalyzedColumn, FunctionShape, LogicalPlan, Scan
from leatstream.services.environment import Environment
from leatstream.services.planning.sink_columns import check_comparable, same_kind
from leatstream.services.staging.catalog_view import CatalogView
from leatstream.sql.analysis import explain_failure
from leatstream.sql.views import view_schema


def analyze(env: Environment, logical: LogicalPlan) -> list[AnalyzedColumn]:
    """Names and types of the query's columns; RequestError for what the engine refuses."""
    result = _analyzed(env, logical, logical.sql)
    columns = [c for c in result if not c.name.startswith(HIDDEN_PREFIX)]
    if logical.distinct:
        check_comparable(columns, logical.left_most.position)
    return columns


def with_places(env: Environment, view: CatalogView, logical: LogicalPlan) -> LogicalPlan:
    """The plan with what each source's kind of store knows of where records lie."""

    def placed(scan: Scan) -> Scan:
        store = view.find_store(scan.relation.store)
        connector_class = env.connector_classes.get(store.kind) if store is not None else None
        return scan if connector_class is None else replace(scan, place=connector_class.place_members)

    return replace(logical, scans=tuple(map(placed, logical.scans)))


def with_types(env: Environment, logical: LogicalPlan) -> LogicalPlan:
    """The plan with its row pattern typed, if it has one; RequestError for what does not fit."""
    pattern = logical.pattern
    if pattern is None:
        return logical
    plain = replace(logical, source_map=pattern.source_map)
    kinds = {column.name: column.type for column in _analyzed(env, plain, pattern.input)}
    return replace(logical, matches=pattern.typed([kinds[f"c{i}"] for i in range(pattern.cells)]))


def _analyzed(env: Environment, logical: LogicalPlan, sql: str) -> list[AnalyzedColumn]:
    views = [view_schema(s) for s in logical.scans]
    if logical.matches is not None:
        views.append(logical.matches.view)
    shapes = [FunctionShape(use.name, str(use.function.returns)) for use in logical.functions]
    result = env.analyzer.analyze(views, sql, env.settings.analysis_timeout, shapes)
    if isinstance(result, AnalysisFailure):
        raise explain_failure(logical, result)
    return result


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
