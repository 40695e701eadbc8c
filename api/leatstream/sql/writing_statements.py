"""Statements around records: INSERT … VALUES, INSERT INTO ENTITY, UPDATE, GENERATE; and their constants."""

from __future__ import annotations

import re
from typing import Any, NoReturn, cast

from sqlglot.tokenizer_core import Token, TokenType

from leatstream.sql import statements as s
from leatstream.sql.constants import Constant, ConstantKind
from leatstream.sql.noun_statements import NounStatements
from leatstream.sql.tokens_reader import MAX_DEPTH

MAX_ROWS = 1_000
_WORDS: dict[str, ConstantKind] = {"null": "null", "true": "boolean", "false": "boolean"}
_TYPED: dict[str, ConstantKind] = {
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "x": "bytes",
}
_NESTED: dict[str, tuple[TokenType, TokenType, str]] = {
    "array": (TokenType.L_BRACKET, TokenType.R_BRACKET, "]"),
    "map": (TokenType.L_BRACKET, TokenType.R_BRACKET, "]"),
    "struct": (TokenType.L_PAREN, TokenType.R_PAREN, ")"),
}
_UPDATES: dict[str, type[s.UpdateSecret] | type[s.UpdateSchemaRegistry]] = {
    "secret": s.UpdateSecret,
    "schema_registry": s.UpdateSchemaRegistry,
}
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})*\Z")


class WritingStatements(NounStatements):
    """Reads them, and the constants they are made of."""

    def _insert_entity(self, first: Token) -> s.Statement:
        self._advance()
        name, store = self.name("an entity's name"), self._in_store()
        self.expect("value")
        self.expect_mark(TokenType.L_PAREN, "(")
        token = self._curr
        if not self.take_mark(TokenType.STRING):
            self.unexpected("a JSON text in quotes")
        value = Constant("string", self.place(token), token.text)
        if self.is_mark(TokenType.COMMA):
            self.fail("INSERT INTO ENTITY writes one record.", hint="Write a statement for each record.")
        self.expect_mark(TokenType.R_PAREN, ")")
        if self.is_mark(TokenType.COMMA):
            self.fail("INSERT INTO ENTITY writes one record.", hint="Write a statement for each record.")
        properties = self._with()
        return s.InsertEntity(**self._base(first), name=name, store=store, value=value, properties=properties)

    def _insert_values(self, first: Token, name: s.Name, columns: tuple[s.Name, ...]) -> s.Statement:
        self.expect("values")
        rows = tuple(self.many(self._row))
        if len(rows) > MAX_ROWS:
            detail = f"VALUES takes at most {MAX_ROWS} rows; these are {len(rows)}."
            self.fail(detail, code="too-complex", at=name.position)
        return s.InsertValues(**self._base(first), name=name, columns=columns, rows=rows)

    def _column_names(self) -> tuple[s.Name, ...]:
        """``(a, b)`` after the target of INSERT."""
        self.expect_mark(TokenType.L_PAREN, "(")
        names = tuple(self.many(lambda: self._one("a column's name")))
        self.expect_mark(TokenType.R_PAREN, ", or )")
        return names

    def _row(self) -> tuple[Constant, ...]:
        self.expect_mark(TokenType.L_PAREN, "( and a row of values")
        row = tuple(self.many(self._constant))
        self.expect_mark(TokenType.R_PAREN, ", or )")
        return row

    def _constant(self) -> Constant:
        first = self._curr
        word = first.text.lower() if first.token_type == TokenType.VAR else ""
        if word in _WORDS:
            self._advance()
            return Constant(_WORDS[word], self.place(first), "" if word == "null" else word)
        if word in _TYPED and self.is_mark(TokenType.STRING, 1):
            self._advance(2)
            text = self._prev.text
            if word == "x" and not _HEX.match(text):
                self.fail("X'…' holds pairs of hex digits.", code="type-mismatch", at=self._prev)
            return Constant(_TYPED[word], self.since(first), text)
        if word in _NESTED and self.is_mark(_NESTED[word][0], 1):
            return self._nested_constant(first, word)
        if self.take_mark(TokenType.STRING):
            return Constant("string", self.place(first), first.text)
        sign = "-" if self.take_mark(TokenType.DASH) else ""
        if not sign:
            self.take_mark(TokenType.PLUS)
        token = self._curr
        if not self.take_mark(TokenType.NUMBER):
            self._no_constant(first)
        if len(token.text) > 400:
            self.fail("A number has at most 400 characters.", at=token)
        return Constant("number", self.since(first), sign + token.text)

    def _nested_constant(self, first: Token, word: str) -> Constant:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"Values nest at most {MAX_DEPTH} deep.", code="too-complex", at=first)
        _, closing, shown = _NESTED[word]
        self._advance(2)
        items = [] if self.is_mark(closing) else self.many(self._constant)
        self.expect_mark(closing, f", or {shown}")
        self.depth -= 1
        return Constant(cast(ConstantKind, word), self.since(first), items=tuple(items))

    def _no_constant(self, first: Token) -> NoReturn:
        if first.token_type in (TokenType.VAR, TokenType.IDENTIFIER, TokenType.L_PAREN):
            hint = "VALUES takes constants: 'text', 1.5, TRUE, NULL, DATE '…', ARRAY[…]; compute in a SELECT"
            self.fail(f"Expected a constant, found {self.shown(first)}.", at=first, hint=hint)
        self.unexpected("a constant")

    def _update_statement(self, first: Token) -> s.Statement:
        self._advance()
        if self.is_word("set", ahead=1):
            hint = "Change rows in the store itself; rows of a changelog follow those of its source."
            self.refuse("UPDATE of rows", hint=hint)
        noun = self._noun(("store", "entity", *_UPDATES), "STORE, ENTITY, SECRET or SCHEMA_REGISTRY")
        if noun != "entity":
            name = self._one(f"a {noun}'s name")
            self.expect("with")
            properties = self.properties()
            kind = _UPDATES.get(noun, s.UpdateStore)
            return kind(**self._base(first), name=name, properties=properties)
        name, store = self.name("an entity's name"), self._in_store()
        self.expect("with")
        properties = self.properties()
        return s.UpdateEntity(**self._base(first), name=name, store=store, properties=properties)

    def _generate_statement(self, first: Token) -> s.Statement:
        self._advance()
        what = "columns" if self.take("columns") else "template" if self.take("template") else ""
        if not what:
            self.unexpected("COLUMNS or TEMPLATE")
        self.expect("from" if what == "columns" else "for")
        if not (self.take("entity") or self.take("topic")):
            self.unexpected("ENTITY or TOPIC")
        name, store = self.name("an entity's name"), self._in_store()
        properties = self._with()
        return s.Generate(
            **self._base(first), what=cast(Any, what), name=name, store=store, properties=properties
        )

    def _comment(self) -> str | None:
        """``COMMENT 'text'``, if present."""
        if not self.take("comment"):
            return None
        token = self._curr
        if not self.take_mark(TokenType.STRING):
            self.unexpected("a text in quotes")
        if len(token.text) > 2000 or any(ord(c) < 32 and c not in "\n\t" for c in token.text):
            self.fail("A comment has at most 2000 characters and no control characters.", at=token)
        return token.text
