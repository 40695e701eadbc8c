"""A SELECT over views to one text of SQL: names and types resolved, everything that is wrong told at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlglot import exp

from leatstream.errors import Faults, RequestError
from leatstream.model.names import quote
from leatstream.model.objects import Relation
from leatstream.model.types import DataType
from leatstream.sql.passes.columns import Columns, suggestion
from leatstream.sql.passes.items import item_name
from leatstream.sql.passes.scope import Input, Output, place
from leatstream.sql.snapshot import kinds
from leatstream.sql.snapshot.expressions import Expressions
from leatstream.sql.snapshot.values import Database, Parameters, Value
from leatstream.sql.statements import Name

MAX_DEPTH = 16
_MOST_QUERIES = 500
# Of what the parser notes as impossible on streams.
_POSSIBLE = {
    *("ORDER BY", "LIMIT", "OFFSET", "FETCH FIRST", "SELECT DISTINCT", "UNION", "UNION DISTINCT"),
    *("EXCEPT", "MINUS", "INTERSECT"),
}
# What to write instead, where it is another thing than on streams.
_HINTS = {f"{word} ALL": "leave out ALL" for word in ("EXCEPT", "MINUS", "INTERSECT")}
_APART = "a sub-query does not see the columns around it: write a JOIN"
Ctes = Mapping[str, tuple[exp.Expression, "Ctes"]]
_JOINS = {
    (): "JOIN",
    ("inner",): "JOIN",
    ("left",): "LEFT JOIN",
    ("left", "outer"): "LEFT JOIN",
    ("right",): "RIGHT JOIN",
    ("right", "outer"): "RIGHT JOIN",
    ("full",): "FULL JOIN",
    ("full", "outer"): "FULL JOIN",
    ("cross",): "CROSS JOIN",
    ("comma",): "CROSS JOIN",
}


@dataclass(frozen=True, slots=True)
class Source:
    """Where a view's rows are.

    Attributes:
        table: SQL of the table, whose columns are ``c0``, ``c1``, …
        oldest: microseconds since 1970 before which rows no longer count; None where all do.
    """

    relation: Relation
    table: str
    oldest: int | None = None


@dataclass(frozen=True, slots=True)
class Compiled:
    """The result: SQL with its parameters, and the columns that it gives."""

    sql: str
    parameters: Sequence[Any]
    columns: Sequence[tuple[str, DataType]]


@dataclass(slots=True)
class _Query:
    """SQL of a part, and its columns ``o0``, ``o1``, …"""

    sql: str
    names: list[str]
    types: list[DataType | None]


@dataclass(slots=True)
class _Scope:
    """What one SELECT reads."""

    inputs: list[Input] = field(default_factory=list)
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    text: str = ""


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
    faults = compiler.faults
    faults.items.sort(key=lambda f: f.position.offset if f.position else 0)
    faults.raise_if_any()
    columns = [(n, t or kinds.VARCHAR) for n, t in zip(made.names, made.types, strict=True)]
    return Compiled(made.sql, compiler.parameters.values, columns)


class _Compiler:
    def __init__(self, resolve: Callable[[Name], Source], database: Database, now: datetime) -> None:
        self.resolve = resolve
        self.now = now
        self.parameters = Parameters(database)
        self.faults = Faults()
        self.count = 0
        self.queries = 0

    def query(self, node: exp.Expression, ctes: Ctes, depth: int) -> _Query:
        if depth > MAX_DEPTH:
            detail = f"Queries nest at most {MAX_DEPTH} deep."
            raise RequestError("too-complex", detail, position=place(node))
        for what, position, hint in node.meta.get("refused", ()):
            if what not in _POSSIBLE:
                detail = f"{what} is not supported in a SELECT over materialized views."
                self.faults.add("unsupported", detail, position=position, hint=_HINTS.get(what, hint))
        for name, query in node.meta.get("ctes", ()):
            ctes = {**ctes, name: (query, ctes)}
        self.queries += 1
        if self.queries > _MOST_QUERIES:
            detail = (
                f"This SELECT over materialized views consists of more than {_MOST_QUERIES} SELECTs, those of"
                " WITH counted wherever they are read."
            )
            hint = "keep what is read often in a materialized view of its own"
            raise RequestError("too-complex", detail, position=place(node), hint=hint)
        write = self._union if isinstance(node, exp.Union) else self._select
        made = write(node, ctes, depth)
        self.parameters.count(made.sql, node)
        return made

    def refuse(self, what: str, node: exp.Expression, hint: str | None = None) -> None:
        detail = f"{what} is not supported in a SELECT over materialized views."
        self.faults.add("unsupported", detail, position=place(node), hint=hint)

    # UNION

    def _union(self, node: exp.Expression, ctes: Ctes, depth: int) -> _Query:
        left = self.query(node.this, ctes, depth + 1)
        right = self.query(node.expression, ctes, depth + 1)
        compared = node.meta.get("compared")
        shown = f"an {compared}" if compared else "a UNION"
        if len(left.names) != len(right.names):
            self.faults.add(
                "type-mismatch",
                f"Each SELECT of {shown} has the same number of columns: the first has {len(left.names)},"
                f" this one {len(right.names)}.",
                position=place(node.expression),
            )
            return left
        types: list[DataType | None] = []
        for name, one, other in zip(left.names, left.types, right.types, strict=True):
            wide = one or other
            if one is not None and other is not None:
                wide = kinds.common(one, other)
                if wide is None or kinds.family(one) != kinds.family(other):
                    detail = f"The column {quote(name)} is {one} in one SELECT and {other} in the other."
                    self.faults.add(
                        "type-mismatch", detail, position=place(node.expression), hint="write CAST(… AS …)"
                    )
            types.append(wide)
        # SQLite takes no SELECT in parentheses there.
        word = compared or ("UNION" if node.meta.get("distinct") else "UNION ALL")
        sql = f"SELECT * FROM ({left.sql}) AS u {word} SELECT * FROM ({right.sql}) AS u"  # noqa: S608 - compiled
        return self._ended(_Query(sql, left.names, types), node, None, distinct=True)

    # SELECT

    def _select(self, node: exp.Expression, ctes: Ctes, depth: int) -> _Query:
        scope = self._from(node, ctes, depth)
        columns = Columns(scope.inputs, self.faults)
        rows = Expressions(
            columns, scope.names, self.parameters, self.faults, self.now, self._subquery(ctes, depth)
        )
        joins = self._joins(node, scope, rows, ctes, depth)
        where = node.args.get("where")
        tail = f" WHERE {rows.condition(where.this)}" if where is not None else ""
        group = node.args.get("group")
        if group is not None and group.meta.get("sets"):
            self.refuse(group.meta["sets"][0].kind, node, "write a SELECT for each set, and UNION ALL")
        keys = [self._key(key, rows) for key in group.expressions] if group is not None else []
        if keys:
            tail += f" GROUP BY {', '.join(keys)}"
        items = self._items(node, scope)
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
        sql = f"{word} {shown} FROM {scope.text}{joins}{tail}"
        query = _Query(sql, [name for name, _ in items], [value.kind for value in made])
        return self._ended(query, node, rows, distinct=distinct)

    def _key(self, key: exp.Expression, rows: Expressions) -> str:
        if isinstance(key, exp.Literal | exp.Null | exp.Boolean):
            detail = "GROUP BY takes columns and expressions over them, no literals or positions."
            self.faults.add("not-grouped", detail, position=place(key))
        return rows.value(key).sql

    def _items(self, node: exp.Expression, scope: _Scope) -> list[tuple[str, exp.Expression]]:
        found: list[tuple[str, exp.Expression]] = []
        for item in node.expressions:
            if isinstance(item, exp.Star):
                found += self._star(item, scope)
                continue
            value = item.this if isinstance(item, exp.Alias) else item
            name = item.alias if isinstance(item, exp.Alias) else item_name(value)
            unnamed = sum(known.startswith("expr$") for known, _ in found)
            found.append((name or f"expr${unnamed}", value))
        return found

    def _star(self, node: exp.Expression, scope: _Scope) -> list[tuple[str, exp.Expression]]:
        qualifier = node.meta["qualifier"]
        owners = [i for i in scope.inputs if not qualifier or i.names[-len(qualifier) :] == qualifier]
        if not owners:
            detail = f"Nothing in FROM is called {'.'.join(map(quote, qualifier))}."
            hint = suggestion(qualifier[-1], [i.names[-1] for i in scope.inputs if i.names])
            self.faults.add("unknown-relation", detail, position=place(node), hint=hint)
        found: list[tuple[str, exp.Expression]] = []
        for given in owners:
            for output in given.columns or ():
                value = exp.Column(this=exp.Identifier(this=output.name, quoted=True))
                value.meta.update(node.meta)
                value.meta["bound"], value.meta["type"] = (given.ref, output.name, []), output.type
                found.append((output.name, value))
        return found

    # FROM

    def _from(self, node: exp.Expression, ctes: Ctes, depth: int) -> _Scope:
        scope = _Scope()
        scope.text = self._input(node.args["from_"].this, scope, ctes, depth)
        return scope

    def _joins(self, node: exp.Expression, scope: _Scope, rows: Expressions, ctes: Ctes, depth: int) -> str:
        text = ""
        for join in node.args.get("joins") or ():
            words = _JOINS.get(join.meta.get("words", ()))
            if words is None or join.meta.get("within") is not None:
                shown = " ".join(join.meta.get("words", ())).upper()
                what = "WITHIN" if join.meta.get("within") is not None else f"{shown} JOIN"
                self.refuse(what, join, "views are joined by ON alone")
                continue
            if words in ("RIGHT JOIN", "FULL JOIN") and "CROSS JOIN" in text and _listed(node):
                # It belongs to the last relation of the list alone, which would have to be in parentheses.
                self.refuse(f"A {words} beside a comma in FROM", join, "put the join into a sub-select")
            right = self._input(join.this, scope, ctes, depth)
            on = join.args.get("on")
            if (on is None) != (words == "CROSS JOIN"):
                hint = "CROSS JOIN takes no ON" if on is not None else "write ON a.x = b.x, or CROSS JOIN"
                self.faults.add("sql-syntax", "A join needs ON.", position=place(join), hint=hint)
                continue
            if words == "FULL JOIN" and self.parameters.database == "postgresql" and not _pairs_equals(on):
                hint = "UNION ALL a LEFT JOIN and the rows of the other that have no partner"
                self.refuse("A FULL JOIN without an equality, in PostgreSQL,", join, hint)
            text += f" {words} {right}" + (f" ON {rows.condition(on)}" if on is not None else "")
        return text

    def _input(self, node: exp.Expression, scope: _Scope, ctes: Ctes, depth: int) -> str:
        for key, what in (("window", "A window"), ("properties", "WITH after a relation")):
            if node.meta.get(key) is not None:
                self.refuse(what, node, "it belongs into the SELECT that makes the view")
        alias = node.meta.get("alias")
        ref = f"t{self.count}"
        self.count += 1
        if isinstance(node, exp.Subquery):
            return self._derived(node.this, ref, alias[0] if alias else None, scope, ctes, depth)
        name: Name | None = node.meta.get("name")
        if name is None:
            self.refuse("This in FROM", node)
            return ref
        if len(name.parts) == 1 and name.parts[0] in ctes:
            query, outer = ctes[name.parts[0]]
            return self._derived(query.copy(), ref, alias[0] if alias else name.parts[0], scope, outer, depth)
        return self._view(name, ref, alias[0] if alias else None, scope)

    def _derived(
        self, query: exp.Expression, ref: str, alias: str | None, scope: _Scope, ctes: Ctes, depth: int
    ) -> str:
        made = self.query(query, ctes, depth + 1)
        outputs = tuple(Output(n, t) for n, t in zip(made.names, made.types, strict=True))
        names = (alias,) if alias else ()
        self._add(Input(ref, names, quote(alias) if alias else "the sub-select", outputs), "o", scope)
        return f"({made.sql}) AS {ref}"

    def _view(self, name: Name, ref: str, alias: str | None, scope: _Scope) -> str:
        shown = quote(alias or name.parts[-1])
        try:
            source = self.resolve(name)
        except RequestError as error:
            self.faults.items += error.at(name.position).faults
            scope.inputs.append(Input(ref, (alias,) if alias else name.parts, shown, None))
            return ref
        fqn = source.relation.fqn
        outputs = tuple(Output(column.name, column.type) for column in source.relation.columns)
        names = (alias,) if alias else (fqn.database, fqn.schema, fqn.name)
        self._add(Input(ref, names, shown, outputs), "c", scope)
        if source.oldest is None:
            return f"{source.table} AS {ref}"
        oldest = self.parameters.put(source.oldest, kinds.BIGINT)
        return f"(SELECT * FROM {source.table} WHERE leat_time >= {oldest}) AS {ref}"  # noqa: S608 - ours

    def _add(self, given: Input, letter: str, scope: _Scope) -> None:
        if given.names and any(i.names[-1:] == given.names[-1:] for i in scope.inputs):
            hint = f"give each its own alias: {given.shown} AS a"
            self.faults.add("ambiguous-column", f"FROM has {given.shown} twice.", hint=hint)
        scope.inputs.append(given)
        for i, output in enumerate(given.columns or ()):
            # Of two columns of one name neither is meant: whoever names them is told.
            sql = f"{given.ref}.{letter}{i}" if (given.ref, output.name) not in scope.names else ""
            scope.names[given.ref, output.name] = sql

    def _subquery(
        self, ctes: Ctes, depth: int
    ) -> Callable[[exp.Expression], tuple[str, Sequence[DataType | None]]]:
        def compiled(query: exp.Expression) -> tuple[str, Sequence[DataType | None]]:
            before = len(self.faults.items)
            made = self.query(query.copy(), ctes, depth + 1)
            for i, fault in enumerate(self.faults.items[before:], before):
                if fault.code == "unknown-column" and not (fault.hint or "").endswith(_APART):
                    hint = f"{fault.hint}; {_APART}" if fault.hint else _APART
                    self.faults.items[i] = replace(fault, hint=hint)
            return made.sql, made.types

        return compiled

    # ORDER BY, LIMIT, OFFSET

    def _ended(
        self, query: _Query, node: exp.Expression, rows: Expressions | None, *, distinct: bool
    ) -> _Query:
        parts = []
        ends = node.meta.get("ends") or {}
        for item in ends.get("order") or ():
            sql = self._sorted(item.value, query, rows, distinct)
            first = not item.descending if item.nulls_first is None else item.nulls_first
            # Spark sorts NULL below everything.
            parts.append(f"{sql}{' DESC' if item.descending else ''} NULLS {'FIRST' if first else 'LAST'}")
        sql = query.sql + (f" ORDER BY {', '.join(parts)}" if parts else "")
        limit, offset = ends.get("limit"), ends.get("offset")
        if limit is not None or offset is not None:
            most = "-1" if self.parameters.database == "sqlite" else "ALL"
            sql += f" LIMIT {self._whole(limit, 'LIMIT') if limit is not None else most}"
            sql += f" OFFSET {self._whole(offset, 'OFFSET')}" if offset is not None else ""
        return _Query(sql, query.names, query.types)

    def _whole(self, node: exp.Expression, what: str) -> int:
        if (
            isinstance(node, exp.Literal)
            and not node.is_string
            and node.this.isdecimal()
            and len(node.this) < 10
        ):
            return int(node.this)
        self.faults.add("type-mismatch", f"{what} takes a whole number.", position=place(node))
        return 0

    def _sorted(self, node: exp.Expression, query: _Query, rows: Expressions | None, distinct: bool) -> str:
        if isinstance(node, exp.Literal) and not node.is_string and node.this.isdecimal():
            digits = node.this.lstrip("0")
            if digits and len(digits) < 10 and int(digits) <= len(query.names):
                return str(int(digits))
            detail = f"ORDER BY {node.this[:20]}: there are {len(query.names)} columns."
            self.faults.add("unknown-column", detail, position=place(node))
            return "1"
        parts = node.meta.get("parts") if isinstance(node, exp.Column) else None
        if parts is not None and len(parts) == 1 and parts[0][0] in query.names:
            return str(query.names.index(parts[0][0]) + 1)
        if rows is None or distinct:
            hint = "name the column, or give its number"
            what = "ORDER BY of an expression after UNION or SELECT DISTINCT"
            self.refuse(what, node, hint)
            return "1"
        found: Value = rows.value(node)
        return found.sql


def _listed(node: exp.Expression) -> bool:
    return any(join.meta.get("words") == ("comma",) for join in node.args.get("joins") or ())


def _pairs_equals(on: exp.Expression | None) -> bool:
    """Whether ON has an equality of columns beside all else: PostgreSQL makes no FULL JOIN without one."""
    parts = [on]
    while parts:
        part = parts.pop()
        if isinstance(part, exp.Paren):
            parts.append(part.this)
        elif isinstance(part, exp.And):
            parts += [part.this, part.expression]
        elif isinstance(part, exp.EQ) and all(s.find(exp.Column) for s in (part.this, part.expression)):
            return True
    return False


def _aggregates(node: exp.Expression) -> bool:
    from leatstream.sql.snapshot.functions import AGGREGATES

    return any(isinstance(part, exp.Anonymous) and str(part.this) in AGGREGATES for part in node.walk())
