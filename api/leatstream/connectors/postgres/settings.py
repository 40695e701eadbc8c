"""A PostgreSQL store's settings, and the connection they make.

The same connection serves the admin half and the Spark half, there inside Spark's Python workers. libpq would
also read the environment and files of the account. None of that is let in, so that a store means the same
everywhere.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import ssl
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_core import PydanticCustomError

from leatstream.connectors.setting_values import (
    HOST_PATTERN,
    certificate_checked,
    host_and_port,
    host_checked,
    password_checked,
)
from leatstream.connectors.settings import NAME_PATTERN, Api, Connects, Receives, Secret, Sql, StoreSettings

if TYPE_CHECKING:
    import psycopg

_AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
# Keeps libpq from the files of the account: it passes over what cannot be there. An empty one it would read.
_NO_FILE = os.path.join(os.devnull, "none")
_LONGEST = 63  # bytes: what PostgreSQL keeps of a name


class PostgresConfig(StoreSettings):
    """A database of a PostgreSQL server."""

    schema_name: ClassVar[str] = "Postgres"
    example: ClassVar[Mapping[str, Any]] = {"host": "db.example.com", "database": "shop", "username": "leat"}

    host: Annotated[str, Connects(), Api(min_length=1, max_length=255, pattern=HOST_PATTERN)] = Field(
        description="Host name or address of the server.", examples=["db.example.com"]
    )
    port: Annotated[int, Receives()] = Field(5432, ge=1, le=65535, description="Port; default 5432.")
    database: Annotated[str, Api(min_length=1, max_length=63, pattern=NAME_PATTERN)] = Field(
        description="Name of the database."
    )
    username: Annotated[
        str,
        Sql("postgres.username", example="'postgres.username' = '…'"),
        Api(min_length=1, max_length=63, pattern=NAME_PATTERN),
    ] = Field(description="User name.")
    ssl_mode: Annotated[Literal["disable", "prefer", "require", "verify_ca", "verify_full"], Receives()] = (
        Field(
            "prefer",
            description="How to encrypt, and what to check of the server's certificate; default `prefer`.",
        )
    )
    ca_certificate: Annotated[
        str | None, Receives(), Sql("tls.ca_cert_file", pem=True), Api(min_length=1, max_length=100_000)
    ] = Field(None, description="Certificate authority to trust, PEM; default the machine's own.")
    application_name: Annotated[str, Api(min_length=1, max_length=63, pattern=NAME_PATTERN)] = Field(
        "leatstream", description="Name of our connections on the server; default `leatstream`."
    )
    password: Annotated[
        SecretStr | None,
        Sql("postgres.password"),
        Secret("the password", of="username"),
        Api(min_length=1, max_length=1000, pattern=r"^[^\x00]+$"),
    ] = Field(None, description="Password")

    _host = field_validator("host")(host_checked)

    @field_validator("database", "username", "application_name")
    @classmethod
    def _is_name(cls, value: str) -> str:
        if not value or any(ord(c) < 32 or ord(c) == 127 for c in value):
            raise PydanticCustomError("name", "write a name without control characters")
        if len(value.encode(errors="replace")) > _LONGEST:
            raise PydanticCustomError("name", "PostgreSQL's names have at most 63 bytes")
        return value

    _secret = field_validator("password")(password_checked)
    _pem = field_validator("ca_certificate")(certificate_checked)

    @model_validator(mode="after")
    def _together(self) -> Self:
        if self.ca_certificate is not None and self.ssl_mode not in ("verify_ca", "verify_full"):
            raise PydanticCustomError("ca", "ca_certificate needs ssl_mode verify_ca or verify_full")
        if self.ssl_mode == "verify_ca" and self.ca_certificate is None:
            raise PydanticCustomError("ca", "ssl_mode verify_ca needs ca_certificate")
        return self

    @property
    def where(self) -> str:
        """Address and database, for messages."""
        return f"{host_and_port(self.host, self.port)}/{self.database}"


def connect(config: PostgresConfig, timeout: float, **more: Any) -> psycopg.Connection[Any]:
    """A connection that commits each statement by itself; text comes as UTF-8, times as UTC.

    Args:
        config: settings with the secret.
        timeout: seconds for connecting, and for each statement unless it sets its own.
        more: other arguments of ``psycopg.connect``.

    Raises:
        psycopg.Error: the server cannot be reached or refuses the login.
    """
    import psycopg

    millis = max(1, int(timeout * 1000))
    connection = psycopg.connect(
        host=config.host,
        port=config.port,
        dbname=config.database,
        user=config.username,
        password=config.password.get_secret_value() if config.password else None,
        # libpq waits at least two seconds.
        connect_timeout=max(2, round(timeout)),
        application_name=config.application_name,
        client_encoding="UTF8",
        passfile=os.devnull,
        gssencmode="disable",
        keepalives_idle=30,
        tcp_user_timeout=max(millis, 5000),
        autocommit=True,
        # A prepared statement is the backend's own, and a pooler may give the next transaction another one.
        prepare_threshold=None,
        **_encryption(config),
        **more,
    )
    try:
        # Not as start-up options, which connection poolers do not pass on.
        connection.execute(
            "SELECT set_config('statement_timeout', %s, false), set_config('TimeZone', 'UTC', false),"
            " set_config('DateStyle', 'ISO, YMD', false), set_config('search_path', 'pg_catalog', false),"
            # What a role or a database is set to may say otherwise: bytes in escapes, doubles rounded.
            " set_config('bytea_output', 'hex', false), set_config('extra_float_digits', '1', false)",
            (str(millis),),
        )
    except BaseException:
        connection.close()
        raise
    return connection


def _encryption(config: PostgresConfig) -> dict[str, Any]:
    verifies = config.ssl_mode.startswith("verify")
    settings = {"sslmode": config.ssl_mode.replace("_", "-"), "sslcert": _NO_FILE, "sslcrl": _NO_FILE}
    if not verifies:
        return settings | {"sslrootcert": _NO_FILE}
    return settings | {"sslrootcert": _authorities(config.ca_certificate)}


def _authorities(pem: str | None) -> str:
    """A file with the authorities to trust: libpq reads no text.

    One for each content, which later processes find again: drivers and Spark's Python workers are killed, and
    whatever each of them made would stay.
    """
    if pem is None:
        own = ssl.get_default_verify_paths().cafile or _AUTHORITIES
        return own if Path(own).exists() else "system"
    file = _own_folder() / f"{hashlib.sha256(pem.encode()).hexdigest()}.pem"
    if not file.exists():  # also after somebody swept the directory of temporary files
        handle, made = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(handle, "w") as part:
            part.write(pem)
        os.replace(made, file)
    return str(file)


def _own_folder() -> Path:
    """A directory for temporary files into which nobody else can lay a certificate to be trusted."""
    folder = Path(tempfile.gettempdir()) / f"leatstream-ca-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
        return folder
    return _another_folder()


@functools.cache
def _another_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="leatstream-ca-"))
