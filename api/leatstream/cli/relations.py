"""``leat relation sample``; relations are nouns like others."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from leatstream.cli.nouns import NOUNS, Name, make_app
from leatstream.cli.output import Output, stderr, write_json, write_ndjson, write_rows
from leatstream.cli.records import stamp
from leatstream.cli.session import OutputOption, open_client

_NOUN = next(noun for noun in NOUNS if noun.name == "relation")
app = make_app(_NOUN, about="List, show, sample and delete relations.")
_NO_ROW = {"deletion": "deletes the row of its key", "passed_over": "has no value"}


class From(StrEnum):
    """Which records are shown."""

    LATEST = "latest"
    EARLIEST = "earliest"


@app.command()
def sample(
    context: typer.Context,
    name: Name,
    limit: Annotated[int, typer.Option(min=1, max=100, help="The most records.")] = 20,
    start: Annotated[
        From, typer.Option("--from", help="The newest records, or the oldest ones.")
    ] = From.LATEST,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show a few records of a relation as rows, without a Spark driver; the reason where one is no row."""
    params = {"limit": limit, "from": start.value}
    answer = open_client(context).call("GET", f"{_NOUN.path(name)}/sample", params=params)
    if output is Output.JSON:
        write_json(answer)
        return
    if output is Output.NDJSON:
        write_ndjson(answer["records"])
    else:
        _write_rows(answer, output)
    if answer.get("note"):
        stderr().print(answer["note"], markup=False)


def _write_rows(answer: dict[str, Any], output: Output) -> None:
    columns = [column["name"] for column in answer["columns"]]
    placed = any(one.get("partition") is not None for one in answer["records"])
    heads = ["place", "time", "key"] if placed else []
    faulty = any(one["outcome"] != "row" for one in answer["records"])
    rows = []
    for one in answer["records"]:
        cells = [_place(one), stamp(one.get("timestamp")), one.get("key")] if placed else []
        values = one["row"] if one["row"] is not None else [None] * len(columns)
        rows.append([*cells, *([_fault(one)] if faulty else []), *values])
    if rows or output is Output.CSV:
        write_rows([*heads, *(["not a row"] if faulty else []), *columns], rows, output)


def _place(one: dict[str, Any]) -> str:
    return f"{one['partition']}:{one['offset']}"


def _fault(one: dict[str, Any]) -> str | None:
    outcome = one["outcome"]
    return _NO_ROW.get(outcome, one.get("reason")) if outcome != "row" else None
