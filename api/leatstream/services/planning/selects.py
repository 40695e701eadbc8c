"""An interactive SELECT, planned: bound, analyzed and written as a JobSpec whose sink is its reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from leatstream.errors import RequestError
from leatstream.model.objects import HIDDEN_PREFIX, Column, Store
from leatstream.plan.job_spec import READER_KIND, ColumnSpec, JobSpec, SinkSpec, StoreRef
from leatstream.plan.logical import LogicalPlan
from leatstream.services.environment import Context, Environment
from leatstream.services.functions.jobs import function_specs
from leatstream.services.planning.access import require_reading
from leatstream.services.planning.analysis import analyze, check_lookup_types, typed_plan, with_places
from leatstream.services.planning.draft import require_sources
from leatstream.services.planning.job import plan_job
from leatstream.services.planning.live_stores import LiveStores
from leatstream.services.planning.query import sources_json
from leatstream.services.planning.sink_columns import new_columns
from leatstream.services.staging.catalog_view import CatalogView
from leatstream.sql.binder import bind
from leatstream.sql.passes.quotients import Settled
from leatstream.sql.statements import Select

# The store and the entity of a SELECT's sink: its reader.
_READER = f"{HIDDEN_PREFIX}reader"
_SELECT_OFFSETS = 20_000  # a batch is held in memory, and its first rows shall come soon


@dataclass(frozen=True, slots=True)
class PlannedSelect:
    """An interactive SELECT that may run; ``job`` has no identity yet, its sink stands for the reader."""

    logical: LogicalPlan
    columns: tuple[Column, ...]
    stores: Mapping[str, Store]
    job: JobSpec

    @property
    def changelog(self) -> bool:
        """Whether a row may replace or take back one before it."""
        return bool(self.logical.primary_key)

    def as_json(self) -> dict[str, Any]:
        """The plan as ``statements:validate`` shows it."""
        return {
            "sources": sources_json(self.logical, self.stores),
            "columns": [{"name": c.name, "type": str(c.type), "not_null": c.not_null} for c in self.columns],
            "changelog": self.changelog,
        }


def plan_select(env: Environment, view: CatalogView, statement: Select, context: Context) -> PlannedSelect:
    """Check a SELECT whole and write its JobSpec.

    Args:
        env: the environment.
        view: the catalog, with what is assumed.
        statement: as it was read.
        context: database, schema and store of the session.

    Raises:
        RequestError: everything that is wrong with the statement.
        StoreError: a store is unreachable, or an entity does not exist.
        EngineError: there is no driver to analyze.
    """
    live = LiveStores(env, view)
    logical = typed_plan(
        env, lambda settled: with_places(env, view, _bind_select(statement, view, context, settled))
    )
    require_reading(view.unit, [scan.relation for scan in logical.scans])
    analyzed = analyze(env, logical)
    require_sources(live, view, logical)
    check_lookup_types(env, logical)
    columns = new_columns(analyzed, statement.position)
    sink = SinkSpec(
        relation=_READER,
        store=StoreRef(name=_READER, kind=READER_KIND, config={}),
        entity="rows",
        columns=[ColumnSpec(name=c.name, type=str(c.type), not_null=c.not_null) for c in columns],
        value_format="json",
        key_format="json" if logical.primary_key else None,
        key_columns=list(logical.primary_key),
        deletes=logical.deletes,
    )
    job = plan_job(live, logical, sink, logical.sql, {})
    functions, _ = function_specs(view, logical.functions)
    bounded = job.model_copy(update={"max_offsets_per_trigger": _SELECT_OFFSETS, "functions": functions})
    stores = {s.relation.store: live.store(s.relation.store) for s in logical.scans}
    return PlannedSelect(logical, columns, stores, bounded)


def _bind_select(statement: Select, view: CatalogView, context: Context, settled: Settled) -> LogicalPlan:
    """As a changelog where it can be one: groups and rows are shown as they change.

    Sessions are not, which Spark gives only once they have closed, nor is what has lost its key, or what
    Spark does not update.
    """
    select = statement.select

    def bound(tree: exp.Expression, *, changelog: bool) -> LogicalPlan:
        # Binding notes its findings in the tree.
        return bind(
            tree.copy(),
            lambda name: view.resolve(name, context),
            statement.text,
            changelog=changelog,
            find_function=view.find_function,
            settled=settled,
        )

    grouped = isinstance(select, exp.Select) and select.args.get("group") is not None
    window = select.args["from_"].this.meta.get("window") if grouped else None
    if grouped and window is not None and window.kind == "session":
        return bound(select, changelog=False)
    try:
        return bound(select, changelog=True)
    except RequestError:
        if grouped and window is None:
            # Such groups cannot make a stream at all, which is not what is wrong here.
            raise
        return bound(select, changelog=False)
