"""``leat query``: what a query has beyond other nouns: a job that runs, logs, and stops."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leatstream.cli import waiting
from leatstream.cli.catching_up import wait
from leatstream.cli.exits import Exit
from leatstream.cli.moments import SinceOption
from leatstream.cli.nouns import NOUNS, YesOption, confirm, flat, make_app
from leatstream.cli.output import Output, printable, stderr, write_items
from leatstream.cli.session import OutputOption, WideOption, open_client
from leatstream.cli.shell_names import object_names
from leatstream.cli.sql import read_text
from leatstream.cli.top import top
from leatstream.cli.waiting import TimeoutOption, WaitOption, WaitTimeout
from leatstream.model.bounds import LOG_LINES
from leatstream.model.progress import known_lag

if TYPE_CHECKING:
    from leatstream.cli.client import Client

_NOUN = next(noun for noun in NOUNS if noun.name == "query")
path = flat("queries")
app = make_app(
    _NOUN, with_delete=False, about="List, show, start, wait for, stop, restart, replace and delete queries."
)

Name = Annotated[str, typer.Argument(metavar="QUERY", autocompletion=object_names)]
app.command()(top)
app.command()(wait)


def wait_for(client: Client, name: str, states: Iterable[str], timeout: float) -> dict[str, Any] | None:
    """Wait until the query is in one of the states; none = until it is gone. See ``waiting.wait_for``."""
    return waiting.wait_for(client, _NOUN, name, states, timeout)


@app.command()
def logs(
    context: typer.Context,
    name: Name,
    tail: Annotated[int, typer.Option(help="How many of the last lines.", min=1, max=LOG_LINES)] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new ones as they come.")] = False,
) -> None:
    """Show the last lines of the query's job."""
    from leatstream.cli import following

    client = open_client(context)
    if follow:
        lines: Iterable[str] = following.log_lines(client, path(name), tail)
    else:
        lines = client.call("GET", path(name) + "/logs", params={"tail": tail})["lines"]
    for line in lines:
        typer.echo(printable(line))


LimitOption = Annotated[int, typer.Option(help="How many of the newest.", min=1, max=200)]


@app.command()
def events(
    context: typer.Context,
    name: Name,
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
    wide: WideOption = False,
) -> None:
    """Show what happened to the query's job: states, attempts, reasons."""
    answer = open_client(context).call("GET", path(name) + "/events", params={"limit": limit})
    write_items(answer, ("at", "state", "attempt", "generation", "error", "reason"), output, wide=wide)


@app.command()
def progress(
    context: typer.Context,
    name: Name,
    limit: Annotated[
        int | None, typer.Option(help="How many of the newest; 20, or all with --since.", min=1, max=600)
    ] = None,
    since: SinceOption = None,
    output: OutputOption = Output.TABLE,
    wide: WideOption = False,
) -> None:
    """Show how fast the query's job was and how far behind, up to a day back.

    Of the last hour it is a moment every 15 seconds, before it the one with the highest lag of each five
    minutes.
    """
    params = {"limit": limit or (600 if since else 20)} | ({"since": since} if since else {})
    answer = open_client(context).call("GET", path(name) + "/progress", params=params)
    if output in (Output.TABLE, Output.CSV):
        answer = {"items": [item | {"lag": known_lag(item["metrics"])} for item in answer["items"]]}
    rates = ("in/s=metrics.input_rows_per_second", "out/s=metrics.output_rows_per_second")
    write_items(answer, ("at", "attempt", *rates, "lag"), output, wide=wide)


@app.command()
def history(
    context: typer.Context,
    name: Name,
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
    wide: WideOption = False,
) -> None:
    """Show the query's versions: who wrote what, and what it changed for the job."""
    answer = open_client(context).call("GET", path(name) + "/history", params={"limit": limit})
    write_items(answer, ("generation", "at", "by", "change", "reason", "sql"), output, wide=wide)


