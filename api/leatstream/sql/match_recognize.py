"""MATCH_RECOGNIZE in FROM: rows of a relation that follow each other in a pattern.

All of the standard's grammar is read. What is not run is noted in ``meta["refused"]`` of the node, so that
the binder reports it together with everything else that is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations
from typing import Literal

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from leatstream.errors import Position
from leatstream.plan.pattern import Choice, Repeat, Sequence, Term, Variable, hidden, size, variables
from leatstream.sql.lexer import Source
from leatstream.sql.tokens_reader import MAX_DEPTH
from leatstream.sql.unnest import UnnestParser

MAX_SIZE = 1000
MAX_PERMUTED = 5
_EXCLUSION = "An exclusion {- … -} with ONE ROW PER MATCH"
_SIGNS = {TokenType.STAR: (0, None), TokenType.PLUS: (1, None), TokenType.PLACEHOLDER: (0, 1)}


@dataclass(slots=True)
class PatternClause:
    """What a MatchRecognize node says beside its expressions; kept in ``meta["pattern"]``.

    Attributes:
        places: of the clauses by their first word, and of each variable where it first stands in the pattern.
        subsets: names for several variables.
        to_next: AFTER MATCH SKIP TO NEXT ROW.
        to_row, to_name: AFTER MATCH SKIP TO FIRST or LAST of a variable; without either PAST LAST ROW.
        all_rows, unmatched_rows: ALL ROWS PER MATCH, WITH UNMATCHED ROWS.
        refused: what, where, and what to write instead.
    """

    position: Position
    term: Term = field(default_factory=lambda: Sequence(()))
    within_ms: int | None = None
    to_next: bool = False
    to_row: Literal["first", "last"] | None = None
    to_name: str = ""
    all_rows: bool = False
    unmatched_rows: bool = False
    subsets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    places: dict[str, Position] = field(default_factory=dict)
    refused: list[tuple[str, Position, str | None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Anchor(Sequence):
    """The sign for a partition's first or last row, which is not run: of no row."""

    sign: str


