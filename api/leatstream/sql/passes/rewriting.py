"""The columns of a SELECT that is taken up by the one around it, and of that one, by their new names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from leatstream.errors import Faults, RequestError
from leatstream.sql.passes.columns import Columns
from leatstream.sql.passes.functions import ROW, is_aggregate
from leatstream.sql.passes.items import item_name
from leatstream.sql.passes.scope import Input, place

# Nodes of expressions that are written in place of columns: each level of sub-selects may double them.
MAX_WRITTEN = 5_000


@dataclass(slots=True)
class Part:
    """A SELECT to be taken up: its clauses, its columns with their expressions, and what it is called.

    ``guard`` is a column that is NULL only where a LEFT JOIN found no row.
    """

    select: exp.Expression
    given: Input
    values: dict[str, exp.Expression]
    own: str
    guard: exp.Column | None


def column(parts: Sequence[str], like: exp.Expression) -> exp.Column:
    """A column by its name's parts, at the place of another node."""
    node = exp.Column(this=exp.Identifier(this=parts[-1], quoted=True))
    span = like.meta.get("span") or (0, 0)
    node.meta.update(parts=[(part, span) for part in parts], span=span, source=like.meta.get("source"))
    return node


def count(node: exp.Expression) -> int:
    """How many nodes an expression has."""
    return sum(1 for _ in node.walk())


def wrapped(node: exp.Expression) -> exp.Expression:
    """The same, safe beside operators."""
    return (
        node
        if isinstance(node, exp.Column | exp.Literal | exp.Anonymous | exp.Paren)
        else exp.Paren(this=node)
    )


class _Rewriter:
    """Rewrites a SELECT's columns: stars become columns, columns are resolved, items get their names."""

    def __init__(self, inputs: Sequence[Input], faults: Faults) -> None:
        self.inputs = inputs
        self.by_ref = {given.ref: given for given in inputs}
        self.columns = Columns(inputs, faults)
        self.faults = faults

    def rewrite(self, select: exp.Expression) -> None:
        """Rewrite every clause, in place."""
        select.set("expressions", [item for node in select.expressions for item in self._item(node)])
        joins = select.args.get("joins") or ()
        keys = select.args["group"].expressions if select.args.get("group") is not None else ()
        for item in list(select.expressions):
            self._walk(item, None)
        for join, given in zip(joins, self.inputs[1:], strict=True):
            if join.args.get("on") is not None:
                self._walk(join.args["on"], given.ref)
        for key in list(keys):
            self._walk(key, None)
        for clause in ("where", "having"):
            if select.args.get(clause) is not None:
                self._walk(select.args[clause], None)

    def _item(self, node: exp.Expression) -> Iterator[exp.Expression]:
        if isinstance(node, exp.Star):
            qualifier = node.meta["qualifier"]
            owners = [i for i in self.inputs if not qualifier or i.names[-len(qualifier) :] == qualifier]
            if not owners:
                yield node
            for given in owners:
                for output in given.columns or ():
                    yield _named(column((*given.names, output.name), node), output.name, node)
            return
        name = None if isinstance(node, exp.Alias) else item_name(node)
        row = isinstance(node, exp.Anonymous) and str(node.this) in ROW
        name = str(node.this) if row else name
        yield node if name is None else _named(node, name, node)

    def _walk(self, root: exp.Expression, on: str | None) -> None:
        stack = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, exp.Column):
                self._resolve(node, on)
            elif isinstance(node, exp.Anonymous) and str(node.this) in ROW:
                self._row(node)
            elif not isinstance(node, exp.Subquery):
                self.visit(node)
                stack += [c for c in node.iter_expressions() if isinstance(c, exp.Expression)]

    def _resolve(self, node: exp.Column, on: str | None) -> None:
        before = len(self.faults.items)
        self.columns.resolve(node)
        bound = node.meta.pop("bound", None)
        node.meta.pop("type", None)
        if bound is not None:
            self.replace(node, self.by_ref[bound[0]], bound[1], bound[2], on)
        elif len(self.faults.items) > before:
            node.meta["wrong"] = True

    def _row(self, node: exp.Anonymous) -> None:
        arguments = node.expressions
        given: Input | None = None
        if not arguments and len(self.inputs) == 1:
            given = self.inputs[0]
        elif len(arguments) == 1 and isinstance(arguments[0], exp.Column):
            wanted = tuple(part for part, _ in arguments[0].meta["parts"])
            given = next((i for i in self.inputs if i.names[-len(wanted) :] == wanted), None)
        if given is not None:
            self.row_of(node, given)

    def visit(self, node: exp.Expression) -> None:
        """See a node that is no column."""

    def replace(
        self, node: exp.Column, given: Input, column: str, fields: Sequence[str], on: str | None
    ) -> None:
        """Replace a resolved column; ``on`` is the input whose ON it stands in."""
        raise NotImplementedError

    def row_of(self, node: exp.Anonymous, given: Input) -> None:
        """Replace the argument of ROWTIME and similar functions."""
        raise NotImplementedError


