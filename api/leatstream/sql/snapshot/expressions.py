"""Expressions over views, typed as Spark types them and written for SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from sqlglot import exp

from leatstream.errors import Faults
from leatstream.model.names import quote
from leatstream.model.types import DataType, parse_type
from leatstream.sql.passes.columns import Columns
from leatstream.sql.passes.scope import place
from leatstream.sql.snapshot import kinds
from leatstream.sql.snapshot.arithmetic import OPERATORS, arithmetic
from leatstream.sql.snapshot.calls import call
from leatstream.sql.snapshot.conversions import adapt, can_cast, cast, plain_name
from leatstream.sql.snapshot.functions import FUNCTIONS
from leatstream.sql.snapshot.values import NOTHING, Parameters, Value, number, postgresql_type

_ELSEWHERE = "Compute it in the SELECT that makes the view."
_COMPARISONS = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}


class Expressions:
    """Compiles the expressions of one SELECT.

    Attributes:
        names: SQL of a column by the input's alias and the column's name.
        grouped: SQL of what GROUP BY names; None where rows are not grouped.
        aggregates: whether aggregates may stand here.
    """

    def __init__(
        self,
        columns: Columns,
        names: dict[tuple[str, str], str],
        parameters: Parameters,
        faults: Faults,
        now: Any,
        subquery: Callable[[exp.Expression], tuple[str, Sequence[DataType | None]]],
    ) -> None:
        self.columns = columns
        self.names = names
        self.parameters = parameters
        self.faults = faults
        self.now = now
        self.subquery = subquery
        self.grouped: set[str] | None = None
        self.aggregates = False
        self.inside = False

    @property
    def sqlite(self) -> bool:
        """Whether SQLite is written."""
        return self.parameters.database == "sqlite"

    def value(self, node: exp.Expression) -> Value:
        """One expression."""
        if self.grouped is not None and not self.inside and not isinstance(node, exp.Literal):
            known = self._as_key(node)
            if known is not None:
                return known
        writer = _WRITERS.get(type(node))
        if writer is None:
            shown = type(node).__name__
            shown = {"Dot": "A field of a STRUCT", "Bracket": "An element of an ARRAY or MAP"}.get(
                shown, shown
            )
            self.refuse(shown, node)
            return NOTHING
        found = writer(self, node)
        self.parameters.count(found.sql, node)
        return found

    def condition(self, node: exp.Expression) -> str:
        """An expression that must be BOOLEAN."""
        found = self.value(node)
        self.expect(found, "boolean", node)
        return found.sql

    def _as_key(self, node: exp.Expression) -> Value | None:
        """The value if it is one of GROUP BY's; faults inside are reported when it stands for itself."""
        grouped, faults, self.grouped = self.grouped, self.faults.items, None
        self.faults.items = []
        aggregates, self.aggregates = self.aggregates, False
        try:
            found = self.value(node)
            wrong = bool(self.faults.items)
        finally:
            self.grouped, self.faults.items, self.aggregates = grouped, faults, aggregates
        return found if not wrong and grouped is not None and found.sql in grouped else None

    # Faults

    def refuse(self, what: str, node: exp.Expression, hint: str | None = None) -> None:
        """Note that something is not built for views.

        Args:
            what: begins the message.
            node: where it stands.
            hint: what to do; None = the usual advice.
        """
        hint = hint or _ELSEWHERE
        detail = f"{what} is not supported in a SELECT over materialized views."
        position = place(node, "name_span") if isinstance(node, exp.Anonymous) else place(node)
        self.faults.add("unsupported", detail, position=position, hint=hint)

    def wrong(self, code: str, detail: str, node: exp.Expression, hint: str | None = None) -> None:
        """Note a fault.

        Args:
            code: of the fault.
            detail: its message.
            node: where it stands.
            hint: what to do.
        """
        position = place(node, "name_span") if isinstance(node, exp.Anonymous) else place(node)
        self.faults.add(code, detail, position=position, hint=hint)

    def expect(self, found: Value, family: str, node: exp.Expression) -> None:
        """Note a fault unless the value is of the family, or NULL.

        Args:
            found: the value.
            family: of types, as ``number``.
            node: where it stands.
        """
        if found.kind is None:
            return
        given = kinds.family(found.kind)
        if given != family and not (family == "number" and kinds.is_number(found.kind)):
            detail = f"This is {found.kind}, where {_SHOWN[family]} is wanted."
            self.faults.add("type-mismatch", detail, position=place(node))

    def together(self, nodes: Sequence[exp.Expression], values: Sequence[Value]) -> list[Value]:
        """Values as ones of their common type."""
        kind: DataType | None = None
        for node, value in zip(nodes, values, strict=True):
            if value.kind is None or kind is None:
                kind = kind or value.kind
                continue
            wider = (
                kinds.common(kind, value.kind) or self._of_literal(kind, value) or self._of_text(kind, value)
            )
            if wider is None:
                detail = f"{kind} and {value.kind} cannot be compared or mixed."
                self.faults.add("type-mismatch", detail, position=place(node), hint="Write CAST(… AS …).")
                return [NOTHING for _ in values]
            kind = wider
        if kind is None:
            return list(values)
        made = []
        for node, value in zip(nodes, values, strict=True):
            try:
                made.append(adapt(value, kind, self.parameters))
            except (ValueError, ArithmeticError):
                self.faults.add("type-mismatch", f"This is no {kind}.", position=place(node))
                made.append(Value("NULL", kind))
        return made

    def _of_literal(self, kind: DataType, value: Value) -> DataType | None:
        """A text literal beside a time is read as one."""
        text = value.kind is not None and kinds.family(value.kind) == "text" and value.constant is not None
        return kind if text and kinds.family(kind) in ("date", "moment") else None

    def _of_text(self, kind: DataType, value: Value) -> DataType | None:
        """A time beside a text literal: the first was the literal, whose type says nothing."""
        time = value.kind is not None and kinds.family(value.kind) in ("date", "moment")
        return value.kind if time and kinds.family(kind) == "text" else None

    # Leaves

    def column(self, node: Any) -> Value:
        """A column."""
        if "bound" not in node.meta:
            if "bad" in node.meta:
                return NOTHING
            before = len(self.faults.items)
            self.columns.resolve(node)
            if len(self.faults.items) > before or "bound" not in node.meta:
                return NOTHING
        ref, name, fields = node.meta["bound"]
        if fields:
            self.refuse("A field of a STRUCT", node)
            return NOTHING
        if not self.names[ref, name]:
            hint = "Give each column of the sub-select a name of its own: … AS name."
            self.wrong("ambiguous-column", f"The sub-select has two columns {quote(name)}.", node, hint)
            return NOTHING
        if self.grouped is not None and not self.inside:
            hint = f"Write it into GROUP BY, or an aggregate such as max({quote(name)})."
            detail = f"{quote(name)} is neither in GROUP BY nor inside an aggregate."
            self.wrong("not-grouped", detail, node, hint)
        return Value(self.names[ref, name], node.meta["type"])

    def literal(self, node: Any) -> Value:
        """A text or number."""
        if node.is_string:
            return Value(self.parameters.put(node.this, kinds.VARCHAR), kinds.VARCHAR, node.this)
        made, kind = self._number(node)
        if kind.kind in ("INTEGER", "BIGINT"):
            sql = str(made) if self.sqlite else f"{made}::{postgresql_type(kind)}"
            return Value(sql, kind, made)
        return Value(self.parameters.put(made, kind), kind, made)

    def _number(self, node: Any) -> tuple[int | Decimal | float, DataType]:
        try:
            return number(node.this)
        except ValueError:
            self.wrong("type-mismatch", f"A number has at most {kinds.MOST_DIGITS} digits.", node)
            return 0, kinds.INTEGER

    def compare(self, node: Any) -> Value:
        """``a = b`` and its like."""
        values = [self.value(node.this), self.value(node.expression)]
        left, right = self.together([node.this, node.expression], values)
        if (
            left.kind is not None
            and kinds.family(left.kind) == "nested"
            and type(node) not in (exp.EQ, exp.NEQ)
        ):
            self.refuse(f"Comparing {left.kind}", node)
        return Value(f"({left.sql} {_COMPARISONS[type(node)]} {right.sql})", kinds.BOOLEAN)

    def same(self, node: Any) -> Value:
        """IS [NOT] DISTINCT FROM and ``<=>``."""
        values = [self.value(node.this), self.value(node.expression)]
        left, right = self.together([node.this, node.expression], values)
        negated = isinstance(node, exp.NullSafeNEQ)
        if self.sqlite:
            return Value(f"({left.sql} IS {'NOT ' if negated else ''}{right.sql})", kinds.BOOLEAN)
        word = "IS DISTINCT FROM" if negated else "IS NOT DISTINCT FROM"
        return Value(f"({left.sql} {word} {right.sql})", kinds.BOOLEAN)

    def junction(self, node: Any) -> Value:
        """AND and OR; the left spine may be long, so it is walked."""
        kind, parts = type(node), []
        while type(node) is kind:
            parts.append(node.expression)
            node = node.this
        parts.append(node)
        word = " AND " if kind is exp.And else " OR "
        return Value(f"({word.join(self.condition(part) for part in reversed(parts))})", kinds.BOOLEAN)

    def negation(self, node: Any) -> Value:
        """NOT."""
        return Value(f"(NOT {self.condition(node.this)})", kinds.BOOLEAN)

    def negative(self, node: Any) -> Value:
        """``-a``"""
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            made, kind = self._number(node.this)
            if kind.kind in ("INTEGER", "BIGINT"):
                sql = f"(-{made})" if self.sqlite else f"(-{made})::{postgresql_type(kind)}"
                return Value(sql, kind, -made)
            made = made.copy_negate() if isinstance(made, Decimal) else -made
            return Value(self.parameters.put(made, kind), kind, made)
        found = self.value(node.this)
        self.expect(found, "number", node.this)
        if found.kind is None or not self.sqlite:
            return Value(f"(- {found.sql})", found.kind)
        return Value(f"leat_negative({found.sql}, '{plain_name(found.kind)}')", found.kind)

    def is_(self, node: Any) -> Value:
        """IS NULL, IS TRUE, IS FALSE."""
        found = self.value(node.this)
        if isinstance(node.expression, exp.Null):
            return Value(f"({found.sql} IS NULL)", kinds.BOOLEAN)
        self.expect(found, "boolean", node.this)
        return Value(f"({found.sql} IS {'TRUE' if node.expression.this else 'FALSE'})", kinds.BOOLEAN)

    def between(self, node: Any) -> Value:
        """BETWEEN."""
        nodes = [node.this, node.args["low"], node.args["high"]]
        value, low, high = self.together(nodes, [self.value(n) for n in nodes])
        return Value(f"({value.sql} BETWEEN {low.sql} AND {high.sql})", kinds.BOOLEAN)

    def in_(self, node: Any) -> Value:
        """IN (…)"""
        query = node.args.get("query")
        if query is None:
            nodes = [node.this, *node.expressions]
            value, *items = self.together(nodes, [self.value(n) for n in nodes])
            return Value(f"({value.sql} IN ({', '.join(i.sql for i in items)}))", kinds.BOOLEAN)
        value = self.value(node.this)
        sql, given = self.subquery(query.this)
        if len(given) != 1:
            self.wrong(
                "type-mismatch", f"A sub-query in IN gives one column, this one {len(given)}.", query.this
            )
        elif value.kind is not None and given[0] is not None:
            wanted = kinds.common(value.kind, given[0])
            if wanted is None or (kinds.family(value.kind) != kinds.family(given[0])):
                self.wrong(
                    "type-mismatch", f"{value.kind} and {given[0]} cannot be compared.", node, "Write CAST."
                )
        return Value(f"({value.sql} IN ({sql}))", kinds.BOOLEAN)

    def exists(self, node: Any) -> Value:
        """EXISTS (SELECT …)"""
        sql, _ = self.subquery(node.this.this)
        return Value(f"(EXISTS ({sql}))", kinds.BOOLEAN)

    def scalar(self, node: Any) -> Value:
        """A sub-query as a value: of several rows SQLite would take one and say nothing."""
        hint = "Read it in FROM: … CROSS JOIN (SELECT max(x) AS most FROM v) AS m."
        self.refuse("A sub-query as a value", node, hint)
        return NOTHING

    def like(self, node: Any, escape: str = "") -> Value:
        """LIKE and ILIKE; nothing escapes where no character is given."""
        left, right = self.value(node.this), self.value(node.expression)
        self.expect(left, "text", node.this)
        self.expect(right, "text", node.expression)
        one, other = left.sql, right.sql
        if isinstance(node, exp.ILike):
            lower = FUNCTIONS["lower"].sqlite if self.sqlite else FUNCTIONS["lower"].postgresql
            one, other = (str(lower).format(text) for text in (one, other))
        if not escape and self.sqlite:
            return Value(f"({one} LIKE {other})", kinds.BOOLEAN)
        mark = self.parameters.put(escape, kinds.VARCHAR)
        return Value(f"({one} LIKE {other} ESCAPE {mark})", kinds.BOOLEAN)

    def escape(self, node: Any) -> Value:
        """LIKE … ESCAPE."""
        return self.like(node.this, node.expression.this)

    def joined(self, node: Any) -> Value:
        """``a || b``"""
        return self.texts([node.this, node.expression])

    def texts(self, nodes: Sequence[exp.Expression]) -> Value:
        """Texts one after the other; NULL if one is NULL."""
        values = [self.value(n) for n in nodes]
        for n, value in zip(nodes, values, strict=True):
            self.expect(value, "text", n)
        return Value(f"({' || '.join(v.sql for v in values)})", kinds.VARCHAR)

    # Forms

    def case(self, node: Any) -> Value:
        """CASE."""
        branches, default = node.args["ifs"], node.args.get("default")
        results = [branch.args["true"] for branch in branches] + ([default] if default is not None else [])
        made = self.together(results, [self.value(n) for n in results])
        if node.this is None:
            tests = [self.condition(branch.this) for branch in branches]
        else:
            nodes = [node.this, *(branch.this for branch in branches)]
            subject, *marks = self.together(nodes, [self.value(n) for n in nodes])
            tests = [f"{subject.sql} = {mark.sql}" for mark in marks]
        shown = " ".join(f"WHEN {t} THEN {m.sql}" for t, m in zip(tests, made, strict=False))
        end = f" ELSE {made[-1].sql}" if default is not None else ""
        return Value(f"(CASE {shown}{end} END)", next((m.kind for m in made if m.kind), None))

    def cast(self, node: Any) -> Value:
        """CAST, and typed literals such as DATE '2026-01-01'."""
        wanted = parse_type(node.args["to"].name)
        if isinstance(node, exp.TryCast):
            self.refuse("TRY_CAST", node, "Write CAST.")
            return Value("NULL", wanted)
        found = self.value(node.this)
        if found.kind is None:
            return Value("NULL", wanted)
        if found.constant is not None and kinds.family(wanted) in ("date", "moment"):
            return self.together([node.this, node.this], [Value("NULL", wanted), found])[1]
        if not can_cast(found.kind, wanted):
            hint = None
            if kinds.family(found.kind) == "float" and kinds.family(wanted) == "text":
                hint = "Cast it to DECIMAL first."
            self.refuse(f"CAST of {found.kind} to {wanted}", node, hint)
            return Value("NULL", wanted)
        return cast(found, wanted, self.parameters)


