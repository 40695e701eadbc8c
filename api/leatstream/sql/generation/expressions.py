"""Expressions to text. Parentheses are nodes of the tree, so none are added and none are left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from leatstream.sql.generation.words import called, name, string
from leatstream.sql.operators import LIKES, OPERATORS

_BINARY = {**OPERATORS, exp.NullSafeNEQ: "IS DISTINCT FROM"}
_PREDICATES = (exp.Is, exp.Between, exp.In, exp.Escape, *LIKES)
_PREFIXES: dict[type[exp.Expression], str] = {exp.Not: "NOT ", exp.Neg: "- ", exp.BitwiseNot: "~ "}
_STEPS = (exp.Dot, exp.Bracket)
# What a sub-query, and nothing else, begins with inside of parentheses.
_QUERY = re.compile(r"\(+(?:SELECT|WITH) ")


class ExpressionGenerator:
    """Writes them. Sub-queries are left to ``query``, which the subclass gives."""

    def query(self, node: exp.Expression) -> str:
        """A query expression."""
        raise NotImplementedError

    def expression(self, node: exp.Expression) -> str:
        """An expression. Chains of operators and steps take no depth, however long they are."""
        behind: list[str] = []
        while True:
            negated = isinstance(node, exp.Not) and type(node.this) in _PREDICATES
            inner = node.this if negated else node
            if type(inner) in _PREDICATES:
                behind.append(self._predicate(inner, " NOT" if negated else ""))
                node = inner.this.this if type(inner) is exp.Escape else inner.this
            elif type(inner) in _BINARY:
                behind.append(f" {_BINARY[type(inner)]} {self.expression(inner.expression)}")
                node = inner.this
            elif type(inner) in _STEPS or _follows(inner):
                behind.append(self._step(inner))
                node = inner.this
            else:
                break
        return "".join([self._first(node), *reversed(behind)])

    def expressions(self, nodes: list[exp.Expression]) -> str:
        """Some, separated by commas."""
        return ", ".join(map(self.expression, nodes))

    def _predicate(self, node: exp.Expression, negation: str) -> str:
        if isinstance(node, exp.Is):
            return f" IS{negation} {self.expression(node.expression)}"
        if isinstance(node, exp.Between):
            low, high = self.expression(node.args["low"]), self.expression(node.args["high"])
            return f"{negation} BETWEEN {low} AND {high}"
        if isinstance(node, exp.In):
            within = node.args.get("query")
            inside = self.query(within.this) if within else _inside(self.expressions(node.expressions))
            return f"{negation} IN ({inside})"
        if isinstance(node, exp.Escape):
            return f"{self._predicate(node.this, negation)} ESCAPE {string(node.expression.name)}"
        return f"{negation} {LIKES[type(node)]} {self.expression(node.expression)}"

    def _step(self, node: exp.Expression) -> str:
        if isinstance(node, exp.Dot):
            return f"->{name(node.expression.name)}"
        if isinstance(node, exp.Bracket):
            return f"[{self.expression(node.expressions[0])}]"
        return f"::{node.args['to'].name}"

    def _first(self, node: exp.Expression) -> str:
        """What no operator stands behind."""
        writers: dict[type[exp.Expression], Callable[[Any], str]] = {
            exp.Column: lambda n: ".".join(name(part) for part, _ in n.meta["parts"]),
            exp.Star: lambda n: ".".join([*map(name, n.meta.get("qualifier", ())), "*"]),
            exp.Literal: lambda n: string(n.this) if n.is_string else str(n.this),
            exp.Null: lambda n: "NULL",
            exp.Boolean: lambda n: str(n.this).upper(),
            exp.HexString: lambda n: f"X{string(n.this)}",
            exp.Interval: lambda n: f"INTERVAL {string(n.this.name)} {n.args['unit'].name}",
            exp.Paren: lambda n: f"({_inside(self.expression(n.this))})",
            exp.Exists: lambda n: f"EXISTS ({self.query(n.this.this)})",
            exp.Subquery: lambda n: f"({self.query(n.this)})",
            exp.Anonymous: self._call,
            exp.Case: self._case,
            exp.Cast: lambda n: f"CAST({self.expression(n.this)} AS {n.args['to'].name})",
            exp.TryCast: lambda n: f"TRY_CAST({self.expression(n.this)} AS {n.args['to'].name})",
        }
        prefix = _PREFIXES.get(type(node))
        return prefix + self.expression(node.this) if prefix else writers[type(node)](node)

    def _case(self, node: exp.Case) -> str:
        operand, default = node.args.get("this"), node.args.get("default")
        parts = ["CASE", *([self.expression(operand)] if operand else [])]
        for branch in node.args["ifs"]:
            parts.append(f"WHEN {self.expression(branch.this)} THEN {self.expression(branch.args['true'])}")
        parts += [f"ELSE {self.expression(default)}"] if default else []
        return " ".join([*parts, "END"])

    def _call(self, node: exp.Anonymous) -> str:
        function = str(node.this)
        when = f"{node.meta['when'].upper()} " if node.meta.get("when") else ""
        distinct = "DISTINCT " if node.meta.get("distinct") else ""
        return f"{when}{called(function)}({distinct}{self._arguments(function, node.expressions)})"

    def _arguments(self, function: str, nodes: list[exp.Expression]) -> str:
        if function == "json_object":
            pairs = zip(nodes[::2], nodes[1::2], strict=True)
            return ", ".join(f"{self.expression(key)} VALUE {self.expression(item)}" for key, item in pairs)
        if not nodes or not isinstance(nodes[0], exp.Var):
            return self.expressions(nodes)
        word, given = nodes[0].name.upper(), [self.expression(node) for node in nodes[1:]]
        if function in ("trim", "extract"):
            return " ".join([word, *given[:-1], "FROM", given[-1]])
        if function in ("ceil", "floor"):
            return f"{given[0]} TO {word}"
        return ", ".join([word, *given])


def _follows(node: exp.Expression) -> bool:
    """Whether it is a cast of what ``::`` may stand behind."""
    if type(node) is not exp.Cast:
        return False
    inner = node.this
    operator = type(inner) in _BINARY or type(inner) in _PREDICATES or type(inner) in _PREFIXES
    return not operator


def _inside(text: str) -> str:
    """What stands in parentheses: if a sub-query begins it, a plus keeps them from being the sub-query's."""
    return f"+{text}" if _QUERY.match(text) else text