@app.command()
def restart(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[QUERY]",
            help="Left out: every query that one cause has ended.",
            autocompletion=object_names,
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="earliest, latest, a time such as 2026-01-31T12:00:00Z, or offsets as JSON: "
            '\'{"source": {"0": 12}}\'; else from its checkpoint.',
        ),
    ] = None,
    skip_record: Annotated[
        str | None,
        typer.Option(
            metavar="RECORD",
            help="Leave out the record that it has failed at, from now on: topic:partition:offset. Without "
            "QUERY: in every query that has failed at it.",
        ),
    ] = None,
    failed_by: Annotated[
        str | None,
        typer.Option(
            metavar="CAUSE",
            help="Restart every failed query of this cause: a record, as topic:partition:offset, or the code "
            "or condition of its error, such as source-gone.",
        ),
    ] = None,
    wait: WaitOption = True,
    timeout: TimeoutOption = 120.0,
) -> None:
    """Restart the job from its checkpoint, from another place in its sources, or past a record."""
    client = open_client(context)
    if name is None:
        _restart_failed(client, start, skip_record, failed_by, timeout if wait else None)
        return
    if failed_by is not None:
        raise typer.BadParameter("it names the queries: leave QUERY out", param_hint="--failed-by")
    before = client.call("GET", path(name))["status"]["job"]
    body = (_place(start) if start is not None else {}) | (
        {"skip_record": skip_record} if skip_record is not None else {}
    )
    asked = client.call("POST", path(name) + ":restart", body=body or None)
    if start is not None:
        stderr().print(printable(asked["status"]["message"] or ""), markup=False)
    if wait:
        _wait_for_new_attempt(client, name, before, timeout)
    stderr().print(f"Query {name} {'runs again' if wait else 'is restarting'}.", markup=False)


def _restart_failed(
    client: Client, start: str | None, skip_record: str | None, failed_by: str | None, timeout: float | None
) -> None:
    """Restart the queries of one cause, and wait for all of them."""
    if start is not None:
        raise typer.BadParameter("it is for one query: name it", param_hint="--from")
    if (skip_record is None) == (failed_by is None):
        raise typer.BadParameter("name a query, or give one of --failed-by and --skip-record")
    body = {"failed_by": skip_record or failed_by, "skip_record": skip_record is not None}
    answer = client.call("POST", "/v1/queries:restart", body=body)
    names = answer["queries"]
    if not names:
        others = ", ".join(answer["other_causes"])
        rest = f"Queries have failed by {others}." if others else "No query has failed."
        stderr().print(printable(f"No query has failed by {body['failed_by']}. {rest}"), markup=False)
        raise typer.Exit(Exit.NOT_FOUND)
    shown = ", ".join(names)
    if timeout is not None:
        deadline = time.monotonic() + timeout
        for name in names:
            found = wait_for(client, name, waiting.ends_of("running"), max(0.0, deadline - time.monotonic()))
            _refuse_failure(name, "running", found)
    count = "1 query" if len(names) == 1 else f"{len(names)} queries"
    runs = "running again" if timeout is not None else "restarting"
    stderr().print(printable(f"{count} {runs}: {shown}."), markup=False)


@app.command()
def replace(
    context: typer.Context,
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Its statement; - = standard input.")],
) -> None:
    """Start the query's next version beside it, to take over when it has caught up."""
    answer = open_client(context).call("POST", path(name) + ":replace", body={"sql": read_text(file)})
    outcome = "needs none beside it" if answer["name"] == name else f"is to be replaced by {answer['name']}"
    stderr().print(printable(f"Query {name} {outcome}."), markup=False)


@app.command()
def rollback(context: typer.Context, name: Name) -> None:
    """Let the version that the last replacement took over from take over again."""
    answer = open_client(context).call("POST", path(name) + ":rollback")
    back = answer["name"] == name
    outcome = "is the version before again" if back else f"is to be replaced by {answer['name']}"
    stderr().print(printable(f"Query {name} {outcome}."), markup=False)