_SHOWN = {
    "number": "a number",
    "integer": "an integer",
    "boolean": "a condition",
    "text": "a text",
    "moment": "a time",
    "date": "a date",
    "float": "a number",
}
_WRITERS: dict[type[exp.Expression], Callable[[Expressions, Any], Value]] = {
    exp.Column: Expressions.column,
    exp.Literal: Expressions.literal,
    exp.Boolean: lambda c, n: Value("TRUE" if n.this else "FALSE", kinds.BOOLEAN),
    exp.Null: lambda c, n: NOTHING,
    exp.Paren: lambda c, n: c.value(n.this),
    exp.Neg: Expressions.negative,
    exp.Not: Expressions.negation,
    exp.And: Expressions.junction,
    exp.Or: Expressions.junction,
    exp.Is: Expressions.is_,
    exp.NullSafeEQ: Expressions.same,
    exp.NullSafeNEQ: Expressions.same,
    exp.Between: Expressions.between,
    exp.In: Expressions.in_,
    exp.Exists: Expressions.exists,
    exp.Subquery: Expressions.scalar,
    exp.Like: Expressions.like,
    exp.ILike: Expressions.like,
    exp.Escape: Expressions.escape,
    exp.DPipe: Expressions.joined,
    exp.Case: Expressions.case,
    exp.Cast: Expressions.cast,
    exp.TryCast: Expressions.cast,
    exp.Anonymous: call,
    **dict.fromkeys(list[Any](OPERATORS), arithmetic),
    **dict.fromkeys(list[Any](_COMPARISONS), Expressions.compare),
}
