"""``leat login`` and ``leat logout``: sign in with the identity provider that the server names."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from leatstream.cli.output import printable, stderr
from leatstream.cli.session import Session

if TYPE_CHECKING:
    from leatstream.cli.connection import Connection
    from leatstream.identity.provider import Provider
    from leatstream.ports import Tokens

_WAIT = 300.0  # seconds that a person has in the browser


def login(
    context: typer.Context,
    device: Annotated[
        bool, typer.Option("--device", help="Enter a code in a browser on any machine.")
    ] = False,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the address, or only print it.")
    ] = True,
    invitation: Annotated[
        bool,
        typer.Option("--invitation", help="Take an invitation: asks for its link, or reads it from a pipe."),
    ] = False,
    port: Annotated[
        int, typer.Option(help="Port of the redirect to this machine; 0 picks a free one.", min=0, max=65535)
    ] = 0,
) -> None:
    """Sign in to the server with your identity provider or an invitation, and keep the token here."""
    if invitation:
        from leatstream.cli.invitations import take

        take(context)
        return
    from leatstream.cli import sign_ins
    from leatstream.cli.client import Client
    from leatstream.identity.provider import Provider

    connection = _connection(context)
    sign_in = Client(replace(connection, token=None)).call("GET", "/v1/sign-in")
    provider = Provider(sign_in)
    tokens = provider.by_device(_show_code) if device else _by_redirect(provider, port, browser)
    # Kept only once the server has accepted it.
    me = Client(replace(connection, token=tokens.bearer)).call("GET", "/v1/me")
    entry = sign_ins.entry_of(sign_in, tokens.bearer, tokens.expires_at, tokens.refresh)
    sign_ins.keep(connection.url, entry)
    stderr().print(
        f"Signed in to {connection.url} as {printable(me['name'])}, role {me['role']}, scope {me['scope']}.",
        markup=False,
    )
    if tokens.refresh is None:
        until = time.strftime("%H:%M", time.localtime(tokens.expires_at))
        stderr().print(f"The provider gives no refresh token, so sign in again after {until}.", markup=False)
    if connection.token is not None:
        stderr().print(f"The token of {connection.origin} is still used first.", markup=False)


def logout(context: typer.Context) -> None:
    """Forget the token of ``leat login`` for this server, and end the sign-in at the provider."""
    from leatstream.cli import sign_ins
    from leatstream.errors import LeatstreamError
    from leatstream.identity.provider import Provider

    connection = _connection(context)
    url = connection.url
    entry = sign_ins.find(url)
    if entry is None:
        stderr().print(f"You are not signed in to {url}.", markup=False)
        return
    sign_ins.keep(url, None)
    stderr().print(f"Signed out of {url}.", markup=False)
    if entry.get("api_token"):
        from leatstream.cli.invitations import end

        end(connection, entry)
    if entry.get("refresh_token"):
        try:
            Provider(entry["sign_in"]).revoke(entry["refresh_token"])
        except LeatstreamError as error:
            stderr().print(
                f"The provider does not answer, so its refresh token stays valid: {printable(error.detail)}",
                markup=False,
            )


def _connection(context: typer.Context) -> Connection:
    from leatstream.cli.connection import find_connection

    return find_connection((context.find_object(Session) or Session()).url)


def _show_code(address: str, code: str) -> None:
    stderr().print(f"Open {printable(address)} and enter the code {printable(code)}.", markup=False)


def _by_redirect(provider: Provider, port: int, browser: bool) -> Tokens:
    import webbrowser

    from leatstream.cli.redirect import Redirect

    with Redirect(port, provider.issuer) as redirect:

        def visit(address: str, state: str) -> str:
            stderr().print(f"Sign in at {printable(address)}", markup=False, soft_wrap=True)
            if browser and not webbrowser.open(address):
                stderr().print("No browser could be started; open the address, or use leat login --device.")
            return redirect.wait(state, _WAIT)

        return provider.by_redirect(redirect.uri, visit)
