"""A Snowflake account of the tests' own: fakesnow behind a login, in an environment of its own.

fakesnow pins another DuckDB and another sqlglot than the project has: ``make test`` builds ``.venv/fakesnow`` from
``requirements-fakesnow.lock``, and the server is a process of that interpreter.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from deadlines import patient

from leatstream.dev.ports import free_ports

PASSWORD = "correct horse"
_STARTS = 60.0  # seconds


def new_key() -> rsa.RSAPrivateKey:
    """A key pair that no account knows."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem(key: rsa.RSAPrivateKey, passphrase: str | None = None) -> str:
    """A private key as its owner has it."""
    lock: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase is not None:
        lock = serialization.BestAvailableEncryption(passphrase.encode())
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock).decode()


@dataclass(frozen=True, slots=True)
class SnowflakeServer:
    """A running account ``acme-x1`` with database SHOP; user LEAT logs in by ``key`` or with PASSWORD."""

    port: int
    key: rsa.RSAPrivateKey

    def config(self, **more: Any) -> dict[str, Any]:
        """Settings of a store over database SHOP."""
        settings = {"account": "acme-x1", "host": f"http://127.0.0.1:{self.port}", "username": "leat"}
        return settings | {"role": "LOADER", "warehouse": "WH", "database": "shop"} | more

    @property
    def secrets(self) -> dict[str, str]:
        """The secrets of such a store."""
        return {"private_key": pem(self.key)}

    def connect(self) -> Any:
        """A connection of the account's owner, as the client library makes it."""
        import snowflake.connector

        return snowflake.connector.connect(
            account="acme-x1",
            user="LEAT",
            password=PASSWORD,
            host="127.0.0.1",
            port=self.port,
            protocol="http",
            database="SHOP",
            schema="PUBLIC",
            login_timeout=round(patient(10)),
            network_timeout=round(patient(30)),
            session_parameters={"CLIENT_OUT_OF_BAND_TELEMETRY_ENABLED": False},
        )

    def run(self, statement: str) -> list[Any]:
        """Run a statement as the account's owner."""
        with contextlib.closing(self.connect()) as connection:
            rows: list[Any] = connection.cursor().execute(statement).fetchall()
        return rows


@contextlib.contextmanager
def snowflake_server() -> Iterator[SnowflakeServer]:
    """Start an account; its process ends with the context."""
    python = Path(sys.prefix) / "fakesnow" / "bin" / "python"
    if not python.exists():
        pytest.fail("fakesnow is not installed: make .venv/.fakesnow")
    (port,) = free_ports(1)
    key = new_key()
    with tempfile.TemporaryDirectory(prefix="leat-snowflake-") as folder:
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        (Path(folder) / "key.pub").write_bytes(public)
        gate = Path(__file__).with_name("snowflake_gate.py")
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [python, gate, str(port), Path(folder) / "key.pub"],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
            )
        try:
            _wait(process, port, log)
            server = SnowflakeServer(port, key)
            for statement in (
                "CREATE DATABASE IF NOT EXISTS SHOP",
                "CREATE SCHEMA IF NOT EXISTS SHOP.PUBLIC",
            ):
                server.run(statement)
            yield server
        finally:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + patient(_STARTS)
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(httpx2.HTTPError):
            httpx2.get(f"http://127.0.0.1:{port}/", timeout=1)
            return
        time.sleep(0.05)
    pytest.fail(f"fakesnow does not start: {log.read_text()[-2000:]}")
