"""``leat store test``; stores are nouns like others."""

from __future__ import annotations

import typer

from leatstream.cli.exits import Exit
from leatstream.cli.nouns import NOUNS, Name, make_app
from leatstream.cli.output import Output, write_object
from leatstream.cli.session import OutputOption, open_client

_NOUN = next(noun for noun in NOUNS if noun.name == "store")
app = make_app(_NOUN, about="List, show, test and delete stores.")


@app.command("test")
def connect_now(context: typer.Context, name: Name, output: OutputOption = Output.TABLE) -> None:
    """Connect to a store now, and show its state; exit status 1 if that fails."""
    found = open_client(context).call("POST", f"{_NOUN.path(name)}:test")
    write_object(found, output)
    if found["status"]["state"] != "ready":
        raise typer.Exit(Exit.FAILURE)
