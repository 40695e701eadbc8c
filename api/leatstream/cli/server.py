"""``leat capabilities``: what the server can do with each kind of store."""

from __future__ import annotations

import typer

from leatstream.cli.output import Output, write_json, write_rows
from leatstream.cli.session import OutputOption, open_client

_FLAGS = ("source", "sink", "create_as", "cdc", "view", "print_records", "insert_values", "realtime")


def capabilities(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Show what each kind of store can be used for."""
    items = open_client(context).call("GET", "/v1/server/capabilities")["items"]
    if output is Output.JSON:
        write_json(items)
        return
    rows = [
        (
            item["kind"],
            *("yes" if item[flag] else "" for flag in _FLAGS),
            ", ".join(one["name"] for one in item["delivery"]) if item["built"] else "not built yet",
        )
        for item in items
    ]
    write_rows(("kind", *_FLAGS, "delivery"), rows, output)
