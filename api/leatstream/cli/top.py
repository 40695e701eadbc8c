"""``leat query top``: what every query does now, refreshed until Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from leatstream.cli.output import Output, list_table, stdout, write_items, write_list
from leatstream.cli.session import OutputOption, WideOption, open_client
from leatstream.model.progress import known_lag

if TYPE_CHECKING:
    from leatstream.cli.client import Client

_HEADS = ("name", "state", "since", "in/s", "out/s", "lag", "restarts", "message")
# A query that runs and makes no progress is in trouble too.
_STILL = "still"
_FIRST = ("failed", _STILL, "lost", "pending", "starting")


def top(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Show it once and exit, as in a pipe.")] = False,
    interval: Annotated[
        float, typer.Option(help="Seconds between two looks.", min=0.5, max=3600, metavar="SECONDS")
    ] = 2.0,
    output: OutputOption = Output.TABLE,
    wide: WideOption = False,
) -> None:
    """Show state, rows per second and lag of every query, again and again until Ctrl-C."""
    client = open_client(context)
    if once or output is not Output.TABLE or not stdout().is_terminal:
        items = client.items("/v1/queries")
        if output in (Output.JSON, Output.NDJSON):
            write_items({"items": items, "next_page_token": None}, (), output)
        else:
            write_list(_HEADS, figures(items), output, wide=wide)
        return
    _watch(client, interval, wide=wide)


def _watch(client: Client, interval: float, *, wide: bool) -> None:
    from leatstream.cli.client import Unreachable
    from leatstream.errors import IdentityError

    shown: list[tuple[Any, ...]] = []
    try:
        with Live(console=stdout(), auto_refresh=False, transient=False) as live:
            while True:
                about = f"{client.connection.url}, every {interval:g} s; Ctrl-C ends"
                try:
                    shown = figures(client.items("/v1/queries"))
                # A server that starts again is no reason to end, nor an issuer that renews no token for now.
                except (Unreachable, IdentityError) as error:
                    about = f"{error}; trying again"
                live.update(Group(Text(about, "dim"), list_table(_HEADS, shown, wide=wide)), refresh=True)
                time.sleep(interval)
    except KeyboardInterrupt:
        return


def figures(items: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """A row for each query, those in trouble first."""
    return [_row(item) for item in sorted(items, key=_urgency)]


def _urgency(item: Mapping[str, Any]) -> tuple[int, str]:
    status = item["status"]
    stands = status["state"] == "running" and (status.get("metrics") or {}).get("waits_for")
    state = _STILL if stands else status["state"]
    return _FIRST.index(state) if state in _FIRST else len(_FIRST), item["name"]


def _row(item: Mapping[str, Any]) -> tuple[Any, ...]:
    status = item["status"]
    # What a job that has ended reported last is not what happens now.
    metrics = status.get("metrics") or {} if status["state"] == "running" else {}
    return (
        item["name"],
        status["state"],
        status.get("since"),
        _rate(metrics.get("input_rows_per_second")),
        _rate(metrics.get("output_rows_per_second")),
        known_lag(metrics),
        status.get("restarts"),
        _note(status),
    )


def _note(status: Mapping[str, Any]) -> str | None:
    """What the state is due to; the last failure, which is kept for a while, only where it is that."""
    if status["state"] not in ("failed", "lost"):
        return status.get("message")
    return status.get("message") or (status.get("error") or {}).get("detail")


def _rate(value: float | None) -> str | None:
    return None if value is None else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"
