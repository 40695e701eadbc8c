"""``leat audit``: who changed what, and what was refused; also as lines into a file or another program."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leatstream.cli.moments import SinceOption, UntilOption
from leatstream.cli.output import Output, printable, stderr, write_items
from leatstream.cli.session import OutputOption, WideOption, open_client

if TYPE_CHECKING:
    from leatstream.cli.client import Client

_PATH = "/v1/audit-events"
_COLUMNS = ("at", "principal", "role", "operation", "kind", "name", "outcome", "address")
_PAGE = 1000
_PAUSE = 2.0  # seconds
_LATER = (429, 500, 502, 503, 504)
_sleep = time.sleep


def audit(
    context: typer.Context,
    account: Annotated[str | None, typer.Option(help="Only events of this account.")] = None,
    operation: Annotated[str | None, typer.Option(help="Only this operation, such as delete.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only objects of this kind, such as query.")] = None,
    q: Annotated[str | None, typer.Option("--q", help="Part of the object's name, in any case.")] = None,
    outcome: Annotated[str | None, typer.Option(help="Only allowed, or only denied.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: Annotated[int, typer.Option(help="How many of the newest.", min=1, max=1000)] = 50,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Oldest first; continue with new events as they come.")
    ] = False,
    cursor: Annotated[
        Path | None,
        typer.Option(
            help="File with the number of the last event that was written: --follow continues there. Without "
            "the file it begins with the oldest event.",
            dir_okay=False,
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
    wide: WideOption = False,
) -> None:
    """Show who changed what, and what was refused; the newest first."""
    wanted = {"account": account, "operation": operation, "kind": kind, "q": q, "outcome": outcome}
    wanted |= {"since": since, "until": until}
    asked = {name: value for name, value in wanted.items() if value}
    client = open_client(context)
    if not follow:
        if cursor is not None:
            raise typer.BadParameter("a cursor is for --follow", param_hint="--cursor")
        write_items(
            client.call("GET", _PATH, params={"page_size": limit, **asked}), _COLUMNS, output, wide=wide
        )
        return
    if output is Output.CSV:
        raise typer.BadParameter("events have no fixed columns; use ndjson", param_hint="--output")
    begin = _begin(client, asked, limit, cursor)
    if cursor is not None:
        _keep(cursor, begin)  # a file that cannot be written is reported before the first line
    for events in _events(client, asked, begin):
        for event in events:
            text = describe(event) if output is Output.TABLE else json.dumps(event, ensure_ascii=False)
            sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
        # Behind the lines: what breaks off in between is written again, and never left out.
        if cursor is not None:
            _keep(cursor, events[-1]["number"])


def describe(event: dict[str, Any]) -> str:
    """An event on one line: time, outcome, who in which role, what, and from where."""
    who = f"{event['principal'] or '-'} ({event['role'] or '-'})"
    what = f"{event['operation']} {event['kind'].replace('_', ' ')} {event['name']}"
    code = f"  {event['code']}" if event.get("code") else ""
    line = f"{event['at'][:19]}Z  {event['outcome']:<7}  {who}  {what}{code}  {event.get('address') or ''}"
    return printable(line.rstrip()).replace("\n", "\\n")


def _begin(client: Client, asked: dict[str, Any], limit: int, cursor: Path | None) -> int:
    """The number behind which events are written."""
    if cursor is None:
        newest = client.call("GET", _PATH, params={"page_size": limit, **asked})["items"]
        return int(newest[-1]["number"]) - 1 if newest else 0
    try:
        text = cursor.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return 0
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"the file cannot be read: {error}", param_hint="--cursor") from None
    if not text.isdecimal():
        raise typer.BadParameter("the file does not contain the number of an event", param_hint="--cursor")
    newest = client.call("GET", _PATH, params={"page_size": 1})["items"]
    if int(text) > (newest[0]["number"] if newest else 0):
        detail = f"the log has no event {text}: its catalog was restored, or is another one; delete the file"
        raise typer.BadParameter(detail, param_hint="--cursor")
    return int(text)


def _events(client: Client, asked: dict[str, Any], after: int) -> Iterator[list[dict[str, Any]]]:
    """Events in their order, some at a time, without an end; an unreachable server is asked again."""
    from leatstream.cli.client import ProblemAnswer, Unreachable

    reached = True
    while True:
        try:
            params = {"page_size": _PAGE, "after": after, **asked}
            found = client.call("GET", _PATH, params=params)["items"]
            reached = True
        except (Unreachable, ProblemAnswer) as error:
            if isinstance(error, ProblemAnswer) and error.problem.get("status") not in _LATER:
                raise
            if reached:
                stderr().print("The server does not answer; it is asked again.", markup=False)
            found, reached = [], False
        if found:
            yield found
            after = int(found[-1]["number"])
        else:
            _sleep(_PAUSE)


def _keep(cursor: Path, number: int) -> None:
    """Write the number so that the file is whole at any moment."""
    new = cursor.with_name(f".{cursor.name}.new")
    try:
        new.write_text(f"{number}\n", encoding="ascii")
        os.replace(new, cursor)
    except OSError as error:
        detail = f"{cursor} cannot be written: {error.strerror}"
        raise typer.BadParameter(detail, param_hint="--cursor") from None