@app.command()
def stop(
    context: typer.Context,
    name: Name,
    savepoint: Annotated[
        str | None, typer.Option(metavar="NAME", help="Copy its checkpoint to a savepoint.")
    ] = None,
    wait: WaitOption = True,
    timeout: TimeoutOption = 120.0,
) -> None:
    """Stop the job; its checkpoint and its topic stay."""
    client = open_client(context)
    if savepoint is not None:
        client.call("POST", path(name) + ":savepoint", body={"name": savepoint})
    _desire(client, name, "stopped")
    _await_desired(client, name, "stopped", timeout if wait else None)


@app.command()
def start(
    context: typer.Context, name: Name, wait: WaitOption = True, timeout: TimeoutOption = 120.0
) -> None:
    """Start a stopped or failed job from its checkpoint."""
    client = open_client(context)
    query = _desire(client, name, "running")
    if query["status"]["state"] == "failed":
        # It was wanted running all along: that alone is no reason for another try.
        client.call("POST", path(name) + ":restart")
        if wait:
            _wait_for_new_attempt(client, name, query["status"]["job"], timeout)
        _tell_desired(name, "running", wait)
        return
    _await_desired(client, name, "running", timeout if wait else None)


@app.command()
def delete(
    context: typer.Context,
    name: Name,
    yes: YesOption = False,
    delete_entity: Annotated[bool, typer.Option(help="Also delete the topic it writes to.")] = False,
    wait: WaitOption = True,
    timeout: TimeoutOption = 120.0,
) -> None:
    """Stop and delete a query, its checkpoint and the stream it made. The topic stays unless asked."""
    confirm(f"Delete query {name}{' and its topic' if delete_entity else ''}?", yes)
    client = open_client(context)
    flags = {"delete_entity": "true" if delete_entity else None}
    stopping = client.call("DELETE", path(name), params=flags)
    if stopping is not None and wait:
        wait_for(client, name, (), timeout)
    stderr().print(f"Deleted query {name}.", markup=False)


def _place(start: str) -> dict[str, Any]:
    """The body of a restart from a place as it is written on the command line."""
    if start in ("earliest", "latest"):
        return {"from": start}
    if not start.lstrip().startswith("{"):
        return {"from": "timestamp", "timestamp": start}
    try:
        return {"from": "offsets", "offsets": json.loads(start)}
    except ValueError:
        raise typer.BadParameter("offsets are JSON", param_hint="--from") from None


def _desire(client: Client, name: str, state: str) -> Any:
    body = {"desired_state": state}
    return client.call("PATCH", path(name), body=body, content_type="application/merge-patch+json")


def _await_desired(client: Client, name: str, state: str, timeout: float | None) -> None:
    if timeout is not None:
        query = wait_for(client, name, waiting.ends_of(state), timeout)
        _refuse_failure(name, state, query)
    _tell_desired(name, state, timeout is not None)


def _tell_desired(name: str, state: str, waited: bool) -> None:
    stderr().print(printable(f"Query {name} is {state if waited else f'to be {state}'}."), markup=False)


def _wait_for_new_attempt(client: Client, name: str, before: dict[str, Any], timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while True:
        query = wait_for(client, name, waiting.ends_of("running"), max(0.0, deadline - time.monotonic()))
        job = query["status"]["job"] if query else {}
        if (
            query is None
            or query["status"]["state"] == "failed"
            or job.get("attempt") != before.get("attempt")
        ):
            _refuse_failure(name, "running", query)
            return
        if time.monotonic() > deadline:
            raise WaitTimeout(f"Query {name} has not restarted after {timeout:g} s.")
        time.sleep(0.2)


def _refuse_failure(name: str, wanted: str, query: dict[str, Any] | None) -> None:
    waiting.refuse_failure(_NOUN, name, wanted, query)
