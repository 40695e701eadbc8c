"""UNNEST in FROM: a row for each element of an array or entry of a map."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from leatstream.errors import Position
from leatstream.sql.group_by import GroupByParser
from leatstream.sql.reserved_words import NO_ALIAS

_JOINS = {(): False, ("cross",): False, ("inner",): False, ("left",): True, ("left", "outer"): True}


class UnnestParser(GroupByParser):
    """Reads it. ``meta`` of the Unnest has alias, columns, and whether rows without elements stay (outer)."""

    def _unnest(self) -> exp.Expression | None:
        """``, UNNEST(x) AS t (a)``, ``CROSS JOIN UNNEST(x)``, ``LEFT JOIN UNNEST(x) ON TRUE``; else None."""
        found = self._unnest_ahead()
        if found is None:
            return None
        words, length, joined = found
        self._advance(length)
        first = self._curr
        self._advance(2)
        value = self.expr()
        self.expect_mark(TokenType.R_PAREN, ")")
        if self.is_word("with") and self.is_word("ordinality", ahead=1):
            self.refuse("WITH ORDINALITY")
        node = self.node(exp.Unnest(expressions=[value]), first)
        node.meta.update(outer=_JOINS[words], alias=self._name_of_rows(), columns=[])
        if self.take_mark(TokenType.L_PAREN):
            node.meta["columns"] = self.many(self._column_name)
            self.expect_mark(TokenType.R_PAREN, ", or )")
        if joined and "cross" not in words:
            self.expect("on", "true")
        return node

    def _unnest_ahead(self) -> tuple[tuple[str, ...], int, bool] | None:
        """The words of its join, how many tokens there are before UNNEST, and whether it is a join."""
        joined, ahead = not self.is_mark(TokenType.COMMA), 0
        words: list[str] = []
        if joined:
            while self.is_word("cross", "inner", "left", "outer", ahead=ahead):
                words.append(self._tokens[self._index + ahead].text.lower())
                ahead += 1
            if not self.is_word("join", ahead=ahead):
                return None
        ahead += 1
        ahead += self.is_word("lateral", ahead=ahead)
        here = self.is_word("unnest", ahead=ahead) and self.is_mark(TokenType.L_PAREN, ahead + 1)
        return (tuple(words), ahead, joined) if here and tuple(words) in _JOINS else None

    def _name_of_rows(self) -> tuple[str, Position] | None:
        token: Token = self._curr
        if self.take("as"):
            token = self._curr
        elif token.token_type != TokenType.IDENTIFIER and (
            not self.is_mark(TokenType.L_PAREN, 1) or token.text.lower() in NO_ALIAS
        ):
            return None
        return self.part("a name"), self.place(token)

    def _column_name(self) -> tuple[str, Position]:
        token = self._curr
        return self.part("a column name"), self.place(token)
