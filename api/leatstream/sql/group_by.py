"""GROUP BY: expressions, GROUPING SETS, ROLLUP and CUBE."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from leatstream.errors import Position
from leatstream.sql.statements import GroupingSets
from leatstream.sql.windows import WindowParser

MAX_SETS = 64
_KINDS = (("grouping", "sets"), ("rollup",), ("cube",))


class GroupByParser(WindowParser):
    """Reads it. ``meta["sets"]`` of the Group has its GroupingSets, ``expressions`` every key in order."""

    def _grouping(self) -> tuple[exp.Expression | None, Position | None]:
        token = self._curr
        if not self.take("group", "by"):
            return None, None
        place = self.since(token)
        keys: list[exp.Expression] = []
        sets: list[GroupingSets] = []
        self.many(lambda: self._element(keys, sets))
        count = 1
        for each in sets:
            count *= each.count
            if count > MAX_SETS:
                detail = f"GROUP BY makes at most {MAX_SETS} sets of columns."
                self.fail(detail, code="too-complex", at=each.position)
        group = exp.Group(expressions=keys)
        group.meta["sets"] = sets
        return group, place

    def _element(self, keys: list[exp.Expression], sets: list[GroupingSets]) -> None:
        first = self._curr
        for words in _KINDS:
            if self._sets_ahead(words):
                self._advance(len(words) + 1)
                parts = tuple(self.many(lambda: self._set(keys)))
                self.expect_mark(TokenType.R_PAREN, ", or )")
                sets.append(GroupingSets(" ".join(words).upper(), parts, self.since(first)))
                return
        keys.append(self.expr())

    def _sets_ahead(self, words: tuple[str, ...]) -> bool:
        said = all(self.is_word(word, ahead=i) for i, word in enumerate(words))
        return said and self.is_mark(TokenType.L_PAREN, len(words))

    def _set(self, keys: list[exp.Expression]) -> tuple[int, ...]:
        """Places in ``keys`` of one member: ``a``, ``(a, b)`` or ``()``."""
        if any(self._sets_ahead(words) for words in _KINDS):
            self.refuse("GROUPING SETS, ROLLUP or CUBE inside of another", hint="Write its sets out.")
        start = len(keys)
        if not self.take_mark(TokenType.L_PAREN):
            keys.append(self.expr())
        elif not self.is_mark(TokenType.R_PAREN):
            keys += self.many(self.expr)
            self.expect_mark(TokenType.R_PAREN, ", or )")
        else:
            self._advance()
        return tuple(range(start, len(keys)))
