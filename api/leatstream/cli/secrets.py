"""``leat secret create`` and ``apply``; secrets are nouns like others."""

from __future__ import annotations

from typing import Annotated

import typer

from leatstream.cli.nouns import NOUNS, Name, make_app
from leatstream.cli.output import Output, write_object
from leatstream.cli.session import OutputOption, open_client
from leatstream.cli.sql import read_text

_NOUN = next(noun for noun in NOUNS if noun.name == "secret")
_NEW = {"If-None-Match": "*"}
app = make_app(_NOUN, about="List, show, create, apply and delete secrets.")


@app.command()
def create(
    context: typer.Context,
    name: Name,
    reference: Annotated[
        str | None,
        typer.Option(
            help="Where the value is outside the catalog, such as secret://vault/kv/leat/kafka#password."
        ),
    ] = None,
    comment: Annotated[str | None, typer.Option(help="Free text.")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create a secret by reference, or with the value that is typed or sent to standard input."""
    body = {"reference": reference, "comment": comment}
    if reference is None:
        body["value"] = _value()
    write_object(open_client(context).call("PUT", _NOUN.path(name), body=body, headers=_NEW), output)


@app.command("apply")
def apply_now(
    context: typer.Context,
    name: Name,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; only show what would start again.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Bring a rotated value to what uses it: stores connect again, running queries start again."""
    params = {"dry_run": "true"} if dry_run else None
    write_object(open_client(context).call("POST", f"{_NOUN.path(name)}:apply", params=params), output)


def _value() -> str:
    """The value; never an argument, which every user of the machine can read."""
    text = read_text(None)
    if text is None:
        return str(typer.prompt("Value", hide_input=True, err=True))
    return text.removesuffix("\n")
