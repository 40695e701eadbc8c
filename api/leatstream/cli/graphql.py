"""``leat graphql``: run a GraphQL document."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from leatstream.cli.output import write_json
from leatstream.cli.session import open_client


def graphql(
    context: typer.Context,
    document: Annotated[str, typer.Argument(help="A query or mutation; - reads standard input.")] = "",
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the document from a file.")] = None,
    variable: Annotated[
        list[str] | None,
        typer.Option(
            "--var", help="A variable as NAME=VALUE; the value is JSON, or else text.", metavar="N=V"
        ),
    ] = None,
    operation: Annotated[
        str | None, typer.Option(help="Which operation of the document to run.", metavar="NAME")
    ] = None,
) -> None:
    """Run a GraphQL query or mutation, and write its data as JSON."""
    text = file.read_text(encoding="utf-8") if file is not None else document
    text = sys.stdin.read() if text == "-" else text
    if not text.strip():
        raise typer.BadParameter("give a document, or --file", param_hint="DOCUMENT")
    body = {"query": text, "variables": dict(map(_variable, variable or ())), "operationName": operation}
    answer = open_client(context).call("POST", "/graphql", body=body)
    if answer.get("data") is not None:
        write_json(answer["data"])
    if answer.get("errors"):
        from leatstream.cli.client import ProblemAnswer

        raise ProblemAnswer(_problem(answer["errors"]))


def _variable(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"'{text}' is not NAME=VALUE", param_hint="--var")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _problem(errors: list[dict[str, Any]]) -> dict[str, Any]:
    """Errors of GraphQL as a problem document, which the command line knows how to show."""
    faults = [{"detail": one["message"], **one.get("extensions", {})} for one in errors]
    first = faults[0]
    return {
        "title": "The request was refused",
        "detail": first["detail"],
        "status": first.get("status"),
        "code": first.get("code"),
        "sqlstate": first.get("sqlstate"),
        "request_id": first.get("requestId"),
        "errors": faults,
    }
