"""``leat admin add-key|rotate-key|remove-key``: the keys that encrypt stored secrets, while servers run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leatstream.cli.connection import DATA_DIRECTORY
from leatstream.cli.output import Output, write_object
from leatstream.cli.session import OutputOption

if TYPE_CHECKING:
    from leatstream.settings import Settings
    from leatstream.storage.key_rotation import Rotation
    from leatstream.storage.unit_of_work import SqlUnits

_DataDir = Annotated[Path, typer.Option(help="Data directory of the server.", envvar="LEATSTREAM_DATA_DIR")]
_KeyId = Annotated[str, typer.Argument(metavar="KEY", help="Id of a key of the key file.")]


def add_key(data_dir: _DataDir = Path(DATA_DIRECTORY)) -> None:
    """Add a new key to the key file, which is not in use yet, and print its id."""
    from leatstream.storage import key_file

    path = _settings(data_dir).keys
    typer.echo(key_file.add_key(path))
    typer.echo(f"Added to {path}. Give this file to every server, then run: leat admin rotate-key", err=True)


def rotate_key(
    key: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="Id of the key; by default the one added last.")
    ] = None,
    data_dir: _DataDir = Path(DATA_DIRECTORY),
    output: OutputOption = Output.TABLE,
) -> None:
    """Encrypt new secrets with a key, and wrap every stored one under it. Servers may run."""
    from leatstream.storage import key_file
    from leatstream.storage.key_rotation import refuse_unreadable, rotate
    from leatstream.storage.secret_box import KeyRingBox

    settings = _settings(data_dir)
    path = settings.keys
    ring = key_file.read_key_ring(path)
    new = key or ring.newest
    key_file.require_key(ring, new, path)
    box = KeyRingBox(replace(ring, primary=new))
    with _catalog(settings) as units:
        unowned = refuse_unreadable(units, box)
        key_file.use_key(path, new)  # servers encrypt with it from now on
        done = rotate(units, box, unowned)
    counts = {"key": done.key, "wrapped": done.wrapped, "already_wrapped": done.present}
    write_object({**counts, "unowned": done.unowned, "left": done.left}, output)
    _advise(done, [one for one in box.ring.keys if one != done.key])
    if done.left:
        raise typer.Exit(1)


def remove_key(key: _KeyId, data_dir: _DataDir = Path(DATA_DIRECTORY)) -> None:
    """Remove a key from the key file, unless a stored secret needs it."""
    from leatstream.storage import key_file
    from leatstream.storage.key_rotation import refuse_used

    settings = _settings(data_dir)
    with _catalog(settings) as units:
        refuse_used(units, key)
        key_file.remove_key(settings.keys, key)
    typer.echo(
        f"Removed from {settings.keys}. Keep a copy for backups of the catalog that need it.", err=True
    )


def _advise(done: Rotation, others: list[str]) -> None:
    if done.left:
        typer.echo(
            f"Servers have encrypted values with {', '.join(done.left)} meanwhile. Give every server this "
            "key file, and run the command again.",
            err=True,
        )
    elif others:
        commands = ", ".join(f"leat admin remove-key {one}" for one in others)
        typer.echo(f"No stored value needs another key. The others may be removed: {commands}", err=True)


def _settings(data_dir: Path) -> Settings:
    from leatstream.cli.serving import read_settings, warn_of_unknown

    warn_of_unknown()  # a misspelt LEATSTREAM_KEYS_FILE means another file
    return read_settings(data_dir=data_dir)


@contextmanager
def _catalog(settings: Settings) -> Iterator[SqlUnits]:
    """The catalog, which servers may be using."""
    from leatstream.storage.arrival import await_database
    from leatstream.storage.catalog_check import require_catalog
    from leatstream.storage.unit_of_work import open_units

    await_database(settings.catalog, 0)
    require_catalog(settings.catalog)
    units = open_units(settings.catalog)
    try:
        yield units
    finally:
        units.close()
