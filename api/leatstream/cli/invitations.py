"""``leat invitation``, and how ``leat login --invitation`` takes one."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from leatstream.cli.nouns import NOUNS, Name, make_app
from leatstream.cli.output import Output, printable, stderr, write_object
from leatstream.cli.session import OutputOption, Session, open_client
from leatstream.cli.sql import read_text

if TYPE_CHECKING:
    from leatstream.cli.connection import Connection

_NOUN = next(noun for noun in NOUNS if noun.name == "invitation")
_PAGE = "/ui/invitation"
app = make_app(_NOUN, about="List, show, create and delete invitations.")


@app.command()
def create(
    context: typer.Context,
    mail: Name,
    role: Annotated[list[str], typer.Option(help="A role that the user may act in.")],
    default_role: Annotated[str | None, typer.Option(help="Role of tokens that name none.")] = None,
    scope: Annotated[str, typer.Option(help="Of the user's tokens: read, write or admin.")] = "write",
    days: Annotated[int, typer.Option(help="Days until it ends.", min=1, max=30)] = 7,
    comment: Annotated[str | None, typer.Option(help="Free text, of the user.")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Invite a person, and print the link to pass on, which is not shown again."""
    client = open_client(context)
    body = {
        "roles": role,
        "default_role": default_role,
        "scope": scope,
        "lifetime_days": days,
        "comment": comment,
    }
    made = client.call("POST", _NOUN.path(mail), body=body)
    made["link"] = made["link"] or f"{client.connection.url}{_PAGE}#{made['value']}"
    if output is not Output.TABLE:
        write_object(made, output)
        return
    stderr().print(
        f"Invited {printable(made['mail'])}, roles {printable(', '.join(made['roles']))}, until "
        f"{made['expires_at']}. No mail is sent: pass this link on. It counts once, and is not shown again:",
        markup=False,
    )
    typer.echo(made["link"])


def take(context: typer.Context) -> None:
    """Take the invitation of a link that is typed or piped, and keep its token for later commands."""
    from leatstream.cli import sign_ins
    from leatstream.cli.client import Client

    url, value = _link()
    connection = _connection((context.find_object(Session) or Session()).url, url)
    client = Client(replace(connection, token=None))
    made = client.call("POST", "/v1/invitations:accept", body={"value": value})
    ends = datetime.fromisoformat(made["expires_at"])
    entry = sign_ins.entry_of({}, made["value"], ends.timestamp(), None)
    try:
        sign_ins.keep(connection.url, {**entry, "api_token": made["name"]})
    except Exception:
        # The invitation is over: without its value the token would be lost.
        typer.echo(made["value"])
        raise
    stderr().print(
        f"You are user {printable(made['account'])} of {connection.url}, role {printable(made['role'])}, "
        f"scope {made['scope']}. The token is kept on this machine until {ends:%Y-%m-%d}; "
        "leat api-token create makes others.",
        markup=False,
    )
    if connection.token is not None:
        stderr().print(f"The token of {connection.origin} is still used first.", markup=False)


def end(connection: Connection, entry: dict[str, Any]) -> None:
    """Revoke the token of an invitation, which nobody else has.

    Args:
        connection: to the server.
        entry: of the sign-in.
    """
    from leatstream.cli.client import Client, ProblemAnswer, Unreachable
    from leatstream.cli.nouns import account_name, flat

    client = Client(replace(connection, token=entry["token"], renew=None))
    try:
        client.call("DELETE", flat("tokens")(account_name(entry["api_token"])))
    except (ProblemAnswer, Unreachable) as error:
        stderr().print(f"The token is not revoked, and stays valid: {printable(str(error))}", markup=False)


def _link() -> tuple[str | None, str]:
    """The server and the value of a link, or the value alone; never an argument."""
    text = read_text(None)
    if text is None:
        text = str(typer.prompt("Link of the invitation", hide_input=True, err=True))
    text = text.strip()
    if "://" not in text:
        return None, text
    parts = urlsplit(text)
    if not parts.fragment or parts.path != _PAGE:
        raise typer.BadParameter("this is no link of an invitation", param_hint="--invitation")
    return f"{parts.scheme}://{parts.netloc}", parts.fragment


def _connection(named: str | None, linked: str | None) -> Connection:
    """The server of the link; one that is named elsewhere must be the same."""
    from leatstream.cli.connection import NoServer, find_connection

    if linked is None:
        return find_connection(named)
    try:
        found = find_connection(named)
    except NoServer:
        return find_connection(linked)
    if found.url != linked:
        raise NoServer(
            f"The link is of {printable(linked)}, but {found.origin} names {found.url}. "
            "Set the URL of the link, or none."
        )
    return found
