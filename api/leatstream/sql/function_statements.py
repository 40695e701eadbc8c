"""CREATE FUNCTION_SOURCE and CREATE FUNCTION."""

from __future__ import annotations

from typing import Any

from sqlglot.tokenizer_core import Token, TokenType

from leatstream.sql import statements as s
from leatstream.sql.writing_statements import WritingStatements


class FunctionStatements(WritingStatements):
    """Reads the statements about users' functions."""

    def _create_function_source(self, first: Token, how: dict[str, Any]) -> s.Statement:
        name, comment = self._one("a function source's name"), self._comment()
        self.expect("with")
        properties = self.properties()
        return s.CreateFunctionSource(
            **self._base(first), name=name, properties=properties, comment=comment, **how
        )

    def _create_function(self, first: Token, how: dict[str, Any]) -> s.Statement:
        name = self._one("a function's name")
        self.expect_mark(TokenType.L_PAREN, "(")
        arguments: tuple[s.ColumnDefinition, ...] = ()
        if not self.is_mark(TokenType.R_PAREN):
            arguments = tuple(self.many(self._argument))
        self.expect_mark(TokenType.R_PAREN, ", or )")
        self.expect("returns")
        returns, place = self.type_text()
        self.expect("language")
        language = self._curr.text.lower()
        if not self.take("python") and not self.take("java"):
            self.unexpected("PYTHON or JAVA")
        comment = self._comment()
        self.expect("with")
        return s.CreateFunction(
            **self._base(first),
            name=name,
            arguments=arguments,
            returns=returns,
            returns_position=place,
            language=language,
            properties=self.properties(),
            comment=comment,
            **how,
        )

    def _argument(self) -> s.ColumnDefinition:
        token = self._curr
        name, place = self.part("an argument's name"), self.place(token)
        text, type_place = self.type_text()
        return s.ColumnDefinition(name, text, False, place, type_place)

    def _signature(self) -> tuple[str, ...] | None:
        """Types in parentheses behind DROP FUNCTION name, each with or without an argument's name."""
        if not self.take_mark(TokenType.L_PAREN):
            return None
        found: tuple[str, ...] = ()
        if not self.is_mark(TokenType.R_PAREN):
            found = tuple(self.many(self._signature_type))
        self.expect_mark(TokenType.R_PAREN, ", or )")
        return found

    def _signature_type(self) -> str:
        if self._next and self._next.token_type == TokenType.VAR:
            self._advance()
        return self.type_text()[0]
