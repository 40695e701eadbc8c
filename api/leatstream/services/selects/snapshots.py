"""SELECT over materialized views: answered at once by the database that keeps them, without Spark."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlglot import exp

from leatstream.errors import RequestError
from leatstream.model.exact import scaled
from leatstream.model.names import quote
from leatstream.model.objects import Query, Relation, RelationKind
from leatstream.model.types import DataType
from leatstream.model.view_values import FLOATS, MOMENTS, NAN, NESTED, day, decode_decimal, micros, moment
from leatstream.ports import Freshness, Snapshot
from leatstream.services.environment import Context, Environment, Principal, view_table
from leatstream.services.environment.authorization import READ, authorize
from leatstream.services.environment.results import StatementResult
from leatstream.services.planning.access import require_reading
from leatstream.services.queries.views import keeper, shown_kind
from leatstream.services.staging.catalog_view import CatalogView
from leatstream.sql import statements as ast
from leatstream.sql.snapshot.compiler import Compiled, compile_select
from leatstream.sql.snapshot.shared import Source
from leatstream.sql.view_properties import read_view_properties

MOST_ROWS, SECONDS = 10_000, 30.0
_MOST_VIEWS = 8


def reads_views(view: CatalogView, select: exp.Expression, context: Context) -> bool:
    """Whether a SELECT reads no streams, so that it ends.

    Args:
        view: the catalog, with what is assumed.
        select: as it was read.
        context: database, schema and store of the session.

    Raises:
        RequestError: it reads views and other relations.
    """
    found = [(name, _find(view, name, context)) for name in _names(select)]
    kept = [name for name, r in found if r is not None and r.kind is RelationKind.MATERIALIZED_VIEW]
    other = [(name, r) for name, r in found if r is not None and r.kind is not RelationKind.MATERIALIZED_VIEW]
    if kept and other:
        name, relation = other[0]
        raise RequestError(
            "unsupported",
            f"{relation.fqn} is a {shown_kind(relation)}, which has no end, and"
            f" {'.'.join(map(quote, kept[0].parts))} a materialized view: one SELECT cannot read both.",
            position=name.position,
            hint="Keep what is wanted of it in a materialized view of its own, and join the two.",
        )
    if not other:
        for name, known in found:
            if known is None:
                view.resolve(name, context)  # raises; types are beside the point when a name is wrong
    return not other


def _find(view: CatalogView, name: ast.Name, context: Context) -> Relation | None:
    try:
        return view.resolve(name, context)
    except RequestError:
        return None


def _names(select: exp.Expression, ctes: frozenset[str] = frozenset()) -> Iterator[ast.Name]:
    """Relations that a query names, those of WITH left out."""
    for known, query in select.meta.get("ctes", ()):
        yield from _names(query, ctes)
        ctes |= {known}
    for node in select.walk(prune=lambda n: n is not select and isinstance(n, exp.Select | exp.Union)):
        if node is not select and isinstance(node, exp.Select | exp.Union):
            yield from _names(node, ctes)
        elif isinstance(node, exp.Table) and "name" in node.meta:
            name: ast.Name = node.meta["name"]
            if len(name.parts) > 1 or name.parts[0] not in ctes:
                yield name


class _Views:
    """The views that one SELECT reads, each once."""

    def __init__(self, env: Environment, view: CatalogView, context: Context, now: datetime) -> None:
        self.env, self.view, self.context, self.now = env, view, context, now
        self.found: list[tuple[Relation, Query]] = []

    def resolve(self, name: ast.Name) -> Source:
        """Where a view's rows are."""
        relation = self.view.resolve(name, self.context)
        if relation.kind is not RelationKind.MATERIALIZED_VIEW:
            detail = f"{relation.fqn} is a {shown_kind(relation)}, no materialized view."
            raise RequestError("unsupported", detail, position=name.position)
        if relation.store:
            raise RequestError(
                "unsupported",
                f"{relation.fqn} is held by store {quote(relation.store)}, as {relation.entity}: "
                "SELECT reads only the views of leatstream's own database.",
                position=name.position,
                hint=f"Query {relation.entity} in the store itself, or create the view without 'store'.",
            )
        place = next((i for i, (known, _) in enumerate(self.found) if known.fqn == relation.fqn), None)
        if place is None:
            place = len(self.found)
            if place >= _MOST_VIEWS:
                detail = f"A SELECT reads at most {_MOST_VIEWS} materialized views."
                raise RequestError("too-complex", detail, position=name.position)
            self.found.append((relation, keeper(self.view.unit, relation)))
        table = view_table(self.found[place][1])
        where = f"v{place}.leat_rows" if self.env.views.kind == "sqlite" else f'leatstream_views."{table}"'
        retention = read_view_properties(dict(relation.properties)).retention_ms
        oldest = micros(self.now) - retention * 1000 if retention is not None else None
        return Source(relation, where, oldest)


def check(env: Environment, view: CatalogView, statement: ast.Select, context: Context) -> None:
    """Compile a SELECT over views without running it; RequestError with all that is wrong.

    Args:
        env: the environment.
        view: the catalog, with what is assumed.
        statement: as it was read.
        context: database, schema and store of the session.
    """
    _compile(env, view, statement, context)


