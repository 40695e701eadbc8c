"""Expressions with their own grammar: CASE, CAST, typed literals, INTERVAL, calls as TRIM(… FROM …)."""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from leatstream.errors import sentence
from leatstream.model.spark_texts import read_moment
from leatstream.model.types import parse_type
from leatstream.sql.tokens_reader import TokensReader

# How tightly operators bind, from loose to tight.
OR, AND, NOT, PREDICATE, BIT_OR, BIT_XOR, BIT_AND, SUM, PRODUCT, UNARY = range(1, 11)
_FILTERED = "Write count_if(condition), or CASE WHEN condition THEN value END inside the aggregate."
# Written in full, as Spark's CAST and views read it alike; CAST of a text takes shorter forms as well.
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(
    _DATE.pattern + r"(?:[ T](?:[01][0-9]|2[0-3])(?::[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?"
    r"(?P<zone>Z|[+-](?:0[0-9]|1[0-7])(?::?[0-5][0-9])?)?)?)?)?"
)
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})*")
_BARE_FUNCTIONS = ("current_timestamp", "current_date", "current_time", "localtime", "localtimestamp")
_TIME_UNITS = ("year", "month", "week", "day", "hour", "minute", "second", "millisecond")
_OWN_FORMS = {
    **{name: name for name in ("trim", "substring", "position", "extract", "overlay", "json_object")},
    **dict.fromkeys(("ceil", "floor"), "rounded"),
    **dict.fromkeys(("timestampadd", "timestampdiff"), "unit"),
}
_ADDED_UNITS = (*_TIME_UNITS, "quarter", "microsecond")
_FIELDS = ("year", "quarter", "month", "week", "day", "doy", "dow", "hour", "minute", "second")


def _is_moment(text: str) -> bool:
    """Whether there is such a day, and such a time of it."""
    try:
        read_moment(text, zoned=True)
    except ValueError:
        return False
    return True


