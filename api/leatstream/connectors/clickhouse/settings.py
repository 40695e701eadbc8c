"""A ClickHouse store's settings, and the client they make.

The same client serves the admin half and the Spark half, there inside Spark's Python workers. It would also
use proxies that the environment names. These are not let in, so that a store means the same everywhere.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_core import PydanticCustomError

from leatstream.connectors.clickhouse.names import DEFAULT_DATABASE, database_fault
from leatstream.connectors.setting_values import (
    HOST_PATTERN,
    certificate_checked,
    host_and_port,
    host_checked,
    password_checked,
)
from leatstream.connectors.settings import NAME_PATTERN, Api, Connects, Receives, Secret, Sql, StoreSettings
from leatstream.errors import StoreError
from leatstream.model.extras import install_extra

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

HTTP_PORT, HTTPS_PORT = 8123, 8443


class ClickHouseConfig(StoreSettings):
    """A ClickHouse server, reached by its HTTP interface."""

    schema_name: ClassVar[str] = "ClickHouse"
    example: ClassVar[Mapping[str, Any]] = {"host": "clickhouse.example.com", "username": "leat"}

    host: Annotated[str, Connects(), Api(min_length=1, max_length=255, pattern=HOST_PATTERN)] = Field(
        description="Host name or address of the server.", examples=["clickhouse.example.com"]
    )
    secure: Annotated[bool, Receives()] = Field(
        True, description="Whether to encrypt (HTTPS); the certificate is always checked. Default `true`."
    )
    port: Annotated[int | None, Receives()] = Field(
        None,
        ge=1,
        le=65535,
        description="Port of the HTTP interface; default 8443, without `secure` 8123.",
    )
    username: Annotated[
        str,
        Sql("clickhouse.username", example="'clickhouse.username' = '…'"),
        Api(min_length=1, max_length=255, pattern=NAME_PATTERN),
    ] = Field(description="User name.")
    database: Annotated[str | None, Api(min_length=1, max_length=200, pattern=NAME_PATTERN)] = Field(
        None, description="Database of tables that are named without one; default `default`."
    )
    ca_certificate: Annotated[
        str | None, Receives(), Sql("tls.ca_cert_file", pem=True), Api(min_length=1, max_length=100_000)
    ] = Field(None, description="Certificate authority to trust, PEM; default the machine's own.")
    password: Annotated[
        SecretStr | None,
        Sql("clickhouse.password"),
        Secret("the password", of="username"),
        Api(min_length=1, max_length=1000, pattern=r"^[^\x00]+$"),
    ] = Field(None, description="Password")

    _host = field_validator("host")(host_checked)

    @field_validator("username")
    @classmethod
    def _is_name(cls, value: str) -> str:
        # A colon would end the name where the client sends name and password together.
        if not value or ":" in value or any(ord(c) < 32 or ord(c) == 127 for c in value):
            raise PydanticCustomError("name", "write a name without colons and control characters")
        return value

    @field_validator("database")
    @classmethod
    def _is_database(cls, value: str | None) -> str | None:
        fault = None if value is None else database_fault(value)
        if fault is not None:
            raise PydanticCustomError("name", "{fault}", {"fault": fault})
        return value

    _pem = field_validator("ca_certificate")(certificate_checked)
    _secret = field_validator("password")(password_checked)

    @model_validator(mode="after")
    def _together(self) -> Self:
        if self.ca_certificate is not None and not self.secure:
            raise PydanticCustomError("ca", "ca_certificate needs secure = true")
        return self

    @property
    def home(self) -> str:
        """The database of tables that are named without one."""
        return self.database or DEFAULT_DATABASE

    @property
    def real_port(self) -> int:
        """The port, the default one included."""
        return self.port or (HTTPS_PORT if self.secure else HTTP_PORT)

    @property
    def where(self) -> str:
        """Address, for messages."""
        return f"{'https' if self.secure else 'http'}://{host_and_port(self.host, self.real_port)}"


# Of each statement. Silent conversions are off, and what a replay relies on is on.
_STATEMENTS = {
    "async_insert": 0,
    "insert_deduplicate": 1,
    "input_format_null_as_default": 0,
    "session_timezone": "UTC",
}


def connect(config: ClickHouseConfig, timeout: float, wait: float | None = None) -> Client:
    """A client, which the caller closes.

    Args:
        config: settings with the secret.
        timeout: seconds for connecting.
        wait: seconds for each answer; ``timeout`` if it is left out.

    Raises:
        StoreError: the client library is missing.
        clickhouse_connect.driver.exceptions.Error: the server cannot be reached or refuses the login.
    """
    try:
        import clickhouse_connect
        import urllib3
    except ImportError:
        raise StoreError(
            "store-rejected",
            "The client library of ClickHouse is not installed.",
            hint=f"{install_extra('clickhouse')}, on the server and where drivers run",
        ) from None

    # It writes addresses and statements to the log, at the level of errors.
    logging.getLogger("clickhouse_connect").setLevel(logging.CRITICAL)
    encryption: dict[str, Any] = {}
    if config.secure:
        encryption["ssl_context"] = ssl.create_default_context(cadata=config.ca_certificate)
    return clickhouse_connect.get_client(
        host=f"[{config.host}]" if ":" in config.host else config.host,
        port=config.real_port,
        interface="https" if config.secure else "http",
        username=config.username,
        password=config.password.get_secret_value() if config.password else "",
        database=config.database or "",
        connect_timeout=max(1, round(timeout)),
        send_receive_timeout=max(1, round(wait or timeout)),
        client_name="leatstream",
        # Two statements of one session would have to wait for each other.
        autogenerate_session_id=False,
        form_encode_query_params=True,
        query_retries=0,
        pool_mgr=urllib3.PoolManager(num_pools=1, maxsize=4, retries=False, **encryption),
        settings=dict(_STATEMENTS),
    )
