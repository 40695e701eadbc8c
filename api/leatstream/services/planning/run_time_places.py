"""From a place in the SQL that a job runs to the user's text, for values that cannot be computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leatstream.errors import Position
from leatstream.model.objects import Query
from leatstream.plan.logical import LogicalPlan
from leatstream.sql.lexer import Source
from leatstream.sql.source_map import SpanMap

_LONGEST = 80


def places_of(logical: LogicalPlan, sql: str) -> list[tuple[int, int, int, int]]:
    """``JobSpec.places`` of a job whose SQL holds that of the plan; empty where it does not."""
    shift, known = sql.find(logical.sql), logical.source_map
    if shift < 0 or not isinstance(known, SpanMap):
        return []
    marks = ((a + shift, b + shift, at.offset, at.length) for a, b, at in known.marks)
    return sorted(set(marks))


def in_users_words(query: Query, error: Mapping[str, Any]) -> dict[str, Any]:
    """The error of a job, with the expression and its position in the user's text, not in the job's SQL."""
    found = {name: value for name, value in error.items() if name != "span"}
    span = error.get("span")
    place = _locate(query, *span) if span else None
    if place is None:
        return found
    expression = " ".join(query.sql[place.offset : place.offset + place.length].split())
    if len(expression) > _LONGEST:
        expression = expression[: _LONGEST - 1] + "…"
    where = f"line {place.line}, column {place.column}"
    position = {"line": place.line, "column": place.column, "offset": place.offset, "length": place.length}
    located = {n: f"{expression} ({where}): {error[n]}" for n in ("detail", "shown") if n in error}
    return {**found, **located, "expression": expression, "position": position}


def _locate(query: Query, start: int, stop: int) -> Position | None:
    text = Source(query.sql)
    marks = [
        (first, last, text.position(offset, offset + length))
        for first, last, offset, length in query.job.get("places") or ()
        if offset + length <= len(query.sql)
    ]
    return SpanMap(tuple(marks)).locate(start, stop, "")
