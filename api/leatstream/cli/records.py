"""``leat print``: the records of an entity as they come."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from leatstream.cli.nouns import entity_path
from leatstream.cli.output import Output, cell, printable
from leatstream.cli.session import OutputOption, open_client
from leatstream.cli.shell_names import entity_names
from leatstream.cli.waiting import seconds


def print_records(
    context: typer.Context,
    entity: Annotated[str, typer.Argument(metavar="STORE/ENTITY", autocompletion=entity_names)],
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="All records, not only new ones.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Records of this time on, such as 2026-01-31T09:00:00Z."),
    ] = None,
    partition: Annotated[str | None, typer.Option(help="Only this partition or shard.")] = None,
    offset: Annotated[int | None, typer.Option(help="From this offset of the partition on.", min=0)] = None,
    after: Annotated[
        str | None,
        typer.Option(
            metavar="PARTITION:OFFSET,…",
            help="Continue behind these places, such as 0:41,1:12; other partitions begin as the rest says.",
        ),
    ] = None,
    q: Annotated[str | None, typer.Option("--q", help="Text in the key or value, in any case.")] = None,
    rate: Annotated[int | None, typer.Option(help="The most records a second.", min=1)] = None,
    limit: Annotated[int | None, typer.Option(help="End after so many records.", min=1)] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            help="End after so many seconds without a record; also 2m.", parser=seconds, metavar="SECONDS"
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print the records of an entity: without a limit until Ctrl-C."""
    if output is Output.CSV:
        raise typer.BadParameter(
            "records are nested; csv cannot hold them, ndjson can", param_hint="--output"
        )
    if timeout is not None and timeout < 1:
        raise typer.BadParameter("at least 1 second", param_hint="--timeout")
    from leatstream.cli import following

    client = open_client(context)
    params = {
        "from": "beginning" if from_beginning else "latest",
        "since": since,
        "partition": partition,
        "offset": offset,
        "after": after,
        "q": q,
        "rate": rate,
        "limit": limit,
        "timeout": f"{timeout:.0f}s" if timeout else None,
    }
    for line in following.records(client, entity_path(entity), params):
        sys.stdout.write((describe(json.loads(line)) if output is Output.TABLE else line) + "\n")
        sys.stdout.flush()  # a reader of the pipe sees each record at once


def describe(record: dict[str, Any]) -> str:
    """A record on one line: position, time, key, value."""
    time = stamp(record.get("timestamp"))
    place = f"{record['partition']}:{record['offset']}"
    key = cell(record.get("key")) or "-"
    value = record.get("value")
    shown = "(no value: tombstone)" if value is None else cell(value)
    return printable(f"{place:>8}  {time or '-'}  {key}  {shown}").replace("\n", "\\n")


def stamp(milliseconds: Any) -> str | None:
    """A record's time as text; None where it has none."""
    if not isinstance(milliseconds, int):
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
