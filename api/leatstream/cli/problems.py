"""Shows a problem document to a person: what, where in the SQL, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from leatstream.cli.output import printable


def render(problem: dict[str, Any], sql: str | None = None) -> Text:
    """The problem as text with carets under the places in ``sql`` that it speaks of.

    Args:
        problem: the problem document.
        sql: the text that was sent, if it was SQL.
    """
    faults = [fault for fault in problem.get("errors") or [] if isinstance(fault, dict)]
    text = Text()
    if not faults:
        faults = [{"detail": problem.get("detail") or problem.get("title") or "The request failed"}]
    for number, fault in enumerate(faults):
        if number:
            text.append("\n")
        for part, style in _fault_lines(fault, problem, sql):
            text.append(part, style)
    if (problem.get("status") or 0) >= 500 and problem.get("request_id"):
        text.append(
            f"\n  request id {printable(str(problem['request_id']))}; the server's log has more", "dim"
        )
    return text


def _fault_lines(
    fault: dict[str, Any], problem: dict[str, Any], sql: str | None
) -> Iterator[tuple[str, str]]:
    code = fault.get("code") or problem.get("code")
    sqlstate = fault.get("sqlstate") or problem.get("sqlstate")
    yield "error", "bold red"
    marks = ", ".join(printable(str(mark)) for mark in (code, sqlstate) if mark)
    if marks:
        yield f"[{marks}]", "red"
    detail = fault.get("detail") or problem.get("detail") or problem.get("title") or ""
    yield f": {printable(str(detail))}", "bold"
    position = fault.get("position")
    if isinstance(position, dict):
        yield from _place(position, sql)
    elif fault.get("pointer"):
        yield f"\n  at {printable(str(fault['pointer']))}", "dim"
    if fault.get("hint"):
        yield "\n  hint: ", "cyan"
        yield printable(str(fault["hint"])), ""


def _place(position: dict[str, Any], sql: str | None) -> Iterator[tuple[str, str]]:
    line, column = int(position["line"]), int(position["column"])
    length = max(1, int(position.get("length") or 1))
    yield f"\n  --> line {line}, column {column}", "dim"
    lines = (sql or "").splitlines()
    if not 1 <= line <= len(lines):
        return
    source = lines[line - 1].replace("\t", " ")
    before, marked = source[: column - 1], source[column - 1 : column - 1 + length]
    margin = " " * len(str(line))
    # Cells, not characters: East Asian letters are two columns wide.
    carets = "^" * max(1, cell_len(marked))
    yield f"\n {margin} |\n {line} | ", "blue"
    yield printable(source), ""
    yield f"\n {margin} | ", "blue"
    yield " " * cell_len(before) + carets, "bold red"
