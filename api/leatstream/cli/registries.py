"""``leat schema-registry test``, ``subjects``, ``versions`` and ``subject``; registries are nouns."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from leatstream.cli.exits import Exit
from leatstream.cli.nouns import NOUNS, Name, make_app
from leatstream.cli.output import Output, printable, write_items, write_object
from leatstream.cli.session import OutputOption, open_client

_NOUN = next(noun for noun in NOUNS if noun.name == "schema-registry")
app = make_app(_NOUN, about="List, show, test and delete schema registries, and show their schemas.")

Subject = Annotated[str, typer.Argument(metavar="SUBJECT", help="Its name in the registry, exact.")]


@app.command("test")
def connect_now(context: typer.Context, name: Name, output: OutputOption = Output.TABLE) -> None:
    """Ask a schema registry now, with its credentials; exit status 1 if it does not answer."""
    found = open_client(context).call("POST", f"{_NOUN.path(name)}:test")
    write_object(found, output)
    if not found["ready"]:
        raise typer.Exit(Exit.FAILURE)


@app.command()
def subjects(
    context: typer.Context,
    name: Name,
    q: Annotated[str | None, typer.Option("--q", help="Part of the name, in any case.")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the subjects of a schema registry."""
    found = open_client(context).items(f"{_NOUN.path(name)}/subjects", {"q": q})
    write_items({"items": found, "next_page_token": None}, ("name",), output)


@app.command()
def versions(
    context: typer.Context, name: Name, subject: Subject, output: OutputOption = Output.TABLE
) -> None:
    """List the versions of a subject, the oldest first."""
    found = open_client(context).items(f"{_subject_path(name, subject)}/versions")
    write_items({"items": found, "next_page_token": None}, ("version",), output)


@app.command("subject")
def show_subject(
    context: typer.Context,
    name: Name,
    subject: Subject,
    version: Annotated[str, typer.Option(help="Number of the version.")] = "latest",
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the schema of a subject: the newest version, or another one."""
    from leatstream.cli.client import segment

    path = f"{_subject_path(name, subject)}/versions/{segment(version)}"
    found = open_client(context).call("GET", path)
    if output is not Output.TABLE:
        write_object(found, output)
        return
    write_object({key: value for key, value in found.items() if key != "text"}, output)
    sys.stdout.write(f"\n{printable(found['text'])}\n")


def _subject_path(name: str, subject: str) -> str:
    from leatstream.cli.client import segment

    return f"{_NOUN.path(name)}/subjects/{segment(subject)}"
