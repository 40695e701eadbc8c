"""Lengths of time: windows in FROM (TUMBLE, HOP, CUMULATE, SESSION) and WITHIN."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from leatstream.errors import Position
from leatstream.plan.logical import Window
from leatstream.sql.expressions import ExpressionParser

WINDOW_FUNCTIONS = ("tumble", "hop", "cumulate", "session")
UNITS_MS = {
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
MAX_WITHIN_MS = 366 * UNITS_MS["day"]
MAX_OVERLAP = 1000
# What follows SIZE where windows overlap.
_STEPS = {"hop": ("advance", "by"), "cumulate": ("step",)}


class Within(NamedTuple):
    """How far the right row's time may be before and after the left row's; how late either may come."""

    before_ms: int
    after_ms: int
    grace_ms: int | None
    position: Position


class WindowParser(ExpressionParser):
    """Reads them."""

    def _windowed(self, relation: Callable[[], exp.Expression]) -> exp.Expression:
        """``TUMBLE(relation, SIZE n unit)`` and similar functions.

        ``HOP(relation, SIZE n unit, ADVANCE BY n unit)``, ``CUMULATE(relation, SIZE n unit, STEP n unit)``,
        ``SESSION(relation, GAP n unit)``.
        """
        first = self._curr
        kind = first.text.lower()
        self._advance(2)
        node = relation()
        size = advance = self._length("gap" if kind == "session" else "size")
        words = _STEPS.get(kind)
        if words is not None:
            start = self._tokens[min(self._index + 1, self._tokens_size - 1)]
            advance = self._length(*words)
            if size % advance or size // advance > MAX_OVERLAP:
                shown = " ".join(words).upper()
                self.fail(
                    f"SIZE must be a whole multiple of {shown}, at most {MAX_OVERLAP} times.",
                    at=self.since(start),
                )
        self.expect_mark(TokenType.R_PAREN, ")")
        node.meta["window"] = Window(kind, size, advance)
        node.meta["window_position"] = self.since(first)
        return node

    def _length(self, *words: str) -> int:
        """Milliseconds of ``, WORDS n unit``."""
        shown = " ".join(words).upper()
        self.expect_mark(TokenType.COMMA, f", {shown}")
        start = self._curr
        self.expect(*words)
        return self._duration(start, shown, "1 MINUTE")

    def _within(self) -> Within | None:
        """``WITHIN n unit``, or ``WITHIN (BEFORE n unit, AFTER n unit)``; then perhaps ``GRACE n unit``."""
        first = self._curr
        if not self.take("within"):
            return None
        wrapped = self.take_mark(TokenType.L_PAREN)
        sides: dict[str, int] = {}
        while wrapped and self.is_word("before", "after"):
            start = self._curr
            side = start.text.lower()
            self._advance()
            if side in sides:
                self.fail(f"{side.upper()} is given twice.", at=start)
            sides[side] = self._duration(start, side.upper(), "5 MINUTES", least=0)
            if not self.take_mark(TokenType.COMMA):
                break
        size = 0 if sides else self._duration(first, "WITHIN", "5 MINUTES")
        if wrapped:
            self.expect_mark(TokenType.R_PAREN, ")")
        if sides and not any(sides.values()):
            self.fail("WITHIN takes more than nothing on one side at least.", at=self.since(first))
        grace = None
        start = self._curr
        if self.take("grace"):
            self.take("period")
            grace = self._duration(start, "GRACE", "1 MINUTE", least=0)
        before, after = (sides.get(side, size) for side in ("before", "after"))
        return Within(before, after, grace, self.since(first))

    def _duration(self, first: Token, word: str, example: str, least: int = 1) -> int:
        """Milliseconds of ``[INTERVAL] n unit``; ``first`` is where its clause began."""
        self.take("interval")
        number = self._curr
        if not (self.take_mark(TokenType.NUMBER) or self.take_mark(TokenType.STRING)):
            self.unexpected(f"a number after {word}")
        if not number.text.isdecimal() or not number.text.isascii() or len(number.text) > 15:
            self.fail(f"{word} takes a whole number and a unit.", at=number, hint=f"Write {word} {example}.")
        unit = self._curr.text.lower().removesuffix("s") if self._curr.token_type == TokenType.VAR else ""
        if unit not in UNITS_MS:
            self.unexpected("a time unit (SECONDS, MINUTES, HOURS, DAYS)")
        self._advance()
        size = int(number.text) * UNITS_MS[unit]
        if not least <= size <= MAX_WITHIN_MS:
            more = "more than nothing and " if least else ""
            self.fail(f"{word} takes {more}at most 366 days.", at=self.since(first))
        return size
