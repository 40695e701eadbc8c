"""Bound expressions to Spark SQL, noting which stretch of it came from which stretch of the user's text.

Every node that may pass is named here; the user's text gets out as escaped literal or quoted name only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlglot import exp

from leatstream.errors import InternalError, Position, RequestError
from leatstream.model.types import DataType, parse_type
from leatstream.plan.logical import Quotient, Window
from leatstream.sql.operators import LIKES, OPERATORS
from leatstream.sql.passes.calls import write_call
from leatstream.sql.passes.quotients import is_open, origin_of, whole_type
from leatstream.sql.passes.quoting import literal, name
from leatstream.sql.passes.scope import place
from leatstream.sql.source_map import Mark

_BINARY = {**OPERATORS, **LIKES, exp.Is: "IS"}
_ESCAPABLE = (exp.Like, exp.ILike)
_BACKSLASH = "\\"
WINDOW = "__leat_window"
_ENDS = {"window_start": "start", "window_end": "end"}
_PLACE = re.compile(r"\{(\d|time)\}")
# Between these an argument of a form needs no parentheses.
_BEFORE, _BEHIND = ("(", ", "), (")", ",", " AS ")
# Some forms have their argument several times, so nesting them multiplies the text.
MAX_LENGTH = 1_000_000
_SHORTER = "Nest fewer functions in each other, or give the inner ones a name in a stream before."


class ExpressionRenderer:
    """Writes text; ``windows`` are those that columns may belong to."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self.marks: list[Mark] = []
        self.quotients: list[Quotient] = []
        self.windows: dict[str, Window] = {}

    @property
    def length(self) -> int:
        """How many characters have been written."""
        return self._length

    @property
    def text(self) -> str:
        """What has been written."""
        return "".join(self._parts)

    def put(self, text: str) -> None:
        """Write text of ours."""
        self._parts.append(text)
        self._length += len(text)

    @contextmanager
    def mark(self, position: Position | None) -> Iterator[None]:
        """What is written inside came from this place."""
        start = self._length
        yield
        if position is not None:
            self.marks.append((start, self._length - 1, position))

    def expr(self, node: exp.Expression) -> None:
        """One expression.

        Raises:
            RequestError: too-complex, when the text gets too long.
        """
        if self._length > MAX_LENGTH:
            detail = f"Written for Spark, the query is longer than {MAX_LENGTH} characters."
            raise RequestError("too-complex", detail, position=place(node), hint=_SHORTER)
        if type(node) in _BINARY:
            self._chain(node)
            return
        with self.mark(place(node)):
            writer = _WRITERS.get(type(node))
            if writer is None:
                raise InternalError("internal", f"The expression {type(node).__name__} has no Spark form.")
            writer(self, node)

    def _chain(self, node: exp.Expression) -> None:
        # The left spine may be a thousand operators long: no recursion along it.
        spine: list[exp.Expression] = []
        while type(node) in _BINARY:
            spine.append(node)
            node = node.this
        start = self._length
        # Spark's DIV gives BIGINT.
        narrow = [whole_type(operator) not in (None, "BIGINT") for operator in spine]
        self.put("CAST(" * sum(narrow))
        begin = self._length
        self.expr(node)
        for operator, is_narrow in zip(reversed(spine), reversed(narrow), strict=True):
            kind, at = whole_type(operator), self._length + 1
            self.put(f" {'DIV' if kind else _BINARY[type(operator)]} ")
            if type(operator) in _ESCAPABLE and not isinstance(operator.parent, exp.Escape):
                self._pattern(operator.expression)
            else:
                self.expr(operator.expression)
            if is_open(operator):
                self.quotients.append(Quotient(begin, at, self._length - 1, origin_of(operator)))
            if is_narrow and kind is not None:
                self.put(f" AS {DataType(kind).spark()})")
                begin -= len("CAST(")
            position = place(operator)
            if position is not None:
                self.marks.append((start, self._length - 1, position))

    def _pattern(self, node: exp.Expression) -> None:
        """The pattern of a LIKE without ESCAPE: to Spark a backslash escapes then, in SQL nothing does."""
        if not isinstance(node, exp.Literal):
            self.template(f"replace({{}}, {literal(_BACKSLASH)}, {literal(_BACKSLASH * 2)})", node)
            return
        with self.mark(place(node)):
            self.put(literal(node.this.replace(_BACKSLASH, _BACKSLASH * 2)))

    def call(self, function: str, arguments: Sequence[exp.Expression]) -> None:
        """``function(a, b)``"""
        self.put(f"{function}(")
        for i, argument in enumerate(arguments):
            self.put(", " if i else "")
            self.expr(argument)
        self.put(")")

    def template(self, text: str, *values: exp.Expression) -> None:
        """Our text with ``{}`` for each expression."""
        pieces = text.split("{}")
        self.put(pieces[0])
        for value, piece in zip(values, pieces[1:], strict=True):
            self.expr(value)
            self.put(piece)

    def form(self, text: str, values: Sequence[exp.Expression], row_time: str = "") -> None:
        """Our text with ``{1}``, ``{2}`` for the expressions, each as often as it stands there.

        Args:
            text: with places for the values.
            values: by number, from 1.
            row_time: text of the row's time.
        """
        pieces = _PLACE.split(text)
        for index, piece in enumerate(pieces):
            if not index % 2:
                self.put(piece)
            elif piece == "time":
                self.put(row_time)
            else:
                value = values[int(piece) - 1]
                # Texts of aggregates are in the digests of state, so no parentheses where none are needed.
                alone = pieces[index - 1].endswith(_BEFORE) and pieces[index + 1].startswith(_BEHIND)
                loose = type(value) in _BINARY or (not alone and _predicate(value))
                self.template("({})" if loose else "{}", value)


