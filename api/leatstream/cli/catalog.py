"""``leat catalog``: looks after the catalog's schema, on the catalog itself and not through a server."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Look after the catalog while no server works on it.")


@app.callback()
def _root() -> None:
    """Keeps `migrate` a command of its own: typer would fold a single command into its parent."""


def _known_form(to: str) -> str:
    # `base` is no schema but the loss of all, and steps to and fro are not worth a mistake.
    if re.fullmatch(r"head|r\d{4}", to) is None:
        raise typer.BadParameter("give a schema, such as r0033, or head")
    return to


@app.command()
def migrate(
    to: Annotated[
        str, typer.Option(metavar="REVISION", callback=_known_form, help="The schema; head is the newest.")
    ] = "head",
    new: Annotated[
        bool, typer.Option("--new", help="Make an empty catalog where one is lost: all it held is lost too.")
    ] = False,
) -> None:
    """Bring the catalog of LEATSTREAM_CATALOG_URL to a schema; an older one loses what it has no room for."""
    from leatstream.cli.serving import read_settings, warn_of_unknown
    from leatstream.storage import migrate as schemas
    from leatstream.storage.arrival import await_database
    from leatstream.storage.catalog_check import check_catalog
    from leatstream.storage.sharing import hold, refuse_living_servers

    settings = read_settings()
    warn_of_unknown()  # a misspelt LEATSTREAM_CATALOG_URL means another catalog
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with ExitStack() as held:
        for lock in hold(settings.data_dir.resolve(), settings.catalog):
            held.callback(lock.close)
        await_database(settings.catalog, 0)
        refuse_living_servers(settings.catalog, settings.lease_seconds)
        data_dir = settings.data_dir.resolve()
        check_catalog(settings.catalog, data_dir, settings.checkpoints, new=new)
        before = schemas.revision(settings.catalog)
        schemas.migrate(settings.catalog, to)
        typer.echo(f"{before} -> {schemas.revision(settings.catalog)}")
