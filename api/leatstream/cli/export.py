"""``leat export``: the catalog as code."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from leatstream.cli.output import stderr
from leatstream.cli.session import open_client


class Form(StrEnum):
    """Languages of an export."""

    SQL = "sql"
    HCL = "hcl"
    CDKTF = "cdktf"


def export(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]…",
            help="Objects, such as demo, demo.public, demo.public.pageviews or store:kafka; default: all.",
        ),
    ] = None,
    form: Annotated[
        Form, typer.Option("--format", help="sql, hcl for Terraform, or cdktf for its CDK in Python.")
    ] = Form.SQL,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--output-dir", "-o", metavar="DIR", help="Folder to write the files to; default: print them."
        ),
    ] = None,
) -> None:
    """Write objects of the catalog as SQL, as Terraform configuration with imports, or as a CDKTF program.

    Values of secrets are variables; no file holds one.
    """
    answer = open_client(context).call(
        "GET", "/v1/catalog:export", params={"format": form.value, "name": list(names or ())}
    )
    if directory is None:
        _print(answer["files"])
    else:
        _write(answer["files"], directory)
    for note in answer["notes"]:
        stderr().print(f"note: {note}", markup=False)
    if answer["variables"]:
        listed = ", ".join(answer["variables"])
        stderr().print(f"{len(answer['variables'])} values are left to you: {listed}", markup=False)


def _print(files: Sequence[dict[str, Any]]) -> None:
    for file in files:
        if len(files) > 1:
            stderr().print(f"{file['path']}:", markup=False, style="bold")
        if file["encoding"] == "text":
            typer.echo(file["content"], nl=not file["content"].endswith("\n"))
        else:
            stderr().print("It is no text; -o DIR writes it.", markup=False)


def _write(files: Sequence[dict[str, Any]], directory: Path) -> None:
    """Write every file, or none where one of them is there already.

    Raises:
        typer.BadParameter: a file is there, or a path leads elsewhere.
    """
    places = {directory / file["path"]: file for file in files}
    for place in places:
        if not place.resolve().is_relative_to(directory.resolve()):
            raise typer.BadParameter(f"the server names the file {place}, which is not in {directory}")
        if place.exists():
            raise typer.BadParameter(f"{place} exists; remove it, or name another folder")
    for place, file in places.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        text: str = file["content"]
        place.write_bytes(base64.b64decode(text) if file["encoding"] == "base64" else text.encode())
        stderr().print(f"Wrote {place}", markup=False)