def _predicate(node: exp.Expression) -> bool:
    """Whether it is written as a predicate without parentheses: Spark takes no IS NOT NULL behind one."""
    negated = isinstance(node, exp.Not) and isinstance(node.this, exp.Is)
    return negated or isinstance(node, exp.Between | exp.In | exp.Escape)


def cumulated(end: str, window: Window) -> str:
    """The start of a cumulating window, from its end."""
    last = f"(unix_millis({end}) - 1)"
    return f"timestamp_millis({last} - pmod({last}, {window.size_ms}))"


def _column(r: ExpressionRenderer, node: Any) -> None:
    ref, column, fields = node.meta["bound"]
    if ref in r.windows and column in _ENDS:
        window, end = r.windows[ref], f"{name(ref)}.{name(WINDOW)}.`end`"
        value = f"{name(ref)}.{name(WINDOW)}.{name(_ENDS[column])}"
        if window.kind == "cumulate" and column == "window_start":
            value = cumulated(end, window)
        r.put(f"CAST({value} AS TIMESTAMP_NTZ)")
        return
    r.put(".".join(map(name, (ref, column, *fields))))


def _literal(r: ExpressionRenderer, node: Any) -> None:
    r.put(literal(node.this) if node.is_string else node.this)


def _case(r: ExpressionRenderer, node: Any) -> None:
    r.put("CASE")
    if node.this is not None:
        r.template(" {}", node.this)
    for branch in node.args["ifs"]:
        r.template(" WHEN {} THEN {}", branch.this, branch.args["true"])
    if node.args.get("default") is not None:
        r.template(" ELSE {}", node.args["default"])
    r.put(" END")


def _cast(r: ExpressionRenderer, node: Any) -> None:
    word = "try_cast" if isinstance(node, exp.TryCast) else "CAST"
    r.template(f"{word}({{}} AS {parse_type(node.args['to'].name).spark()})", node.this)


def _not(r: ExpressionRenderer, node: Any) -> None:
    if isinstance(node.this, exp.Is):
        r.template("{} IS NOT {}", node.this.this, node.this.expression)
    else:
        r.template("(NOT {})", node.this)


def _in(r: ExpressionRenderer, node: Any) -> None:
    r.template("{} IN ", node.this)
    r.call("", node.expressions)


def _escape(r: ExpressionRenderer, node: Any) -> None:
    r.template("{} ESCAPE {}", node.this, node.expression)


def _dot(r: ExpressionRenderer, node: Any) -> None:
    r.expr(node.this)
    r.put(f".{name(node.expression.name)}")


_WRITERS: dict[type[exp.Expression], Callable[[ExpressionRenderer, Any], None]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.HexString: lambda r, n: r.put(f"X'{n.this}'"),
    exp.Boolean: lambda r, n: r.put("TRUE" if n.this else "FALSE"),
    exp.Null: lambda r, n: r.put("NULL"),
    exp.Paren: lambda r, n: r.template("({})", n.this),
    # A space, else -(-1) would read as a comment.
    exp.Neg: lambda r, n: r.template("- {}", n.this),
    exp.BitwiseNot: lambda r, n: r.template("~ {}", n.this),
    # In parentheses: a NOT BETWEEN … is written NOT a BETWEEN …, which binds less tightly.
    exp.Not: _not,
    exp.NullSafeNEQ: lambda r, n: r.template("(NOT {} <=> {})", n.this, n.expression),
    exp.Between: lambda r, n: r.template("{} BETWEEN {} AND {}", n.this, n.args["low"], n.args["high"]),
    exp.In: _in,
    exp.Escape: _escape,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Interval: lambda r, n: r.put(f"INTERVAL '{n.this.name}' {n.args['unit'].name}"),
    exp.Bracket: lambda r, n: r.template("try_element_at({}, {})", n.this, n.expressions[0]),
    exp.Dot: _dot,
    exp.Anonymous: write_call,
    exp.Star: lambda r, n: r.put("*"),
}
