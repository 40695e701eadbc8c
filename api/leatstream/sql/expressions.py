"""Expressions: precedence climbing over the tokens, giving sqlglot's nodes with their stretch of text.

The levels are Spark's own, so that an unchanged rendering means the same there.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from leatstream.sql.reserved_words import RESERVED
from leatstream.sql.special_forms import (
    AND,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    NOT,
    OR,
    PREDICATE,
    PRODUCT,
    SUM,
    UNARY,
    SpecialForms,
)
from leatstream.sql.tokens_reader import MAX_DEPTH

MAX_CHAIN = 1000
_WORD_OPERATORS: dict[str, tuple[int, Any]] = {
    "or": (OR, exp.Or),
    "and": (AND, exp.And),
    "div": (PRODUCT, exp.IntDiv),
}
_MARK_OPERATORS: dict[TokenType, tuple[int, Any]] = {
    TokenType.EQ: (PREDICATE, exp.EQ),
    TokenType.NEQ: (PREDICATE, exp.NEQ),
    TokenType.NULLSAFE_EQ: (PREDICATE, exp.NullSafeEQ),
    TokenType.LT: (PREDICATE, exp.LT),
    TokenType.LTE: (PREDICATE, exp.LTE),
    TokenType.GT: (PREDICATE, exp.GT),
    TokenType.GTE: (PREDICATE, exp.GTE),
    TokenType.PIPE: (BIT_OR, exp.BitwiseOr),
    TokenType.CARET: (BIT_XOR, exp.BitwiseXor),
    TokenType.AMP: (BIT_AND, exp.BitwiseAnd),
    TokenType.PLUS: (SUM, exp.Add),
    TokenType.DASH: (SUM, exp.Sub),
    TokenType.DPIPE: (SUM, exp.DPipe),
    TokenType.STAR: (PRODUCT, exp.Mul),
    TokenType.SLASH: (PRODUCT, exp.Div),
    TokenType.MOD: (PRODUCT, exp.Mod),
}
_RANGES = ("between", "in", "like", "ilike", "rlike")


class ExpressionParser(SpecialForms):
    """Reads expressions. Sub-queries are left to ``query``, which the subclass gives."""

    def expr(self, level: int = OR) -> exp.Expression:
        """An expression whose operators bind at least as tightly as ``level``."""
        first = self._curr
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"Expressions nest at most {MAX_DEPTH} deep.", code="too-complex", at=first)
        left = self._prefix(level)
        compared, links = False, 0
        while True:
            found = self._operator()
            if found is None or found[0] < level:
                break
            if found[0] == PREDICATE and compared:
                self.fail(
                    "Comparisons cannot be chained.",
                    hint="Put one of them in parentheses, or join them by AND.",
                )
            compared = compared or found[0] == PREDICATE
            links += 1
            if links > MAX_CHAIN:
                self.fail(f"More than {MAX_CHAIN} operators in a row.", code="too-complex")
            left = self._infix(left, *found, first)
        self.depth -= 1
        return left

    def _operator(self) -> tuple[int, Any] | None:
        if self._curr.token_type == TokenType.VAR:
            word = self._curr.text.lower()
            if word in _RANGES or word == "is":
                return PREDICATE, word
            if word == "not" and self.is_word(*_RANGES, ahead=1):
                return PREDICATE, "not"
            return _WORD_OPERATORS.get(word)
        return _MARK_OPERATORS.get(self._curr.token_type)

    def _infix(self, left: exp.Expression, level: int, operator: Any, first: Token) -> exp.Expression:
        if not isinstance(operator, str):
            self._advance()
            right = self.expr(level + 1)
            joined: exp.Expression = operator(this=left, expression=right)
            return self.node(joined, first)
        if self.take("is"):
            return self._is(left, first)
        negated = self.take("not")
        node = self._range(left, first)
        return self.node(exp.Not(this=node), first) if negated else node

    def _is(self, left: exp.Expression, first: Token) -> exp.Expression:
        negated = self.take("not")
        if self.take("distinct", "from"):
            right = self.expr(PREDICATE + 1)
            kind = exp.NullSafeEQ if negated else exp.NullSafeNEQ
            return self.node(kind(this=left, expression=right), first)
        word = self._curr.text.lower() if self._curr.token_type == TokenType.VAR else ""
        if word not in ("null", "true", "false"):
            self.unexpected("NULL, TRUE, FALSE or DISTINCT FROM")
        node = self.node(exp.Is(this=left, expression=self._primary()), first)
        return self.node(exp.Not(this=node), first) if negated else node

    def _range(self, left: exp.Expression, first: Token) -> exp.Expression:
        if self.take("between"):
            low = self.expr(PREDICATE + 1)
            self.expect("and")
            return self.node(exp.Between(this=left, low=low, high=self.expr(PREDICATE + 1)), first)
        if self.take("in"):
            self.expect_mark(TokenType.L_PAREN, "(")
            if self._query_ahead():
                node = exp.In(this=left, query=exp.Subquery(this=self.query()))
            else:
                node = exp.In(this=left, expressions=self.many(self.expr))
            self.expect_mark(TokenType.R_PAREN, ", or )")
            return self.node(node, first)
        kinds: dict[str, Any] = {"like": exp.Like, "ilike": exp.ILike, "rlike": exp.RegexpLike}
        kind = kinds[self._curr.text.lower()]
        self._advance()
        like: exp.Expression = kind(this=left, expression=self.expr(PREDICATE + 1))
        like = self.node(like, first)
        if kind is not exp.RegexpLike and self.take("escape"):
            escape = self._curr
            if not self.take_mark(TokenType.STRING) or len(escape.text) != 1:
                self.fail("ESCAPE takes a string of one character.", at=escape)
            return self.node(exp.Escape(this=like, expression=exp.Literal.string(escape.text)), first)
        return like

    def _prefix(self, level: int) -> exp.Expression:
        first = self._curr
        if level <= NOT and self.take("not"):
            return self.node(exp.Not(this=self.expr(NOT)), first)
        if self.take_mark(TokenType.DASH):
            return self.node(exp.Neg(this=self.expr(UNARY)), first)
        if self.take_mark(TokenType.TILDE):
            return self.node(exp.BitwiseNot(this=self.expr(UNARY)), first)
        if self.take_mark(TokenType.PLUS):
            return self.expr(UNARY)
        return self._postfix(self._primary(), first)

    def _postfix(self, this: exp.Expression, first: Token) -> exp.Expression:
        while True:
            if self.take_mark(TokenType.DOT) or self.take_mark(TokenType.ARROW):
                dotted = self._prev.token_type == TokenType.DOT
                if isinstance(this, exp.Literal):
                    self.fail("A literal has no fields.", at=self._prev)
                this = self._step(this, dotted, first)
            elif self.take_mark(TokenType.L_BRACKET):
                index = self.expr()
                self.expect_mark(TokenType.R_BRACKET, "]")
                this = self.node(exp.Bracket(this=this, expressions=[index]), first)
            elif self.take_mark(TokenType.DCOLON):
                this = self.node(exp.Cast(this=this, to=self._type()), first)
            else:
                return this

    def _step(self, this: exp.Expression, dotted: bool, first: Token) -> exp.Expression:
        token = self._curr
        part = exp.Identifier(this=self.part("a name", reserved=True), quoted=True)
        part = self.node(part, token)
        if self.is_mark(TokenType.L_PAREN):
            self.fail("A function is called by its name alone, without a qualifier.", at=token)
        if dotted and isinstance(this, exp.Column):
            this.meta["parts"].append((part.name, part.meta["span"]))
            return self.node(this, first)
        return self.node(exp.Dot(this=this, expression=part), first)

    def _query_ahead(self) -> bool:
        ahead = 0
        while self.is_mark(TokenType.L_PAREN, ahead):
            ahead += 1
        return self.is_word("select", "with", ahead=ahead)

    def _primary(self) -> exp.Expression:
        token = self._curr
        if self.take_mark(TokenType.NUMBER):
            return self.node(exp.Literal.number(token.text), token)
        if self.take_mark(TokenType.STRING):
            return self.node(exp.Literal.string(token.text), token)
        if self.take_mark(TokenType.L_PAREN):
            return self._parenthesis(token)
        if self.is_word("exists") and self.is_mark(TokenType.L_PAREN, 1):
            return self._exists(token)
        if token.token_type == TokenType.VAR:
            special = self._special(token)
            if special is not None:
                return special
        word = token.text.lower() if token.token_type == TokenType.VAR else ""
        named = token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
        callable_word = named and (word not in RESERVED or word in ("left", "right"))
        if callable_word and self.is_mark(TokenType.L_PAREN, 1):
            return self._call(token)
        part = exp.Identifier(this=self.part("an expression"), quoted=True)
        column = self.node(exp.Column(this=part), token)
        # Every part of a dotted name; which of them is alias, column or field, the binder finds out.
        column.meta["parts"] = [(part.name, column.meta["span"])]
        return column

    def _exists(self, first: Token) -> exp.Expression:
        self._advance(2)
        if not self._query_ahead():
            self.unexpected("SELECT", self.meant("select"))
        node = exp.Exists(this=exp.Subquery(this=self.query()))
        self.expect_mark(TokenType.R_PAREN, ")")
        return self.node(node, first)

    def _parenthesis(self, first: Token) -> exp.Expression:
        if self._query_ahead():
            node: exp.Expression = exp.Subquery(this=self.query())
        else:
            node = exp.Paren(this=self.expr())
            if self.is_mark(TokenType.COMMA):
                self.refuse(
                    "A row of values in parentheses", at=first, hint="Use named_struct(…) or ARRAY[…]."
                )
        self.expect_mark(TokenType.R_PAREN, ")")
        return self.node(node, first)