class MatchParser(UnnestParser):
    """Reads it.

    The node has ``this`` (the relation), ``partition_by``, ``order``, ``measures`` and ``define``.
    """

    def load(self, tokens: list[Token], source: Source) -> None:
        """Start at the first of ``tokens``."""
        self.matching: PatternClause | None = None
        super().load(tokens, source)

    def _matched(self, relation: exp.Expression) -> exp.Expression:
        first = self._curr
        self._advance()
        clause = PatternClause(self.since(first))
        outer, self.matching = self.matching, clause
        self.expect_mark(TokenType.L_PAREN, "(")
        parts: dict[str, list[exp.Expression]] = {"partition_by": [], "order": [], "measures": []}
        if self.take("partition", "by"):
            parts["partition_by"] = self.many(self.expr)
        start = self._curr
        if self.take("order", "by"):
            parts["order"] = self.many(self._order_key)
            clause.places["order"] = self.since(start)
        if self.take("measures"):
            parts["measures"] = self.many(self._measure)
        self._rows_per_match(clause)
        self._after_match(clause)
        start = self._curr
        self.expect("pattern")
        self.expect_mark(TokenType.L_PAREN, "(")
        clause.term = self._alternatives(clause)
        self.expect_mark(TokenType.R_PAREN, ", a variable or )")
        clause.places["pattern"] = self.since(start)
        if size(clause.term) > MAX_SIZE:
            detail = f"A pattern has at most {MAX_SIZE} variables, repetitions counted."
            self.fail(detail, code="too-complex", at=clause.places["pattern"])
        start = self._curr
        if self.take("within"):
            clause.within_ms = self._duration(start, "WITHIN", "10 MINUTES")
            clause.places["within"] = self.since(start)
        if self.take("subset"):
            self.many(lambda: self._subset(clause))
        self.expect("define")
        parts["define"] = self.many(self._definition)
        self.expect_mark(TokenType.R_PAREN, ", or )")
        self.matching = outer
        node = self.node(exp.MatchRecognize(this=relation, **parts), first)
        node.meta["pattern"] = clause
        return node

    def _order_key(self) -> exp.Expression:
        first = self._curr
        value = self.expr()
        down = not self.take("asc") and self.take("desc")
        if self.take("nulls") and not self.take("first"):
            self.expect("last")
        return self.node(exp.Ordered(this=value, desc=down), first)

    def _measure(self) -> exp.Expression:
        first = self._curr
        value = self.expr()
        self.expect("as")
        token = self._curr
        node = exp.Alias(this=value, alias=exp.Identifier(this=self.part("a name"), quoted=True))
        node.meta["alias_span"] = (token.start, token.end + 1)
        return self.node(node, first)

    def _definition(self) -> exp.Expression:
        first = self._curr
        name = self.part("a pattern variable")
        self.expect("as")
        node = exp.Alias(this=self.expr(), alias=exp.Identifier(this=name, quoted=True))
        node.meta["alias_span"] = (first.start, first.end + 1)
        return self.node(node, first)

    def _rows_per_match(self, clause: PatternClause) -> None:
        start = self._curr
        if self.take("one"):
            self.expect("row", "per", "match")
        elif self.take("all"):
            self.expect("rows", "per", "match")
            clause.all_rows = True
            if self.take("show", "empty", "matches") or self.take("omit", "empty", "matches"):
                return  # A pattern that no row can match is refused, so there are none.
            if self.take("with"):
                self.expect("unmatched", "rows")
                clause.unmatched_rows = True
                self._not_run(clause, "WITH UNMATCHED ROWS", start, "Write ALL ROWS PER MATCH alone.")

    def _after_match(self, clause: PatternClause) -> None:
        if not self.take("after"):
            return
        self.expect("match", "skip")
        start = self._curr
        if self.take("past"):
            self.expect("last", "row")
            return
        self.expect("to")
        if self.take("next", "row"):
            clause.to_next = True
            return
        clause.to_row = "last"
        if self.is_word("first", "last") and not self.is_word("pattern", ahead=1):
            clause.to_row = "first" if self.is_word("first") else "last"
            self._advance()
        clause.to_name = self.part("a pattern variable")
        clause.places["skip"] = self.since(start)

    def _subset(self, clause: PatternClause) -> None:
        first = self._curr
        name = self.part("a name")
        if name in clause.subsets:
            self.fail(f"SUBSET names {name} twice.", at=first)
        self.expect_mark(TokenType.EQ, "=")
        self.expect_mark(TokenType.L_PAREN, "(")
        members = self.many(lambda: self.part("a pattern variable"))
        self.expect_mark(TokenType.R_PAREN, ", or )")
        clause.subsets[name] = tuple(members)
        clause.places[f"subset {name}"] = self.since(first)

    # The pattern

    def _alternatives(self, clause: PatternClause) -> Term:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"Patterns nest at most {MAX_DEPTH} deep.", code="too-complex")
        parts = [self._concatenation(clause)]
        while self.take_mark(TokenType.PIPE):
            parts.append(self._concatenation(clause))
        self.depth -= 1
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _concatenation(self, clause: PatternClause) -> Term:
        parts: list[Term] = []
        while True:
            start = self._curr
            part = self._factor(clause)
            if part is None:
                break
            parts.append(self._repeated(part, start))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _factor(self, clause: PatternClause) -> Term | None:
        start = self._curr
        anchors = {TokenType.CARET: "^", TokenType.DOLLAR: "$"}
        if start.token_type in anchors:
            self._advance()
            why = "A stream's partitions have no first row to wait for, and no last one."
            self._not_run(clause, f"The anchor {anchors[start.token_type]}", start, why)
            return Anchor((), anchors[start.token_type])
        if self.take_mark(TokenType.L_PAREN):
            found = self._alternatives(clause)
            self.expect_mark(TokenType.R_PAREN, "a variable or )")
            return found
        if self.is_mark(TokenType.L_BRACE) and self.is_mark(TokenType.DASH, 1):
            self._advance(2)
            found = self._alternatives(clause)
            self.expect_mark(TokenType.DASH, "-}")
            self.expect_mark(TokenType.R_BRACE, "}")
            allowed = clause.all_rows or _EXCLUSION in [what for what, _, _ in clause.refused]
            if not allowed and any(variables(found)):
                hint = "It is for ALL ROWS PER MATCH only: leave {- and -} out."
                self._not_run(clause, _EXCLUSION, start, hint)
            return hidden(found)
        if self.is_word("permute") and self.is_mark(TokenType.L_PAREN, 1):
            self._advance(2)
            parts = self.many(lambda: self._concatenation(clause))
            self.expect_mark(TokenType.R_PAREN, ", or )")
            if len(parts) > MAX_PERMUTED:
                detail = f"PERMUTE takes at most {MAX_PERMUTED} parts."
                self.fail(detail, code="too-complex", at=self.since(start))
            return Choice(tuple(Sequence(order) for order in permutations(parts)))
        if start.token_type not in (TokenType.VAR, TokenType.IDENTIFIER):
            return None
        name = self.part("a pattern variable")
        clause.places.setdefault(f"variable {name}", self.place(start))
        return Variable(name)

    def _repeated(self, part: Term, start: Token) -> Term:
        bounds: tuple[int, int | None] | None = _SIGNS.get(self._curr.token_type)
        if bounds is not None:
            self._advance()
        elif self.is_mark(TokenType.L_BRACE) and not self.is_mark(TokenType.DASH, 1):
            bounds = self._bounds()
        else:
            return part
        greedy = not self.take_mark(TokenType.PLACEHOLDER)
        bounded = self.is_mark(TokenType.L_BRACE) and not self.is_mark(TokenType.DASH, 1)
        if bounded or self._curr.token_type in _SIGNS:
            hint = "Put the repetition in parentheses to repeat it again."
            self.fail("A part is repeated once.", at=self._curr, hint=hint)
        if bounds[1] is not None and bounds[0] > bounds[1]:
            self.fail("The least number is not above the most.", at=self.since(start))
        return Repeat(part, bounds[0], bounds[1], greedy)

    def _bounds(self) -> tuple[int, int | None]:
        """``{n}``, ``{n,}``, ``{,m}``, ``{n,m}``"""
        start = self._curr
        self._advance()
        least = self._times()
        most = least
        if self.take_mark(TokenType.COMMA):
            most = self._times()
        elif least is None:
            self.unexpected("a number")
        self.expect_mark(TokenType.R_BRACE, "}")
        if most == 0 or (least is None and most is None):
            self.fail("Something is repeated at least once at most.", at=self.since(start))
        return least or 0, most

    def _times(self) -> int | None:
        token = self._curr
        if not self.take_mark(TokenType.NUMBER):
            return None
        if not token.text.isdecimal() or len(token.text) > 4 or int(token.text) > MAX_SIZE:
            self.fail(f"A repetition takes a whole number up to {MAX_SIZE}.", at=token)
        return int(token.text)

    # Expressions that only MEASURES and DEFINE have

    def _special(self, token: Token) -> exp.Expression | None:
        called = self.is_mark(TokenType.VAR, 1) and self.is_mark(TokenType.L_PAREN, 2)
        if self.matching is not None and called and self.is_word("running", "final"):
            self._advance()
            call = self._call(self._curr)
            call.meta["when"] = token.text.lower()
            return call
        return super()._special(token)

    def _step(self, this: exp.Expression, dotted: bool, first: Token) -> exp.Expression:
        starred = self.is_mark(TokenType.STAR) and self.is_mark(TokenType.R_PAREN, 1)
        if self.matching is not None and dotted and starred and isinstance(this, exp.Column):
            # COUNT(A.*)
            self._advance()
            star = self.node(exp.Star(), first)
            star.meta["qualifier"] = tuple(part for part, _ in this.meta["parts"])
            return star
        return super()._step(this, dotted, first)

    def _not_run(self, clause: PatternClause, what: str, start: Token, hint: str | None) -> None:
        clause.refused.append((what, self.since(start), hint))
