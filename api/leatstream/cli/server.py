"""``leat server`` and ``capabilities``: which version runs, and what it can do with each kind of store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from leatstream.cli.output import Output, stderr, write_json, write_object, write_rows
from leatstream.cli.session import OutputOption, open_client

_NOT_FLAGS = ("kind", "built", "delivery", "properties", "verified_on", "unverified")


def capabilities(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Show what each kind of store can be used for."""
    answer = open_client(context).call("GET", "/v1/server/capabilities")
    items = answer["items"]
    # Whatever the server reports about a kind, so that nothing of its matrix is left out.
    names = [name for name in items[0] if name not in _NOT_FLAGS] if items else []
    if output is Output.JSON:
        write_json(answer)
    elif output is Output.TABLE:
        _write_table(items, names)
    else:
        head = ("kind", "built", *names, "delivery", "properties", "experimental")
        rows = [
            (
                item["kind"],
                *(_yes(item[name]) for name in ("built", *names)),
                *_lists(item),
                _yes(bool(item["unverified"])),
            )
            for item in items
        ]
        write_rows(head, rows, output)


def show_server(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Show the server's version and features."""
    answer = open_client(context).call("GET", "/v1/server")
    if output is Output.TABLE:
        # Those of each kind of store fill pages: leat capabilities shows them.
        answer = {name: value for name, value in answer.items() if name != "capabilities"}
    write_object(answer, output)


def open_console(
    context: typer.Context,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open it, or only print its address.")
    ] = True,
    docs: Annotated[bool, typer.Option("--docs", help="The API reference instead of the console.")] = False,
) -> None:
    """Print the address of the server's console or API reference, and open it in a browser."""
    import webbrowser

    # No token in the address: it would be in the browser's history and the server's log.
    address = open_client(context).connection.url + ("/docs" if docs else "/ui/")
    typer.echo(address)
    if browser and not webbrowser.open(address):
        stderr().print("No browser could be started here; open the address yourself.")


def _write_table(items: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """A column for each kind that can be used, as there are more capabilities than kinds."""
    built = [item for item in items if item["built"]]
    rows = [(name, *(_yes(item[name]) for item in built)) for name in names]
    for row, name in enumerate(("delivery", "properties")):
        rows.append((name, *(_lists(item)[row] for item in built)))
    rows.append(("experimental", *(_yes(bool(item["unverified"])) for item in built)))
    write_rows(("", *(item["kind"] for item in built)), rows, Output.TABLE)
    missing = ", ".join(item["kind"] for item in items if not item["built"])
    if missing:
        stderr().print(f"Not built yet, and refused by name: {missing}.")


def _yes(value: bool) -> str:
    return "yes" if value else ""


def _lists(item: Mapping[str, Any]) -> tuple[str, str]:
    return ", ".join(one["name"] for one in item["delivery"]), ", ".join(item["properties"])
