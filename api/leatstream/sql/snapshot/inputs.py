"""FROM of a SELECT over views: what it reads, joined, and which columns that has."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from leatstream.errors import RequestError
from leatstream.model.names import quote
from leatstream.sql.passes.scope import Input, Output, place
from leatstream.sql.snapshot import kinds
from leatstream.sql.snapshot.expressions import Expressions
from leatstream.sql.snapshot.shared import Ctes, Made, Shared
from leatstream.sql.statements import Name

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


class Inputs:
    """What one SELECT reads.

    Attributes:
        inputs: the relations, in the order of FROM.
        names: SQL of each column, by relation and name.
    """

    def __init__(
        self, shared: Shared, ctes: Ctes, compile_query: Callable[[exp.Expression, Ctes], Made]
    ) -> None:
        self._shared = shared
        self._ctes = ctes
        self._compile = compile_query
        self.inputs: list[Input] = []
        self.names: dict[tuple[str, str], str] = {}

    def first(self, node: exp.Expression) -> str:
        """SQL of the first relation of FROM."""
        return self._input(node.args["from_"].this)

    def joined(self, node: exp.Expression, rows: Expressions) -> str:
        """SQL of all joins, whose conditions ``rows`` compiles: they see what has been joined so far."""
        text = ""
        for join in node.args.get("joins") or ():
            words = _JOINS.get(join.meta.get("words", ()))
            if words is None or join.meta.get("within") is not None:
                shown = " ".join(join.meta.get("words", ())).upper()
                what = "WITHIN" if join.meta.get("within") is not None else f"{shown} JOIN"
                self._refuse(what, join, "Views are joined by ON alone.")
                continue
            if words in ("RIGHT JOIN", "FULL JOIN") and "CROSS JOIN" in text and _listed(node):
                # It belongs to the last relation of the list alone, which would have to be in parentheses.
                self._refuse(f"A {words} beside a comma in FROM", join, "Put the join into a sub-select.")
            text += self._joined(join, words, rows)
        return text

    def _joined(self, join: exp.Expression, words: str, rows: Expressions) -> str:
        right = self._input(join.this)
        on = join.args.get("on")
        if (on is None) != (words == "CROSS JOIN"):
            hint = "CROSS JOIN takes no ON" if on is not None else "Write ON a.x = b.x, or CROSS JOIN."
            self._shared.faults.add("sql-syntax", "A join needs ON.", position=place(join), hint=hint)
            return ""
        in_postgres = self._shared.parameters.database == "postgresql"
        if words == "FULL JOIN" and in_postgres and not _pairs_equals(on):
            hint = "UNION ALL a LEFT JOIN and the rows of the other that have no partner"
            self._refuse("A FULL JOIN without an equality, in PostgreSQL,", join, hint)
        return f" {words} {right}" + (f" ON {rows.condition(on)}" if on is not None else "")

    def _refuse(self, what: str, node: exp.Expression, hint: str | None = None) -> None:
        self._shared.refuse(what, place(node), hint)

    def _input(self, node: exp.Expression) -> str:
        for key, what in (("window", "A window"), ("properties", "WITH after a relation")):
            if node.meta.get(key) is not None:
                self._refuse(what, node, "Write it into the SELECT that makes the view.")
        alias = node.meta.get("alias")
        ref = self._shared.next_input()
        if isinstance(node, exp.Subquery):
            return self._derived(node.this, ref, alias[0] if alias else None, self._ctes)
        name: Name | None = node.meta.get("name")
        if name is None:
            self._refuse("This in FROM", node)
            return ref
        if len(name.parts) == 1 and name.parts[0] in self._ctes:
            query, outer = self._ctes[name.parts[0]]
            return self._derived(query.copy(), ref, alias[0] if alias else name.parts[0], outer)
        return self._view(name, ref, alias[0] if alias else None)

    def _derived(self, query: exp.Expression, ref: str, alias: str | None, ctes: Ctes) -> str:
        made = self._compile(query, ctes)
        outputs = tuple(Output(n, t) for n, t in zip(made.names, made.types, strict=True))
        names = (alias,) if alias else ()
        self._add(Input(ref, names, quote(alias) if alias else "the sub-select", outputs), "o")
        return f"({made.sql}) AS {ref}"

    def _view(self, name: Name, ref: str, alias: str | None) -> str:
        shown = quote(alias or name.parts[-1])
        try:
            source = self._shared.resolve(name)
        except RequestError as error:
            self._shared.faults.items += error.at(name.position).faults
            self.inputs.append(Input(ref, (alias,) if alias else name.parts, shown, None))
            return ref
        fqn = source.relation.fqn
        outputs = tuple(Output(column.name, column.type) for column in source.relation.columns)
        names = (alias,) if alias else (fqn.database, fqn.schema, fqn.name)
        self._add(Input(ref, names, shown, outputs), "c")
        if source.oldest is None:
            return f"{source.table} AS {ref}"
        oldest = self._shared.parameters.put(source.oldest, kinds.BIGINT)
        return f"(SELECT * FROM {source.table} WHERE leat_time >= {oldest}) AS {ref}"  # noqa: S608 - ours

    def _add(self, given: Input, letter: str) -> None:
        if given.names and any(i.names[-1:] == given.names[-1:] for i in self.inputs):
            hint = f"Give each its own alias: {given.shown} AS a."
            self._shared.faults.add("ambiguous-column", f"FROM has {given.shown} twice.", hint=hint)
        self.inputs.append(given)
        for i, output in enumerate(given.columns or ()):
            # Of two columns of one name neither is meant: whoever names them is told.
            sql = f"{given.ref}.{letter}{i}" if (given.ref, output.name) not in self.names else ""
            self.names[given.ref, output.name] = sql


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
