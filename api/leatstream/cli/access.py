"""``leat api-token`` and ``whoami``; roles and accounts are nouns like others."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from leatstream.cli.nouns import NOUNS, Name, make_app
from leatstream.cli.output import Output, stderr, write_object
from leatstream.cli.session import OutputOption, open_client

_NOUN = next(noun for noun in NOUNS if noun.name == "api-token")
app = make_app(_NOUN)


def show_new(made: dict[str, Any], output: Output) -> None:
    """Write a new token; in a table only its value is written to standard output."""
    if output is not Output.TABLE:
        write_object(made, output)
        return
    # So that a script can keep it.
    stderr().print(
        f"Token {made['name']} of {made['account']}, role {made['role']}, scope {made['scope']}, "
        f"until {made['expires_at'] or 'it is revoked'}. Its value is not shown again:",
        markup=False,
    )
    typer.echo(made["value"])


@app.command()
def create(
    context: typer.Context,
    name: Name,
    account: Annotated[str | None, typer.Option(help="User or service account; else your own.")] = None,
    role: Annotated[str | None, typer.Option(help="Role; else the account's default role.")] = None,
    scope: Annotated[str, typer.Option(help="read, write or admin.")] = "write",
    days: Annotated[int, typer.Option(help="Days until it ends.", min=1, max=3650)] = 90,
    comment: Annotated[str | None, typer.Option(help="Free text.")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create a token and print its value, which is not shown again."""
    body = {"account": account, "role": role, "scope": scope, "lifetime_days": days, "comment": comment}
    show_new(open_client(context).call("POST", _NOUN.path(name), body=body), output)


@app.command()
def rotate(
    context: typer.Context,
    name: Name,
    grace_minutes: Annotated[
        int, typer.Option(help="Minutes that the old value is still accepted.", min=0, max=10080)
    ] = 1440,
    output: OutputOption = Output.TABLE,
) -> None:
    """Give a token a new value and print it."""
    path = f"{_NOUN.path(name)}:rotate"
    show_new(open_client(context).call("POST", path, body={"grace_minutes": grace_minutes}), output)


def whoami(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Show your account, its role and what it may do in the organization."""
    write_object(open_client(context).call("GET", "/v1/me"), output)
