"""A SELECT over views to one text of SQL: names and types resolved, all faults reported at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlglot import exp

from leatstream.errors import RequestError
from leatstream.model.names import quote
from leatstream.model.types import DataType
from leatstream.sql.passes.columns import Columns, suggestion
from leatstream.sql.passes.items import item_name
from leatstream.sql.passes.scope import Input, place
from leatstream.sql.snapshot import kinds
from leatstream.sql.snapshot.ends import ended
from leatstream.sql.snapshot.expressions import Expressions
from leatstream.sql.snapshot.inputs import Inputs
from leatstream.sql.snapshot.set_operators import combined
from leatstream.sql.snapshot.shared import Ctes, Made, Shared, Source
from leatstream.sql.snapshot.values import Database, Parameters
from leatstream.sql.statements import Name

MAX_DEPTH = 16
_MOST_QUERIES = 500
# Of what the parser notes as impossible on streams.
_POSSIBLE = {
    *("ORDER BY", "LIMIT", "OFFSET", "FETCH FIRST", "SELECT DISTINCT", "UNION", "UNION DISTINCT"),
    *("EXCEPT", "MINUS", "INTERSECT"),
}
# What to write instead, where it is another thing than on streams.
_HINTS = {f"{word} ALL": "Leave out ALL." for word in ("EXCEPT", "MINUS", "INTERSECT")}
_APART = "A sub-query does not see the columns around it: write a JOIN."


@dataclass(frozen=True, slots=True)
class Compiled:
    """The result: SQL with its parameters, and the columns that it gives."""

    sql: str
    parameters: Sequence[Any]
    columns: Sequence[tuple[str, DataType]]


def compile_select(
    select: exp.Expression, resolve: Callable[[Name], Source], database: Database, now: datetime
) -> Compiled:
    """Compile a SELECT.

    Args:
        select: from ``parser.parse``.
        resolve: finds a view; raises RequestError.
        database: whose SQL to write.
        now: what CURRENT_TIMESTAMP is.

    Raises:
        RequestError: with every fault found, in the order of the text.
    """
    compiler = _Compiler(resolve, database, now)
    try:
        made = compiler.query(select, {}, 0)
    except RecursionError:
        raise RequestError("too-complex", "The query nests too deep.", position=place(select)) from None
    faults = compiler.shared.faults
    faults.items.sort(key=lambda f: f.position.offset if f.position else 0)
    faults.raise_if_any()
    columns = [(n, t or kinds.VARCHAR) for n, t in zip(made.names, made.types, strict=True)]
    return Compiled(made.sql, compiler.shared.parameters.values, columns)


class _Compiler:
    def __init__(self, resolve: Callable[[Name], Source], database: Database, now: datetime) -> None:
        self.shared = Shared(resolve, now, Parameters(database))
        self.queries = 0

    def query(self, node: exp.Expression, ctes: Ctes, depth: int) -> Made:
        if depth > MAX_DEPTH:
            detail = f"Queries nest at most {MAX_DEPTH} deep."
            raise RequestError("too-complex", detail, position=place(node))
        for what, position, hint in node.meta.get("refused", ()):
            if what not in _POSSIBLE:
                self.shared.refuse(what, position, _HINTS.get(what, hint))
        for name, query in node.meta.get("ctes", ()):
            ctes = {**ctes, name: (query, ctes)}
        self.queries += 1
        if self.queries > _MOST_QUERIES:
            detail = (
                f"This SELECT over materialized views consists of more than {_MOST_QUERIES} SELECTs, those of"
                " WITH counted wherever they are read."
            )
            hint = "Keep what is read often in a materialized view of its own."
            raise RequestError("too-complex", detail, position=place(node), hint=hint)
        write = self._combined if isinstance(node, exp.Union) else self._select
        made = write(node, ctes, depth)
        self.shared.parameters.count(made.sql, node)
        return made

    def _combined(self, node: exp.Expression, ctes: Ctes, depth: int) -> Made:
        left = self.query(node.this, ctes, depth + 1)
        right = self.query(node.expression, ctes, depth + 1)
        return ended(self.shared, combined(self.shared, node, left, right), node, None, distinct=True)

    def _select(self, node: exp.Expression, ctes: Ctes, depth: int) -> Made:
        shared = self.shared
        read = Inputs(shared, ctes, lambda query, seen: self.query(query, seen, depth + 1))
        first = read.first(node)
        rows = Expressions(
            Columns(read.inputs, shared.faults),
            read.names,
            shared.parameters,
            shared.faults,
            shared.now,
            self._subquery(ctes, depth),
        )
        joins = read.joined(node, rows)
        where = node.args.get("where")
        tail = f" WHERE {rows.condition(where.this)}" if where is not None else ""
        group = node.args.get("group")
        if group is not None and group.meta.get("sets"):
            shared.refuse(
                group.meta["sets"][0].kind, place(node), "Write a SELECT for each set, and UNION ALL."
            )
        keys = [self._key(key, rows) for key in group.expressions] if group is not None else []
        if keys:
            tail += f" GROUP BY {', '.join(keys)}"
        items = self._items(node, read.inputs)
        having = node.args.get("having")
        rows.aggregates = True
        if group is not None or having is not None or any(_aggregates(value) for _, value in items):
            rows.grouped = set(keys)
        made = [rows.value(value) for _, value in items]
        if having is not None:
            tail += f" HAVING {rows.condition(having.this)}"
        shown = ", ".join(f"{value.sql} AS o{i}" for i, value in enumerate(made))
        distinct = bool(node.meta.get("distinct"))
        word = "SELECT DISTINCT" if distinct else "SELECT"
        sql = f"{word} {shown} FROM {first}{joins}{tail}"
        query = Made(sql, [name for name, _ in items], [value.kind for value in made])
        return ended(shared, query, node, rows, distinct=distinct)

    def _key(self, key: exp.Expression, rows: Expressions) -> str:
        if isinstance(key, exp.Literal | exp.Null | exp.Boolean):
            detail = "GROUP BY takes columns and expressions over them, no literals or positions."
            self.shared.faults.add("not-grouped", detail, position=place(key))
        return rows.value(key).sql

    def _items(self, node: exp.Expression, inputs: Sequence[Input]) -> list[tuple[str, exp.Expression]]:
        found: list[tuple[str, exp.Expression]] = []
        for item in node.expressions:
            if isinstance(item, exp.Star):
                found += self._star(item, inputs)
                continue
            value = item.this if isinstance(item, exp.Alias) else item
            name = item.alias if isinstance(item, exp.Alias) else item_name(value)
            unnamed = sum(known.startswith("expr$") for known, _ in found)
            found.append((name or f"expr${unnamed}", value))
        return found

    def _star(self, node: exp.Expression, inputs: Sequence[Input]) -> list[tuple[str, exp.Expression]]:
        qualifier = node.meta["qualifier"]
        owners = [i for i in inputs if not qualifier or i.names[-len(qualifier) :] == qualifier]
        if not owners:
            detail = f"Nothing in FROM is called {'.'.join(map(quote, qualifier))}."
            hint = suggestion(qualifier[-1], [i.names[-1] for i in inputs if i.names])
            self.shared.faults.add("unknown-relation", detail, position=place(node), hint=hint)
        found: list[tuple[str, exp.Expression]] = []
        for given in owners:
            for output in given.columns or ():
                value = exp.Column(this=exp.Identifier(this=output.name, quoted=True))
                value.meta.update(node.meta)
                value.meta["bound"], value.meta["type"] = (given.ref, output.name, []), output.type
                found.append((output.name, value))
        return found

    def _subquery(
        self, ctes: Ctes, depth: int
    ) -> Callable[[exp.Expression], tuple[str, Sequence[DataType | None]]]:
        def compiled(query: exp.Expression) -> tuple[str, Sequence[DataType | None]]:
            before = len(self.shared.faults.items)
            made = self.query(query.copy(), ctes, depth + 1)
            for i, fault in enumerate(self.shared.faults.items[before:], before):
                if fault.code == "unknown-column" and not (fault.hint or "").endswith(_APART):
                    hint = f"{fault.hint} {_APART}" if fault.hint else _APART
                    self.shared.faults.items[i] = replace(fault, hint=hint)
            return made.sql, made.types

        return compiled


def _aggregates(node: exp.Expression) -> bool:
    from leatstream.sql.snapshot.functions import AGGREGATES

    return any(isinstance(part, exp.Anonymous) and str(part.this) in AGGREGATES for part in node.walk())
