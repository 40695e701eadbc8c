"""An Oracle store's settings."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, SecretStr, StrictBool, field_validator, model_validator
from pydantic_core import PydanticCustomError

from leatstream.connectors.settings import Api, Receives, Secret, Sql, StoreSettings

_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z")
_SERVICE = r"^[A-Za-z0-9_$#.-]+$"
_USER = r"^[^\x00-\x1f\x7f\"\[\]/@]+$"


class OracleConfig(StoreSettings):
    """A service of an Oracle database."""

    schema_name: ClassVar[str] = "Oracle"
    example: ClassVar[Mapping[str, Any]] = {"host": "db.example.com", "service": "shop", "username": "leat"}

    host: Annotated[str, Receives(), Api(min_length=1, max_length=255, pattern=r"^[A-Za-z0-9._:\[\]-]+$")] = (
        Field(description="Host name or address of the listener.", examples=["db.example.com"])
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

    @field_validator("host")
    @classmethod
    def _is_host(cls, value: str) -> str:
        bare = value.strip("[]")
        if len(value) > 255 or not (_HOST.match(bare) or _is_address(bare)):
            raise PydanticCustomError("host", "write one host name or address, without a scheme or a port")
        return bare

    @field_validator("password")
    @classmethod
    def _is_secret(cls, value: SecretStr | None) -> SecretStr | None:
        text = None if value is None else value.get_secret_value()
        if text is not None and (not text or "\x00" in text):
            raise PydanticCustomError("secret", "a password is not empty and has no NUL")
        return value

    @field_validator("ca_certificate")
    @classmethod
    def _is_pem(cls, value: str | None) -> str | None:
        if value is not None and "-----BEGIN CERTIFICATE-----" not in value:
            raise PydanticCustomError("pem", "write the certificate's PEM text")
        return value

    @model_validator(mode="after")
    def _together(self) -> Self:
        if self.ca_certificate is not None and not self.tls:
            raise PydanticCustomError("ca", "ca_certificate needs tls")
        return self

    @property
    def where(self) -> str:
        """Address and service, for messages."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}/{self.service}"

    @property
    def own_schema(self) -> str:
        """The user's own schema, as Oracle writes it."""
        return self.username.upper()


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
