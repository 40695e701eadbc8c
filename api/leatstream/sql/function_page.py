"""The reference page of functions, docs/sql/functions.md, written from the function table.

Usage: ``python -m leatstream.sql.function_page docs/sql/functions.md``
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from leatstream.sql.function_table import AGGREGATES, Function, refusals, table

# What the examples of aggregates are computed over: n BIGINT, d DOUBLE, t VARCHAR, b BOOLEAN, by event time.
ROWS: tuple[tuple[int | None, float | None, str | None, bool | None], ...] = (
    (1, 1.0, "a", True),
    (2, 3.0, "b", False),
    (4, 8.0, "b", True),
    (None, None, None, None),
)
_HEAD = """# Functions

<!-- Written by `make generate` from api/leatstream/sql/function_list.txt. -->

Names of Flink, DeltaStream and Spark; the list is closed: what is not on it never reaches the engine.
`LIST FUNCTIONS` and `DESCRIBE FUNCTION name` show the same. A test runs every example; its result is shown as
the JSON value that a sink gets.

NULL gives NULL unless the meaning says otherwise. NUMBER and ANY follow the arguments. `CAST(x AS type)`
fails on a value that does not fit, `TRY_CAST` gives NULL. Times without a zone are UTC.
"""
_RECORD = """
In a join each takes the alias of a relation: `rowtime(p)`.
"""
_AGGREGATE = """
With [GROUP BY](aggregates.md), in SELECT and HAVING. NULL is passed over by all but
`count(*)`; a group without any value gives NULL, 0 for the counts, an empty array for the arrays. `sum` and
`avg` fail the query when they overflow. `array_agg`, `collect_set`, `listagg`, `median`, `mode` and
`percentile` keep every value of a group as state: give them a window.

The examples are over these rows:

| n | d | t | b |
|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for category, members in groupby(table(), lambda f: f.category):
        parts.append(f"\n## {category}\n")
        if category == AGGREGATES:
            parts.append(_AGGREGATE)
            parts += ["| " + " | ".join(map(_cell, row)) + " |\n" for row in ROWS]
        elif category == "Record":
            parts.append(_RECORD)
        parts += ["\n| function | gives | example |\n|---|---|---|\n", *map(_row, members)]
    parts += ["\n## Not built\n", "\n| function | why | instead |\n|---|---|---|\n", *_refused()]
    return "".join(parts)


def _row(function: Function) -> str:
    shown = f"`{function.shown}`"
    if function.aliases:
        shown += ", also " + ", ".join(f"`{alias}`" for alias in function.aliases)
    gives = f"{_code(function.returns)}: {_escaped(function.meaning)}"
    example = " ".join(f"{_code(e)} = {_code(r)}" for e, r in function.examples)
    return f"| {shown} | {gives} | {example} |\n"


def _refused() -> Iterator[str]:
    for (reason, hint), members in groupby(refusals().values(), lambda r: (r.reason, r.hint)):
        names = ", ".join(f"`{r.name}`" for r in members)
        yield f"| {names} | {_escaped(reason)} | {_escaped(hint or '')} |\n"


def _cell(value: object) -> str:
    return "NULL" if value is None else str(value).upper() if isinstance(value, bool) else str(value)


def _code(text: str) -> str:
    return "`` " + _escaped(text) + " ``" if "`" in text else f"`{_escaped(text)}`"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
