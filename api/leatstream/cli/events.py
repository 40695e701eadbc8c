"""``leat events``: what has happened to the objects of the catalog, a line each."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leatstream.cli.output import Output, printable, stderr
from leatstream.cli.session import OutputOption, open_client

if TYPE_CHECKING:
    from leatstream.cli.client import Client

_PATIENCE = 30.0  # seconds that a server that was reached may be unreachable
_GATEWAY = (502, 503, 504)  # what stands in front of a server that starts again answers in its place
_sleep = time.sleep


def events(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Object, or a database or schema with what is in it."),
    ] = None,
    kind: Annotated[str | None, typer.Option(help="Only this kind of object, such as query.")] = None,
    tail: Annotated[int, typer.Option(help="How many of the last changes.", min=0, max=200)] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new ones as they come.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what was created, changed and deleted, and how the states of queries and stores changed."""
    if output is Output.CSV:
        raise typer.BadParameter("changes have no fixed columns; use ndjson", param_hint="--output")
    params = {"name": name, "kind": kind, "tail": tail, "follow": str(follow).lower()}
    for item in _changes(open_client(context), params, follow=follow):
        if "reset" in item:
            stderr().print(f"Changes may be missing: {printable(item['reset']['reason'])}", markup=False)
        else:
            text = describe(item) if output is Output.TABLE else json.dumps(item, ensure_ascii=False)
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()  # a reader of the pipe sees each change at once


def describe(change: dict[str, Any]) -> str:
    """A change on one line: time, type, kind, name, state and cause."""
    what = change["state"] if change["type"] == "state" else change["type"]
    cause = ": ".join(part for part in (change.get("error"), change.get("message")) if part)
    line = f"{change['at'][:19]}Z  {what:<9} {change['kind'].replace('_', ' ')} {change['name']}"
    return printable(f"{line}  {cause}".rstrip()).replace("\n", "\\n")


def _changes(client: Client, params: dict[str, Any], *, follow: bool) -> Iterator[dict[str, Any]]:
    """Changes and resets; a stream that ends is opened again behind the last position."""
    from leatstream.cli.client import ProblemAnswer, Unreachable

    position: str | None = None
    left = _PATIENCE
    while True:
        begun = False
        try:
            for item in client.changes({**params, "after": position}):
                left, begun = _PATIENCE, True
                position = item.get("id") or item.get("position") or position
                if "id" in item or "reset" in item:
                    yield item
            if not follow:
                return
        except (Unreachable, ProblemAnswer) as error:
            refused = isinstance(error, ProblemAnswer) and error.problem.get("status") not in _GATEWAY
            # A token of `leat login` has ended: the next request has a new one, or is refused at once.
            if begun and isinstance(error, ProblemAnswer) and error.problem.get("code") == "unauthenticated":
                refused = False
            if refused or not follow or position is None or left <= 0:
                raise
            left -= 1
        _sleep(1)
