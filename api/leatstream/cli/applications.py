"""``leat application``: what an application has beyond other nouns: a text that is applied whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from leatstream.cli.nouns import NOUNS, YesOption, confirm, make_app
from leatstream.cli.output import Output, printable, stderr, write_json, write_rows
from leatstream.cli.session import OutputOption, open_client
from leatstream.cli.shell_names import object_names
from leatstream.cli.sql import require_text
from leatstream.cli.waiting import TimeoutOption, WaitOption, ends_of, refuse_failure, wait_for
from leatstream.model.bounds import LOG_LINES

_NOUN = next(noun for noun in NOUNS if noun.name == "application")
app = make_app(_NOUN, with_delete=False, about="List, show, apply, restart and delete applications.")

Name = Annotated[str, typer.Argument(metavar="APPLICATION", autocompletion=object_names)]


@app.command()
def apply(
    context: typer.Context,
    name: Name,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="BEGIN APPLICATION … END APPLICATION; - is the pipe.")
    ] = None,
    database: Annotated[str | None, typer.Option(help="Database of unqualified names.")] = None,
    schema: Annotated[str | None, typer.Option(help="Schema of unqualified names.")] = None,
    store: Annotated[str | None, typer.Option(help="Store of new relations.")] = None,
    wait: WaitOption = True,
    timeout: TimeoutOption = 120.0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create or replace an application, all of it or nothing; shows what becomes of each query."""
    from leatstream.cli.client import ProblemAnswer

    text = require_text(file)
    client = open_client(context)
    names = {"database": database, "schema": schema, "store": store}
    body = {"sql": text, **{key: value for key, value in names.items() if value is not None}}
    try:
        made = client.call("PUT", _NOUN.path(name), body=body)
    except ProblemAnswer as failure:
        failure.sql = text
        raise
    _write_plan(made, output)
    if wait:
        wanted = made["desired_state"]
        found = wait_for(client, _NOUN, name, ends_of(wanted), timeout)
        refuse_failure(_NOUN, name, wanted, found)
        stderr().print(f"Application {name} is {wanted}.", markup=False)


@app.command()
def restart(
    context: typer.Context,
    name: Name,
    only_failed: Annotated[
        bool, typer.Option("--only-failed", help="Leave those alone that have not failed.")
    ] = False,
) -> None:
    """Start its queries from their checkpoints, also those that were stopped."""
    client = open_client(context)
    client.call("POST", f"{_NOUN.path(name)}:restart", params={"only_failed": only_failed})
    stderr().print(f"Application {name} is restarting.", markup=False)


@app.command()
def logs(
    context: typer.Context,
    name: Name,
    tail: Annotated[int, typer.Option(help="How many of the last lines.", min=1, max=LOG_LINES)] = 50,
) -> None:
    """Show the last log lines of its queries; if some have failed, of those only."""
    found = open_client(context).call("GET", f"{_NOUN.path(name)}/logs", params={"tail": tail})
    for line in found["lines"]:
        typer.echo(printable(line))


def _write_plan(made: dict[str, Any], output: Output) -> None:
    if output is Output.JSON:
        write_json(made)
        return
    plan = made["plan"] or {}
    rows = [[q["name"], q["action"], *_change(q["plan"].get("change"))] for q in plan["queries"]]
    rows += [[gone, "remove", "", ""] for gone in plan["removed"]]
    write_rows(["query", "action", "change", "reason"], rows, output)


def _change(change: dict[str, str] | None) -> tuple[str, str]:
    return (change["class"], change["reason"]) if change else ("", "")


@app.command()
def delete(
    context: typer.Context,
    name: Name,
    yes: YesOption = False,
    wait: WaitOption = True,
    timeout: TimeoutOption = 120.0,
) -> None:
    """Stop and delete an application: its queries, their checkpoints and the streams it made. Topics stay."""
    confirm(f"Delete application {name}?", yes)
    client = open_client(context)
    going = client.call("DELETE", _NOUN.path(name))
    if going is not None and wait:
        wait_for(client, _NOUN, name, (), timeout)
    stderr().print(f"Deleted application {name}.", markup=False)