class SpecialForms(TokensReader):
    """Reads the special forms; whole expressions and queries are the subclasses' work."""

    def expr(self, level: int = OR) -> exp.Expression:
        """Read an expression whose operators bind at least as tightly as ``level``."""
        raise NotImplementedError

    def query(self) -> exp.Expression:
        """Read a query expression."""
        raise NotImplementedError

    def _special(self, token: Token) -> exp.Expression | None:
        word = token.text.lower()
        if word in ("null", "true", "false"):
            self._advance()
            return self.node(exp.Null() if word == "null" else exp.Boolean(this=word == "true"), token)
        if word == "case":
            return self._case(token)
        if word in ("cast", "try_cast") and self.is_mark(TokenType.L_PAREN, 1):
            return self._cast(token)
        if word == "interval" and (self.is_mark(TokenType.STRING, 1) or self.is_mark(TokenType.NUMBER, 1)):
            return self._interval(token)
        if word in ("date", "timestamp", "timestamp_ltz") and self.is_mark(TokenType.STRING, 1):
            self._advance()
            return self._typed_literal(token, word)
        if word == "x" and self.is_mark(TokenType.STRING, 1):
            self._advance()
            if not _HEX.fullmatch(self._curr.text):
                hint = "Write X'0aff', two digits for each byte."
                self.fail("These are no hexadecimal digits.", code="type-mismatch", hint=hint)
            self._advance()
            return self.node(exp.HexString(this=self._prev.text), token)
        if word in ("array", "map") and self.is_mark(TokenType.L_BRACKET, 1):
            self._advance(2)
            items = [] if self.is_mark(TokenType.R_BRACKET) else self.many(self.expr)
            self.expect_mark(TokenType.R_BRACKET, ", or ]")
            return self.node(exp.Anonymous(this=word, expressions=items), token)
        if word in _BARE_FUNCTIONS and not self.is_mark(TokenType.L_PAREN, 1):
            self._advance()
            return self.node(exp.Anonymous(this=word, expressions=[]), token)
        return None

    def _typed_literal(self, first: Token, word: str) -> exp.Expression:
        text = self._curr.text.strip()
        found = (_DATE if word == "date" else _MOMENT).fullmatch(text)
        if found is None or not _is_moment(text):
            shown = "YYYY-MM-DD" if word == "date" else "YYYY-MM-DD HH:MM:SS"
            self.fail(
                f"This is no {word.upper()}.", code="type-mismatch", hint=f"Write {word.upper()} '{shown}'."
            )
        # Spark's TIMESTAMP_NTZ leaves a zone out without a word.
        if word == "timestamp" and found["zone"]:
            hint = f"Write TIMESTAMP_LTZ '{text}', or leave the zone out."
            self.fail("A TIMESTAMP has no zone.", code="type-mismatch", hint=hint)
        self._advance()
        return self.node(exp.Cast(this=exp.Literal.string(text), to=exp.Var(this=word.upper())), first)

    def _case(self, first: Token) -> exp.Expression:
        self._advance()
        operand = None if self.is_word("when") else self.expr()
        branches = []
        while self.is_word("when"):
            start = self._curr
            self._advance()
            condition = self.expr()
            self.expect("then")
            branches.append(self.node(exp.If(this=condition, true=self.expr()), start))
        if not branches:
            self.unexpected("WHEN")
        default = self.expr() if self.take("else") else None
        self.expect("end")
        return self.node(exp.Case(this=operand, ifs=branches, default=default), first)

    def _cast(self, first: Token) -> exp.Expression:
        kind: Any = exp.Cast if first.text.lower() == "cast" else exp.TryCast
        self._advance(2)
        this = self.expr()
        self.expect("as")
        to = self._type()
        self.expect_mark(TokenType.R_PAREN, ")")
        cast: exp.Expression = kind(this=this, to=to)
        return self.node(cast, first)

    def _type(self) -> exp.Expression:
        """A type, held as its canonical text."""
        first = self._curr
        text, place = self.type_text(compared=True)
        try:
            return self.node(exp.Var(this=str(parse_type(text))), first)
        except ValueError as error:
            self.fail(sentence(str(error)), code="type-mismatch", at=place)

    def _interval(self, first: Token) -> exp.Expression:
        self._advance()
        amount = self._curr
        self._advance()
        unit = self._curr.text.lower().removesuffix("s") if self._curr.token_type == TokenType.VAR else ""
        if unit not in _TIME_UNITS:
            self.unexpected("a time unit such as MINUTE")
        self._advance()
        number = amount.text.strip()
        if not number.lstrip("+-").replace(".", "", 1).isdecimal() or not number.isascii():
            self.fail(
                "An interval takes a number and one unit.", at=amount, hint="Write INTERVAL '5' MINUTE."
            )
        return self.node(
            exp.Interval(this=exp.Literal.string(number), unit=exp.Var(this=unit.upper())), first
        )

    def _call(self, token: Token) -> exp.Expression:
        self._advance(2)
        name = token.text if token.token_type == TokenType.IDENTIFIER else token.text.lower()
        distinct = self.take("distinct")
        own_form = _OWN_FORMS.get(name)
        if own_form is not None:
            arguments = getattr(self, f"_{own_form}_arguments")(token)
        elif self.is_mark(TokenType.R_PAREN):
            arguments = []
        elif self.is_mark(TokenType.STAR) and self.is_mark(TokenType.R_PAREN, 1):
            star = self._curr
            self._advance()
            arguments = [self.node(exp.Star(), star)]
        else:
            arguments = self.many(self.expr)
        self.expect_mark(TokenType.R_PAREN, ", or )")
        node = self.node(exp.Anonymous(this=name, expressions=arguments), token)
        node.meta["name_span"] = (token.start, token.end + 1)
        node.meta["distinct"] = distinct
        if self.is_word("over"):
            self.refuse("OVER after a function", hint="Streams have no window functions yet.")
        if self.is_word("filter"):
            self.refuse("FILTER after a function", hint=_FILTERED)
        return node

    def _trim_arguments(self, _: Token) -> list[exp.Expression]:
        side = next((w for w in ("leading", "trailing", "both") if self.take(w)), "")
        if side and self.take("from"):
            return [exp.Var(this=side), self.expr()]
        first = self.expr()
        if self.take("from"):
            second = self.expr()
            return [exp.Var(this=side or "both"), first, second]
        if side:
            self.unexpected("FROM")
        if self.take_mark(TokenType.COMMA):
            return [exp.Var(this="both"), self.expr(), first]
        return [first]

    def _substring_arguments(self, _: Token) -> list[exp.Expression]:
        found = [self.expr()]
        if self.take("from"):
            found.append(self.expr())
            if self.take("for"):
                found.append(self.expr())
            return found
        while self.take_mark(TokenType.COMMA):
            found.append(self.expr())
        return found

    def _position_arguments(self, _: Token) -> list[exp.Expression]:
        found = [self.expr(PREDICATE + 1)]
        if not self.take("in"):
            self.expect_mark(TokenType.COMMA, "IN")
        return [*found, *self.many(self.expr)]

    def _extract_arguments(self, _: Token) -> list[exp.Expression]:
        if not self.is_word(*_FIELDS):
            self.unexpected("a field such as HOUR")
        field = exp.Var(this=self._curr.text.upper())
        self._advance()
        self.expect("from")
        return [field, self.expr()]

    def _overlay_arguments(self, _: Token) -> list[exp.Expression]:
        found = [self.expr()]
        if not self.take("placing"):
            self.expect_mark(TokenType.COMMA, "PLACING")
            return [*found, *self.many(self.expr)]
        found.append(self.expr())
        self.expect("from")
        found.append(self.expr())
        if self.take("for"):
            found.append(self.expr())
        return found

    def _rounded_arguments(self, _: Token) -> list[exp.Expression]:
        """CEIL and FLOOR: of a number, or of a time TO a unit."""
        value = self.expr()
        if self.take("to"):
            return [exp.Var(this=self._unit()), value]
        return [value, *self.many(self.expr)] if self.take_mark(TokenType.COMMA) else [value]

    def _unit_arguments(self, first: Token) -> list[exp.Expression]:
        """TIMESTAMPADD(HOUR, 2, time) and TIMESTAMPDIFF(HOUR, start, end)."""
        unit = exp.Var(this=self._unit())
        unit.meta["adds"] = first.text.lower() != "timestampdiff"
        self.expect_mark(TokenType.COMMA, ",")
        return [unit, *self.many(self.expr)]

    def _unit(self) -> str:
        word = self._curr.text.lower().removesuffix("s") if self._curr.token_type == TokenType.VAR else ""
        if word not in _ADDED_UNITS:
            self.unexpected("a time unit such as HOUR")
        self._advance()
        return word.upper()

    def _json_object_arguments(self, _: Token) -> list[exp.Expression]:
        """KEY 'name' VALUE value, …; or names and values in turn."""
        found: list[exp.Expression] = []
        if self.is_mark(TokenType.R_PAREN):
            return found
        while True:
            self.take("key")
            found.append(self.expr())
            if not self.take("value"):
                self.expect_mark(TokenType.COMMA, "VALUE")
            found.append(self.expr())
            if not self.take_mark(TokenType.COMMA):
                return found
