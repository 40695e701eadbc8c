"""An Oracle store's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, SecretStr, StrictBool, field_validator, model_validator
from pydantic_core import PydanticCustomError

from leatstream.connectors.setting_values import (
    HOST_PATTERN,
    certificate_checked,
    host_and_port,
    host_checked,
    password_checked,
)
from leatstream.connectors.settings import Api, Connects, Receives, Secret, Sql, StoreSettings

_SERVICE = r"^[A-Za-z0-9_$#.-]+$"
_USER = r"^[^\x00-\x1f\x7f\"\[\]/@]+$"


class OracleConfig(StoreSettings):
    """A service of an Oracle database."""

    schema_name: ClassVar[str] = "Oracle"
    example: ClassVar[Mapping[str, Any]] = {"host": "db.example.com", "service": "shop", "username": "leat"}

    host: Annotated[str, Connects(), Api(min_length=1, max_length=255, pattern=HOST_PATTERN)] = Field(
        description="Host name or address of the listener.", examples=["db.example.com"]
    )
    port: Annotated[int, Receives()] = Field(1521, ge=1, le=65535, description="Port; default 1521.")
    service: Annotated[str, Receives(), Api(min_length=1, max_length=128, pattern=_SERVICE)] = Field(
        pattern=_SERVICE, max_length=128, description="Service name of the (pluggable) database."
    )
    username: Annotated[
        str,
        Sql("oracle.username", example="'oracle.username' = '…'"),
        Api(min_length=1, max_length=128, pattern=_USER),
    ] = Field(pattern=_USER, max_length=128, description="User name; also the schema of its own tables.")
    tls: Annotated[StrictBool, Receives()] = Field(
        False, description="Whether to connect over TLS (`tcps`), and check the certificate; default false."
    )
    ca_certificate: Annotated[
        str | None, Receives(), Sql("tls.ca_cert_file", pem=True), Api(min_length=1, max_length=100_000)
    ] = Field(None, description="Certificate authority to trust, PEM; default the machine's own.")
    password: Annotated[
        SecretStr | None,
        Sql("oracle.password"),
        Secret("the password", of="username"),
        Api(min_length=1, max_length=1000, pattern=r"^[^\x00]+$"),
    ] = Field(None, description="Password")

    _host = field_validator("host")(host_checked)
    _secret = field_validator("password")(password_checked)
    _pem = field_validator("ca_certificate")(certificate_checked)

    @model_validator(mode="after")
    def _together(self) -> Self:
        if self.ca_certificate is not None and not self.tls:
            raise PydanticCustomError("ca", "ca_certificate needs tls")
        return self

    @property
    def where(self) -> str:
        """Address and service, for messages."""
        return f"{host_and_port(self.host, self.port)}/{self.service}"

    @property
    def own_schema(self) -> str:
        """The user's own schema, as Oracle writes it."""
        return self.username.upper()
