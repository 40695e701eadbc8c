"""Rows of a SELECT on streams, written as they come until it ends or Ctrl-C."""

from __future__ import annotations

import contextlib
import csv
import json
import sys
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from leatstream.cli.output import Output, cell, printable, stderr
from leatstream.cli.wait_line import WaitLine

if TYPE_CHECKING:
    from leatstream.cli.client import Client

_WIDEST = 40
_WHY = {"limit": "limit reached", "bytes": "too many bytes", "time": "time is over", "idle": "no more rows"}


class Ended(KeyboardInterrupt):
    """Ctrl-C while rows came: the SELECT is over, nothing continues."""


def is_stream(result: Mapping[str, Any]) -> bool:
    """Whether the rows of a statement's result come later, by a path of their own."""
    return isinstance(result.get("rows"), str)


def follow(client: Client, result: Mapping[str, Any], output: Output) -> None:
    """Write the rows as they come. As ``json``, which has no form for what has no end, they are lines too.

    Raises:
        ProblemAnswer: the SELECT failed; the rows before have been written.
        Ended: Ctrl-C.
    """
    from leatstream.cli import following

    writer = _Writer(result, output)
    try:
        with (
            WaitLine("waiting for rows") as waits,
            contextlib.closing(following.rows(client, str(result["rows"]), waits=waits.shown)) as lines,
        ):
            for line in lines:
                item = json.loads(line, parse_float=Decimal)  # no digit is lost
                if "waits" in item:
                    waits.text = str(item["waits"])
                    continue
                waits.end()
                if "end" in item:
                    _say(f"{_count(item['end']['rows'])}: {_WHY.get(item['end']['reason'], 'ended')}.")
                    return
                writer.write(item, line)
                sys.stdout.flush()  # a reader of the pipe sees each row at once
    except KeyboardInterrupt:
        _say(f"{_count(writer.count)}: ended.")
        raise Ended from None


def _count(rows: int) -> str:
    return f"{rows} row{'' if rows == 1 else 's'}"


def _say(text: str) -> None:
    stderr().print(text, style="dim", markup=False)


def _cell(value: Any) -> str:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(", ", ": "), default=float)
    return cell(value)


class _Writer:
    def __init__(self, result: Mapping[str, Any], output: Output) -> None:
        self.count = 0
        self._output = output
        self._changelog = bool((result.get("object") or {}).get("changelog"))
        self._columns = [str(column["name"]) for column in result.get("columns") or []]
        self._heads = ["op", *self._columns] if self._changelog else self._columns
        self._widths: list[int] = []

    def write(self, item: Mapping[str, Any], line: str) -> None:
        """One row."""
        self.count += 1
        if self._output in (Output.JSON, Output.NDJSON):
            sys.stdout.write(line + "\n")
            return
        values = [_cell(item["row"].get(column)) for column in self._columns]
        cells = [str(item["op"]), *values] if self._changelog else values
        if self._output is Output.CSV:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            if self.count == 1:
                writer.writerow(self._heads)
            writer.writerow(cells)
            return
        cells = [printable(text).replace("\n", "\\n") for text in cells]
        if self.count == 1:
            # Later rows are not known yet: the first one shows how wide columns are.
            heads = [printable(head) for head in self._heads]
            pairs = zip(heads, cells, strict=True)
            self._widths = [min(max(len(head), len(text)), _WIDEST) for head, text in pairs]
            self._line(heads)
            self._line(["-" * width for width in self._widths])
        self._line(cells)

    def _line(self, cells: list[str]) -> None:
        padded = [text.ljust(width) for text, width in zip(cells, self._widths, strict=True)]
        sys.stdout.write(" | ".join(padded).rstrip() + "\n")
