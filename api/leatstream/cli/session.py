"""What commands share: the options of the program as a whole, and the client made from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from leatstream.cli.output import Output

if TYPE_CHECKING:
    from leatstream.cli.client import Client


@dataclass(slots=True)
class Session:
    """What was asked for on the command line, for all commands.

    Attributes:
        url: the server, if named by the flag.
        output: form of results and, with ``json``, of errors.
    """

    url: str | None = None
    output: Output = Output.TABLE


def _note_output(context: typer.Context, value: Output) -> Output:
    session = context.find_object(Session)
    if session is not None:
        session.output = value
    return value


OutputOption = Annotated[
    Output,
    typer.Option(
        "--output", "-o", callback=_note_output, help="How to write the result; json is the API's own answer."
    ),
]

WideOption = Annotated[
    bool, typer.Option("--wide", help="Show every column and text in full; piped lists are wide.")
]


def open_client(context: typer.Context) -> Client:
    """The client for the server that the options, the environment or the running ``leat dev`` name.

    Raises:
        NoServer: nothing names one.
    """
    from leatstream.cli.client import Client
    from leatstream.cli.connection import find_connection
    from leatstream.cli.sign_ins import signed_in

    session = context.find_object(Session) or Session()
    return Client(signed_in(find_connection(session.url)))
