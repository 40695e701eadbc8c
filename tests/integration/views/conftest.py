"""Both kinds of database that keep views: SQLite files, and a PostgreSQL server of the tests' own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from leatstream.dev.ports import free_ports
from leatstream.ports import ViewStore
from leatstream.views.stores import open_views


def _programs() -> Path | None:
    """Where ``initdb`` is: on PATH, or where Debian keeps it."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return folders[-1] if folders and (folders[-1] / "initdb").exists() else None


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """URL of a running server in a temporary directory of its own: pytest closes its own to other accounts."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's initdb is not on this machine")
    directory = Path(tempfile.mkdtemp(prefix="leat-postgresql-"))
    # The server refuses to run as root.
    account = "postgres" if os.geteuid() == 0 else None
    if account:
        shutil.chown(directory, account)
    data, (port,) = directory / "data", free_ports(1)
    subprocess.run(
        [
            programs / "initdb",
            "-D",
            data,
            "-U",
            "leat",
            "-A",
            "trust",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
        ],
        check=True,
        user=account,
        stdout=subprocess.DEVNULL,
        cwd=directory,
    )
    options = f"-p {port} -k {directory} -c listen_addresses=127.0.0.1 -c fsync=off"
    control = [programs / "pg_ctl", "-D", data, "-w"]
    subprocess.run(
        [*control, "-l", directory / "log", "-o", options, "start"],
        check=True,
        user=account,
        stdout=subprocess.DEVNULL,
        cwd=directory,
    )
    yield f"postgresql://leat@127.0.0.1:{port}/postgres"
    subprocess.run(
        [*control, "-m", "immediate", "stop"],
        check=True,
        user=account,
        stdout=subprocess.DEVNULL,
        cwd=directory,
    )
    shutil.rmtree(directory)


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ViewStore:
    """A view store of each kind."""
    if request.param == "sqlite":
        return open_views("sqlite:///catalog.db", tmp_path / "views")
    return open_views(request.getfixturevalue("postgresql"), tmp_path)
