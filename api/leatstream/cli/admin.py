"""``leat admin``: what is done on the server's machine, with the files of its data directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leatstream.cli import keys
from leatstream.cli.connection import DATA_DIRECTORY
from leatstream.cli.output import Output
from leatstream.cli.session import OutputOption

if TYPE_CHECKING:
    from leatstream.cli.client import Client

app = typer.Typer(no_args_is_help=True, help="Administer a server on its own machine.")
app.command("add-key")(keys.add_key)
app.command("rotate-key")(keys.rotate_key)
app.command("remove-key")(keys.remove_key)
_ROLE = "orgadmin"


@app.command()
def bootstrap(
    user: Annotated[str, typer.Argument(metavar="USER", help="Exact name, such as an e-mail address.")],
    data_dir: Annotated[
        Path, typer.Option(help="Data directory of the server.", envvar="LEATSTREAM_DATA_DIR")
    ] = Path(DATA_DIRECTORY),
    days: Annotated[int, typer.Option(help="Days until its token ends.", min=1, max=3650)] = 90,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make the first user with the role orgadmin, once, and print its token.

    The server must run. The command uses the administrator's token from the server's data directory.
    """
    from leatstream.cli.access import show_new
    from leatstream.cli.client import Client, segment
    from leatstream.cli.connection import Connection
    from leatstream.model.names import quote

    url, token = (_read(data_dir / name) for name in ("api.url", "token"))
    client = Client(Connection(url, token, str(data_dir / "api.url")))
    _refuse_second(client, user)
    name = segment(quote(user))
    body = {"roles": [_ROLE], "default_role": _ROLE, "comment": "Made by leat admin bootstrap"}
    client.call("PUT", f"/v1/users/{name}", body=body)
    made = {"account": user, "role": _ROLE, "scope": "admin", "lifetime_days": days}
    show_new(client.call("POST", f"/v1/tokens/{segment(quote(f'{user}_first'))}", body=made), output)


def _refuse_second(client: Client, user: str) -> None:
    """CatalogError if there is an orgadmin already, other than this user before it got its token."""
    from leatstream.errors import CatalogError
    from leatstream.model.names import quote

    users = {one["name"]: one.get("roles") or () for one in client.items("/v1/users")}
    have_tokens = {one["account"] for one in client.items("/v1/tokens")}
    # An attempt that was cut off has made the user alone.
    first = next(
        (name for name in users if _ROLE in users[name] and (name != user or name in have_tokens)), None
    )
    if first is not None:
        raise CatalogError(
            "already-exists",
            f"User {quote(first)} has the role {_ROLE} already.",
            hint="Let that user create others, or use the administrator's token.",
        )
    if user in users and _ROLE not in users[user]:
        raise CatalogError(
            "already-exists",
            f"User {quote(user)} exists already.",
            hint=f"Run GRANT ROLE {_ROLE} TO USER {quote(user)} with the administrator's token.",
        )


def _read(path: Path) -> str:
    from leatstream.cli.connection import NoServer
    from leatstream.cli.own_files import open_own

    try:
        with os.fdopen(open_own(path, os.O_RDONLY), encoding="utf-8") as file:
            return file.read().strip()
    except OSError as error:
        raise NoServer(
            f"{path} cannot be read: {error.strerror}. Run this on the server's machine, as the server's "
            "account, and name its data directory with --data-dir."
        ) from error