def _named(value: exp.Expression, name: str, like: exp.Expression) -> exp.Expression:
    node = exp.Alias(this=value, alias=exp.Identifier(this=name, quoted=True))
    span = like.meta.get("span")
    node.meta.update(span=span, alias_span=span, source=like.meta.get("source"))
    return node


class Inside(_Rewriter):
    """Calls every column of a part by the name that its relation has in the SELECT around."""

    def __init__(self, inputs: Sequence[Input], owned: Mapping[str, str], faults: Faults) -> None:
        super().__init__(inputs, faults)
        self.owned = owned

    def replace(
        self, node: exp.Column, given: Input, column: str, fields: Sequence[str], on: str | None
    ) -> None:
        """Give it the relation's new name.

        Args:
            node: the column, changed in place.
            given: the input that it is of.
            column: its name.
            fields: of a STRUCT, behind it.
            on: the input in whose ON it stands; None = elsewhere.
        """
        parts = node.meta["parts"]
        node.meta["parts"] = [(self.owned[given.ref], parts[0][1]), *parts[-len(fields) - 1 :]]

    def row_of(self, node: exp.Anonymous, given: Input) -> None:
        """Ask the relation by its new name."""
        node.set("expressions", [column((self.owned[given.ref],), node)])


class Outside(_Rewriter):
    """Writes the expressions of parts where the SELECT around them names their columns."""

    def __init__(self, inputs: Sequence[Input], parts: Mapping[str, Part], faults: Faults) -> None:
        super().__init__(inputs, faults)
        self.parts = parts
        self.left: set[str] = set()
        self.sizes = {
            (part.own, name): count(value) for part in parts.values() for name, value in part.values.items()
        }
        self.written = 0

    def rewrite(self, select: exp.Expression) -> None:
        """See which rows may be missing before the columns are looked at."""
        for join, given in zip(select.args.get("joins") or (), self.inputs[1:], strict=True):
            if "left" in join.meta["words"]:
                self.left.add(given.ref)
        super().rewrite(select)

    def visit(self, node: exp.Expression) -> None:
        """An aggregate around a part with groups would become one of that part."""
        part = self.parts.get(self.inputs[0].ref)
        grouped = part is not None and part.select.args.get("group") is not None
        if grouped and isinstance(node, exp.Anonymous) and is_aggregate(node):
            detail = f"The aggregate {str(node.this).upper()} cannot stand here."
            hint = "Aggregate in the GROUP BY of the sub-select."
            self.faults.add("not-grouped", detail, position=place(node, "name_span"), hint=hint)

    def replace(
        self, node: exp.Column, given: Input, column: str, fields: Sequence[str], on: str | None
    ) -> None:
        """Write what the column is in its part.

        Args:
            node: the column, changed in place.
            given: the input that it is of.
            column: its name.
            fields: of a STRUCT, behind it.
            on: the input in whose ON it stands; None = elsewhere.
        """
        part = self.parts.get(given.ref)
        if part is None:
            return
        self.written += self.sizes[part.own, column]
        if self.written > MAX_WRITTEN:
            detail = "With its sub-selects written in, the query is too large."
            raise RequestError("too-complex", detail, position=place(node))
        value = part.values[column].copy()
        if isinstance(value, exp.Column):
            value.meta["parts"] = [*value.meta["parts"], *((field, node.meta["span"]) for field in fields)]
        else:
            if given.ref in self.left and on != given.ref and part.guard is not None:
                found = exp.Not(this=exp.Is(this=part.guard.copy(), expression=exp.Null()))
                value = exp.Case(ifs=[exp.If(this=found, true=value)])
            for field in fields:
                value = exp.Dot(this=wrapped(value), expression=exp.Identifier(this=field, quoted=True))
            if not isinstance(node.parent, exp.Alias | exp.Anonymous | exp.Group | exp.Where):
                value = wrapped(value)
        node.replace(value)

    def row_of(self, node: exp.Anonymous, given: Input) -> None:
        """Ask the first relation of the part."""
        part = self.parts.get(given.ref)
        if part is None:
            return
        if str(node.this) == "rowmeta" or part.select.args.get("group") is not None:
            detail = f"{node.this} is known for relations only, not for a sub-select."
            hint = "Select it inside and name it with AS."
            self.faults.add("unsupported", detail, position=place(node), hint=hint)
        node.set("expressions", [column((part.own,), node)])