def _compile(
    env: Environment, view: CatalogView, statement: ast.Select, context: Context
) -> tuple[Compiled, list[tuple[Relation, Query]]]:
    now = env.clock.now()
    views = _Views(env, view, context, now)
    made = compile_select(statement.select, views.resolve, env.views.kind, now)
    return made, views.found


def select(
    env: Environment, principal: Principal, statement: ast.Select, context: Context
) -> StatementResult | None:
    """Answer a SELECT over views: at most ``MOST_ROWS`` rows, within ``SECONDS``; None if it reads streams.

    Args:
        env: the environment.
        principal: who asks.
        statement: as it was read.
        context: database, schema and store of the session.

    Raises:
        RequestError: all that is wrong with it, or a value that cannot be computed.
        EngineError: view-not-ready, statement-timeout.
    """
    with env.open_unit(write=False) as unit:
        view = CatalogView(unit)
        if not reads_views(view, statement.select, context):
            return None
        made, found = _compile(env, view, statement, context)
        require_reading(unit, [relation for relation, _ in found])
    # The rows may take long: the catalog's connections are for those who need them.
    for relation, _ in found:
        authorize(principal, READ, "materialized view", str(relation.fqn))
    tables = [(view_table(query), query.checkpoint_generation) for _, query in found]
    rows, fresh = env.views.read(Snapshot(made.sql, made.parameters, tables, MOST_ROWS + 1, SECONDS))
    columns = [{"name": name, "type": str(kind)} for name, kind in made.columns]
    shown = [reader(kind, env.views.kind == "sqlite") for _, kind in made.columns]
    try:
        given = [[show(value) for show, value in zip(shown, row, strict=True)] for row in rows[:MOST_ROWS]]
    except (ArithmeticError, ValueError):
        # What is computed by adding to a time is looked at here only.
        detail = "A value is beyond its type, such as a date after the year 9999."
        raise RequestError("not-computable", detail, sqlstate="22008") from None
    return StatementResult(
        "select",
        columns=columns,
        rows=given,
        freshness=[_told(r, f) for (r, _), f in zip(found, fresh, strict=True)],
        truncated=len(rows) > MOST_ROWS,
    )


def _told(relation: Relation, fresh: Freshness) -> dict[str, Any]:
    def time(count: int | None) -> str | None:
        return moment(count).isoformat(timespec="milliseconds") + "Z" if count is not None else None

    return {
        "view": str(relation.fqn),
        "batch_id": fresh.batch,
        "batch_time": time(fresh.batch_time),
        "watermark": time(fresh.watermark),
    }


def reader(kind: DataType, encoded: bool) -> Callable[[Any], Any]:
    """How a value of a type is shown in JSON.

    Integers are numbers, DECIMAL is a text with all its digits, FLOAT and DOUBLE are numbers but for "NaN",
    "Infinity" and "-Infinity", times are texts as in the jobs' records, bytes are base64.
    """

    def show(value: Any) -> Any:
        return None if value is None else _shown(value, kind, encoded)

    return show


def _shown(value: Any, kind: DataType, encoded: bool) -> Any:
    if kind.kind == "BOOLEAN":
        return bool(value)
    if kind.kind in FLOATS:
        number = math.nan if value == NAN else float(value)
        return (
            number
            if math.isfinite(number)
            else {"nan": "NaN", "inf": "Infinity"}.get(str(number), "-Infinity")
        )
    if kind.kind == "DECIMAL":
        number_ = decode_decimal(value) if encoded else Decimal(value)
        scale = (*kind.parameters, 0)[:2][1] if kind.parameters else 0
        return format(scaled(number_, scale), "f")
    if kind.kind in MOMENTS:
        return _moment(moment(value) if encoded else value, kind)
    if kind.kind == "DATE":
        return (day(value) if encoded else value).isoformat()
    if kind.kind in NESTED:
        return _nested(json.loads(value, parse_float=Decimal), kind)
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(bytes(value)).decode()
    return value


def _moment(when: datetime, kind: DataType) -> str:
    plain = when.astimezone(UTC).replace(tzinfo=None) if when.tzinfo else when
    text = plain.isoformat(" ", "microseconds").rstrip("0").rstrip(".")
    return text + ("Z" if kind.kind == "TIMESTAMP_LTZ" else "")


def _nested(value: Any, kind: DataType) -> Any:
    """The parsed JSON of a nested value, its decimals as texts."""
    if value is None:
        return None
    if kind.kind == "ARRAY":
        return [_nested(item, kind.arguments[0]) for item in value]
    if kind.kind == "MAP":
        return {k: _nested(item, kind.arguments[1]) for k, item in value.items()}
    if kind.kind == "STRUCT":
        parts = zip(kind.fields, kind.arguments, strict=True)
        return {name: _nested(value.get(name), part) for name, part in parts}
    if kind.kind == "DECIMAL":
        return format(Decimal(value), "f")
    return float(value) if isinstance(value, Decimal) else value
