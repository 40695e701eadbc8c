"""``leat store apply`` and ``leat store test``; stores are nouns like others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from leatstream.cli.exits import Exit
from leatstream.cli.nouns import NOUNS, Name, make_app
from leatstream.cli.output import Output, stderr, write_object
from leatstream.cli.session import OutputOption, open_client
from leatstream.cli.sql import require_text

_NOUN = next(noun for noun in NOUNS if noun.name == "store")
app = make_app(_NOUN, about="List, show, apply, test and delete stores.")


@app.command("apply")
def apply(
    context: typer.Context,
    name: Name,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Its settings, as JSON; default standard input.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create or replace a store, and show its state; a secret that is left out stays as it is stored."""
    body = _settings(file)
    found = open_client(context).call("PUT", _NOUN.path(name), body=body)
    write_object(found, output)
    if found["status"]["state"] != "ready":
        stderr().print(f"warning: Store {name} is kept, but cannot be used yet.", markup=False)


def _settings(file: Path | None) -> dict[str, Any]:
    text = require_text(file)
    source = "standard input" if file is None or str(file) == "-" else str(file)
    try:
        body = json.loads(text)
    except ValueError as error:
        # Its message names a place, and quotes nothing of the text, which may hold a secret.
        raise typer.BadParameter(f"{source} is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise typer.BadParameter(f'{source} holds no JSON object, such as {{"kafka": {{…}}}}')
    return body


@app.command("test")
def connect_now(
    context: typer.Context,
    name: Name,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="Settings to connect with, as JSON or - for standard input."),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Connect to a store now, and show its state; exit status 1 if that fails.

    With --file the settings are those of the file, and nothing is kept: the store need not exist. Of one that
    exists, secrets that the file leaves out are those that are stored.
    """
    client = open_client(context)
    if file is None:
        found = client.call("POST", f"{_NOUN.path(name)}:test")
    else:
        params = {"dry_run": "true"}
        found = client.call("PUT", _NOUN.path(name), params=params, body=_settings(file))
    write_object(found, output)
    if found["status"]["state"] != "ready":
        raise typer.Exit(Exit.FAILURE)
