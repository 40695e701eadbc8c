"""``leat driver list``: the processes that run queries."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from leatstream.cli.output import Output, write_items
from leatstream.cli.session import OutputOption, WideOption, open_client

app = typer.Typer(no_args_is_help=True, help="List drivers, the Spark processes that run queries.")
# The id is long, and says less to people than where the process runs.
_COLUMNS = (
    *("role", "state", "queries=runs", "memory", "heap", "since", "heard_at", "place", "pid", "id"),
    *("cpu_s=cpu_seconds_total", "launcher", "server", "created_at"),
)
_MIB = 1 << 20


@app.callback()
def _root() -> None:
    """A group, though it has one command so far."""


@app.command("list")
def list_drivers(
    context: typer.Context,
    state: Annotated[str | None, typer.Option(help="Only drivers in this state.")] = None,
    role: Annotated[str | None, typer.Option(help="Only drivers of this role.")] = None,
    output: OutputOption = Output.TABLE,
    wide: WideOption = False,
) -> None:
    """List the drivers of all servers: what they do, run and use."""
    found = open_client(context).items("/v1/drivers", {"state": state, "role": role})
    if output in (Output.TABLE, Output.CSV):
        found = [_shown(one) for one in found]
    write_items({"items": found, "next_page_token": None}, _COLUMNS, output, wide=wide)


def _shown(driver: dict[str, Any]) -> dict[str, Any]:
    """With its queries by name, and memory as people read it."""
    runs = [query["name"] for query in driver["queries"]] + ["(SELECT)"] * driver["selects"]
    heap, limit = (_mib(driver[name]) or "?" for name in ("heap_bytes", "heap_limit_bytes"))
    return driver | {
        "runs": runs,
        "memory": _mib(driver["memory_bytes"]),
        "heap": f"{heap.removesuffix('M')}/{limit}",
        "place": driver["pod"] or driver["host"],
    }


def _mib(amount: int | None) -> str | None:
    return f"{amount / _MIB:.0f}M" if amount is not None else None
