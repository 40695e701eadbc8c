"""Writes results to standard output: tables for people; JSON, NDJSON and CSV for programs."""

from __future__ import annotations

import csv
import json
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from leatstream.cli.fitting import fitted, is_origin

# Written to a pipe a table must not be folded at some made-up width.
_UNFOLDED = 100_000
# Of a terminal that does not know its own.
_USUAL = 80
_ORIGINS = ("property", "value", "origin", "from")


class Output(StrEnum):
    """Forms of output. ``json`` is the service's own answer, unchanged."""

    TABLE = "table"
    JSON = "json"
    NDJSON = "ndjson"
    CSV = "csv"


def stdout() -> Console:
    """Console for results."""
    return Console(width=None if sys.stdout.isatty() else _UNFOLDED, highlight=False)


def stderr() -> Console:
    """Console for messages, progress and errors."""
    return Console(stderr=True, width=None if sys.stderr.isatty() else _UNFOLDED, highlight=False)


def printable(text: str) -> str:
    """Text that cannot steer a terminal: control characters become visible escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


def cell(value: Any) -> str:
    """A value in a table or CSV field; nested ones as compact JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def look_up(item: Mapping[str, Any], path: str) -> Any:
    """Follow a dotted path, such as ``status.state``; None where it ends early."""
    value: Any = item
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def write_json(body: Any) -> None:
    """One JSON document."""
    json.dump(body, sys.stdout, ensure_ascii=False, indent=2)
    sys.stdout.write("\n")


def write_ndjson(items: Iterable[Any]) -> None:
    """One JSON document a line."""
    for item in items:
        sys.stdout.write(json.dumps(item, ensure_ascii=False) + "\n")


def terminal_width() -> int | None:
    """Columns of the terminal that standard output is; None where it is none."""
    return (shutil.get_terminal_size((_USUAL, 24)).columns or _USUAL) if sys.stdout.isatty() else None


def write_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], output: Output) -> None:
    """A result set as table, CSV or NDJSON objects."""
    if output is Output.NDJSON:
        write_ndjson(dict(zip(columns, row, strict=False)) for row in rows)
    elif output is Output.CSV:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([cell(value) for value in row] for row in rows)
    else:
        _print_trimmed(_table(columns, rows))


def write_list(heads: Sequence[str], rows: Iterable[Sequence[Any]], output: Output, *, wide: bool) -> None:
    """Rows of a list: on a terminal as wide as it is, unless it is to be wide.

    Args:
        heads: names of the columns.
        rows: values in the order of ``heads``.
        output: form.
        wide: show every column in full.
    """
    width = terminal_width()
    if output is not Output.TABLE or wide or width is None:
        write_rows(heads, rows, output)
        return
    shown, cells, left_out = fitted(heads, [[cell(value) for value in row] for row in rows], width)
    write_rows(shown, cells, output)
    if left_out:
        stderr().print(f"{left_out} more columns: --wide", style="dim", markup=False)


def list_table(heads: Sequence[str], rows: Iterable[Sequence[Any]], *, wide: bool) -> Table:
    """A list as a table for the terminal.

    Args:
        heads: names of the columns.
        rows: values in the order of ``heads``.
        wide: show every column in full.
    """
    cells = [[cell(value) for value in row] for row in rows]
    if not wide:
        heads, cells, _ = fitted(heads, cells, terminal_width() or _UNFOLDED)
    return _table(heads, cells)


def write_items(
    answer: Mapping[str, Any], columns: Sequence[str], output: Output, *, wide: bool = True
) -> None:
    """Objects of a list, as the service answers it.

    Args:
        answer: they are its ``items``.
        columns: dotted paths for tables and CSV, as ``head=path`` to be named so.
        output: the form.
        wide: whether a table may be wider than the terminal.
    """
    items: Sequence[Mapping[str, Any]] = answer["items"]
    if output is Output.JSON:
        write_json(answer)
    elif output is Output.NDJSON:
        write_ndjson(items)
    else:
        named = [(path.partition("=")[0].rsplit(".", 1)[-1], path.rpartition("=")[2]) for path in columns]
        rows = [[_joined(look_up(item, path)) for _, path in named] for item in items]
        write_list([head for head, _ in named], rows, output, wide=wide)


def _joined(value: Any) -> Any:
    return ", ".join(value) if isinstance(value, list) and all(isinstance(i, str) for i in value) else value


def write_effective(effective: Mapping[str, Mapping[str, Any]]) -> None:
    """Properties in force, each with where its value comes from."""
    _print_trimmed(_effective_table(effective))


def write_object(body: Mapping[str, Any], output: Output) -> None:
    """One object: as it came, or its fields one a line, nested ones indented."""
    if output is Output.JSON:
        write_json(body)
    elif output is Output.NDJSON:
        write_ndjson([body])
    elif output is Output.CSV:
        write_rows(("field", "value"), list(body.items()), output)
    else:
        console = stdout()
        for depth, label, value in _outline(body, 0):
            if isinstance(value, Table):
                _print_trimmed(value, depth)
                continue
            line = Text.assemble(
                "  " * depth, (printable(label), "bold"), f" {printable(value)}" if value else ""
            )
            console.print(line, soft_wrap=True)


def _outline(value: Any, depth: int) -> Iterator[tuple[int, str, str | Table]]:
    """Lines of a nested value: depth, label, text. What is null or empty is left out.

    Properties with their origins are a table below their label.
    """
    pairs = value.items() if isinstance(value, Mapping) else (("-", item) for item in value)
    for label, item in pairs:
        mark = label if label == "-" else f"{label}:"
        if item is None or item in ({}, []):
            continue
        if isinstance(item, Mapping) and all(map(is_origin, item.values())):
            yield depth, mark, ""
            yield depth + 1, "", _effective_table(item)
        elif isinstance(item, Mapping) or (
            isinstance(item, list) and any(isinstance(i, Mapping) for i in item)
        ):
            yield depth, mark, ""
            yield from _outline(item, depth + 1)
        else:
            text = ", ".join(map(cell, item)) if isinstance(item, list) else cell(item)
            yield depth, mark, text.replace("\n", "\n" + "  " * (depth + 2))


def _print_trimmed(table: Table, depth: int = 0) -> None:
    """Without the blanks that fill up the last column."""
    console, margin = stdout(), "  " * depth
    with console.capture() as captured:
        console.print(table, width=max(20, console.width - len(margin)))
    sys.stdout.write("".join(f"{margin}{line.rstrip()}\n" for line in captured.get().splitlines()))


def _effective_table(effective: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = [(key, one.get("value"), one["origin"], one.get("from")) for key, one in effective.items()]
    return _table(_ORIGINS, rows)


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in columns:
        table.add_column(Text(printable(name)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell(value))) for value in row))
    return table
