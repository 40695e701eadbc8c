"""``leat function-source apply``; function sources are nouns like others."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Annotated

import typer

from leatstream.cli.nouns import NOUNS, Name, make_app
from leatstream.cli.output import stderr
from leatstream.cli.session import open_client
from leatstream.cli.sql import read_text

_NOUN = next(noun for noun in NOUNS if noun.name == "function-source")
app = make_app(_NOUN, about="List, show, apply and delete function sources.")


@app.command("apply")
def apply(
    context: typer.Context,
    name: Name,
    file: Annotated[Path, typer.Option("--file", "-f", help="A .py or .jar file.")],
    restart: Annotated[
        bool,
        typer.Option("--restart/--no-restart", help="Restart the running queries that call its functions."),
    ] = True,
    comment: Annotated[str | None, typer.Option(help="Free text; left out = none.")] = None,
) -> None:
    """Create a function source, or give it the code of a file."""
    body = {"file": file.name, "content": _content(file), "comment": comment, "restart_queries": restart}
    open_client(context).call("PUT", _NOUN.path(name), body=body)
    stderr().print(f"Function source {name} has the code of {file.name}.", markup=False)


def _content(file: Path) -> str:
    if file.suffix.lower() != ".jar":
        return read_text(file) or ""
    try:
        return base64.b64encode(file.read_bytes()).decode()
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error}") from error
