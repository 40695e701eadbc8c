"""What may end a query: ORDER BY, LIMIT, OFFSET, FETCH. Streams have none of it, a SELECT that ends does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from leatstream.errors import Position
from leatstream.sql.match_recognize import MatchParser

MAX_LIMIT = 1_000_000_000
# What a stream cannot do: what, where, and what to do instead.
Refused = tuple[str, Position, str]


@dataclass(frozen=True, slots=True)
class SortKey:
    """One part of ORDER BY; ``nulls_first`` is None where nothing is said."""

    value: exp.Expression
    descending: bool
    nulls_first: bool | None


class EndsParser(MatchParser):
    """Reads the clauses behind a query expression."""

    def read_ends(self, ends: dict[str, Any]) -> list[Refused]:
        """ORDER BY, LIMIT, OFFSET: what they say is put into ``ends``, for a SELECT that ends."""
        found = []
        order = "A stream has no end to sort."
        clauses: list[tuple[tuple[str, ...], str, Callable[[], Any]]] = [
            (("order", "by"), order, lambda: self.many(self._ordered)),
            (("limit",), "A continuous query has no last row; filter with WHERE.", self.expr),
            (("offset",), "Use the source property 'starting.position'.", self.expr),
        ]
        for words, hint, read in clauses:
            token = self._curr
            if self.take(*words):
                place = self.since(token)
                found.append((" ".join(words).upper(), place, hint))
                ends[words[0]] = read()
                if words == ("limit",):
                    self.limits[place.offset] = ends["limit"]
                _ = words == ("offset",) and (self.take("rows") or self.take("row"))
        if self.is_word("fetch"):
            found.append(self._fetched(ends))
        return found

    def _fetched(self, ends: dict[str, Any]) -> Refused:
        """``FETCH FIRST|NEXT [n] ROW|ROWS ONLY``, which is LIMIT n; n is 1 where it is left out."""
        first = self._curr
        self._advance()
        if "limit" in ends:
            self.fail("LIMIT and FETCH say the same.", at=first, hint="Leave one of them out.")
        if not (self.take("first") or self.take("next")):
            self.unexpected("FIRST or NEXT")
        one = self.is_word("row", "rows")
        ends["limit"] = self.node(exp.Literal.number("1"), first) if one else self.expr()
        if not (self.take("rows") or self.take("row")):
            self.unexpected("ROWS")
        if self.is_word("with"):
            self.refuse("FETCH … WITH TIES", hint="Write ONLY.")
        self.expect("only")
        ends["fetched"] = True
        place = self.since(first)
        self.limits[place.offset] = ends["limit"]
        return "FETCH FIRST", place, "A continuous query has no last row; filter with WHERE."

    def limit_of(self, query: exp.Expression) -> int | None:
        """The LIMIT of a SELECT whose rows go to the user: that may end, where a stream may not."""
        refused = query.meta.get("refused", [])
        for entry in refused:
            what, position, _ = entry
            value = self.limits.get(position.offset)
            if what not in ("LIMIT", "FETCH FIRST") or value is None:
                continue
            if not isinstance(value, exp.Literal) or value.is_string or not str(value.this).isdecimal():
                self.fail("LIMIT takes a whole number.", at=position)
            digits = str(value.this).lstrip("0")
            # Counted first: Python makes no number of more than 4,300.
            if not digits or len(digits) > 9 or int(digits) > MAX_LIMIT:
                self.fail(f"LIMIT must be between 1 and {MAX_LIMIT}.", at=position)
            refused.remove(entry)
            return int(digits)
        return None

    def _ordered(self) -> SortKey:
        value = self.expr()
        descending = not self.take("asc") and self.take("desc")
        first = True if self.take("nulls", "first") else False if self.take("nulls", "last") else None
        return SortKey(value, descending, first)
