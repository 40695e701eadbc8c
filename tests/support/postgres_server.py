"""A PostgreSQL server of the tests' own, unprivileged, in a temporary directory."""

from __future__ import annotations

import contextlib
import os
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
    """Start a server; skips the test where PostgreSQL is not on the machine.

    Args:
        tls: certificate and key, PEM: then ``shop`` comes in over TLS only.
        settings: of postgresql.conf, such as ``max_replication_slots="2"``.
    """
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's initdb is not on this machine")
    # Not in pytest's own directory, which is closed to other accounts.
    directory = Path(tempfile.mkdtemp(prefix="leat-postgresql-"))
    # The server refuses to run as root.
    account = "postgres" if os.geteuid() == 0 else None
    if account:
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


def _programs() -> Path | None:
    """Where ``initdb`` is: on PATH, or where Debian keeps it."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return folders[-1] if folders and (folders[-1] / "initdb").exists() else None
