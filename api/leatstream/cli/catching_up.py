"""``leat query wait``: for scripts that deploy, until queries run and have read what is there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leatstream.cli import waiting
from leatstream.cli.nouns import NOUNS
from leatstream.cli.output import printable, stderr
from leatstream.cli.session import open_client
from leatstream.cli.shell_names import object_names
from leatstream.cli.wait_line import WaitLine
from leatstream.cli.waiting import TimeoutOption, WaitTimeout
from leatstream.model.progress import known_lag

if TYPE_CHECKING:
    from leatstream.cli.client import Client

_NOUN = next(noun for noun in NOUNS if noun.name == "query")
_LOOK = 2.0  # seconds between two looks at the lag
_UNKNOWN = "it has not looked up the ends of its sources since"
_Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[QUERY]…", autocompletion=object_names, help="Without any: every query that is to run."
    ),
]
_MaxLag = Annotated[
    int | None,
    typer.Option(help="Wait also until no query has more records left to read than this.", min=0),
]


def wait(
    context: typer.Context, names: _Names = None, max_lag: _MaxLag = None, timeout: TimeoutOption = 300.0
) -> None:
    """Wait until queries run, and until they have caught up if --max-lag is given."""
    client = open_client(context)
    wanted = names or [
        item["name"] for item in client.items("/v1/queries") if item.get("desired_state") == "running"
    ]
    begun = time.monotonic()
    end = begun + timeout
    for name in wanted:
        found = waiting.wait_for(client, _NOUN, name, waiting.ends_of("running"), _left(end))
        waiting.refuse_failure(_NOUN, name, "running", found)
        said = "runs" if max_lag is None else _catch_up(client, name, max_lag, begun, end)
        stderr().print(printable(f"Query {name} {said}."), markup=False)


def _catch_up(client: Client, name: str, max_lag: int, begun: float, end: float) -> str:
    """Wait for the lag of one query; what to say of it then.

    Args:
        client: the server.
        name: of the query.
        max_lag: the most records that may be left to read.
        begun: when the wait was asked for; an older lag does not count.
        end: when the time is over.
    """
    with WaitLine(f"waiting for query {name} to catch up") as line:
        while True:
            since_begun = time.monotonic() - begun
            query = client.call("GET", _NOUN.path(name))
            state, metrics = query["status"]["state"], query["status"].get("metrics") or {}
            left, counts = known_lag(metrics), _counts(metrics, since_begun)
            if state == "completed":
                return "has completed"
            if state == "failed":
                waiting.refuse_failure(_NOUN, name, "running", query)
            if state == "running" and counts and left is None:
                return "runs; its sources do not report a lag"
            if state == "running" and counts and left is not None and left <= max_lag:
                return f"has caught up: {left} records are left to read"
            behind = f"{left:,} records are left to read" if counts else _UNKNOWN
            line.text = f"waiting for query {name} to catch up: {behind}"
            if not _left(end):
                raise WaitTimeout(f"Query {name} has not caught up in time: it is {state}, {behind}.")
            time.sleep(min(_LOOK, _left(end)))


def _counts(metrics: dict[str, Any], since_begun: float) -> bool:
    """Whether the lag was looked up after the wait began: one from before may be of another end of a source.

    Args:
        metrics: of the query.
        since_begun: seconds from the beginning of the wait until the query was asked for.
    """
    if not metrics.get("sources"):
        return False
    if "lag_age_seconds" not in metrics:  # a driver of an earlier release does not say
        return True
    age = metrics["lag_age_seconds"]
    return age is not None and age <= since_begun


def _left(end: float) -> float:
    return max(0.0, end - time.monotonic())
