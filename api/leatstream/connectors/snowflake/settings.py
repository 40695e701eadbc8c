"""A Snowflake store's settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_core import PydanticCustomError

from leatstream.connectors.settings import (
    NAME_PATTERN,
    Api,
    Connects,
    Needs,
    Receives,
    Secret,
    Sql,
    StoreSettings,
)

ACCOUNT = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
_HOST = r"^(https?://)?[A-Za-z0-9][A-Za-z0-9._-]*(:[0-9]{1,5})?$"
_LOOPBACK = ("localhost", "127.0.0.1")
_NAMES = ("username", "role", "warehouse", "database")
SUFFIX = ".snowflakecomputing.com"


class SnowflakeConfig(StoreSettings):
    """A Snowflake account, as one user with one role and one warehouse."""

    schema_name: ClassVar[str] = "Snowflake"
    example: ClassVar[Mapping[str, Any]] = {
        "account": "acme-analytics",
        "username": "LEATSTREAM",
        "role": "LOADER",
        "warehouse": "LOADING",
        "database": "shop",
    }

    account: Annotated[
        str,
        Receives(),
        Sql("snowflake.account_id"),
        Api(min_length=1, max_length=255, pattern=ACCOUNT),
    ] = Field(description="Account identifier, such as `organization-account`.", examples=["acme-analytics"])
    host: Annotated[str | None, Connects(), Api(min_length=1, max_length=300, pattern=_HOST)] = Field(
        None, description="Host to reach the account at; default `<account>.snowflakecomputing.com`."
    )
    username: Annotated[
        str,
        Sql("snowflake.username", example="'snowflake.username' = '…'"),
        Api(min_length=1, max_length=255, pattern=NAME_PATTERN),
    ] = Field(description="User name.")
    role: Annotated[
        str | None, Sql("snowflake.role_name"), Api(min_length=1, max_length=255, pattern=NAME_PATTERN)
    ] = Field(None, description="Role to use; default the user's own.")
    warehouse: Annotated[
        str,
        Sql("snowflake.warehouse_name", example="'snowflake.warehouse_name' = '…'"),
        Api(min_length=1, max_length=255, pattern=NAME_PATTERN),
    ] = Field(description="Warehouse that statements run on.")
    database: Annotated[
        str | None, Sql("snowflake.database"), Api(min_length=1, max_length=255, pattern=NAME_PATTERN)
    ] = Field(None, description="Database of tables that are named without one.")
    login: Literal["key_pair", "password"] | None = Field(
        None,
        description="What to log in with; default `key_pair` if there is a private key. The other secret is "
        "not used.",
    )
    private_key: Annotated[
        SecretStr | None,
        Sql("snowflake.client.key_file", pem=True),
        Secret("the private key", of="username"),
        Api(min_length=1, max_length=20_000),
    ] = Field(None, description="Private key of the user, RSA, PEM")
    private_key_passphrase: Annotated[
        SecretStr | None,
        Sql("snowflake.client.key_passphrase"),
        Needs("private_key"),
        Secret("the private key's passphrase", of="username"),
        Api(min_length=1, max_length=1000),
    ] = Field(None, description="Passphrase of the private key")
    password: Annotated[
        SecretStr | None,
        Sql("snowflake.password"),
        Secret("the password", of="username"),
        Api(min_length=1, max_length=1000),
    ] = Field(None, description="Password or programmatic access token")

    @field_validator("account")
    @classmethod
    def _is_account(cls, value: str) -> str:
        if len(value) > 255 or not re.match(ACCOUNT, value) or value.lower().endswith(SUFFIX):
            raise PydanticCustomError(
                "account", "write an account identifier such as organization-account, without a host's name"
            )
        return value

    @field_validator("host")
    @classmethod
    def _is_host(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if len(value) > 300 or not re.match(_HOST, value) or not _has_port(value):
            raise PydanticCustomError("host", "write one host name, with :port where it is not 443")
        parts = urlsplit(value)
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            # A login and rows would be readable on the way.
            raise PydanticCustomError("host", "http:// is for this machine only; Snowflake answers by https")
        return value

    @field_validator(*_NAMES)
    @classmethod
    def _is_name(cls, value: str | None) -> str | None:
        if value is not None and (not value or len(value) > 255 or not re.match(NAME_PATTERN, value)):
            raise PydanticCustomError("name", "write a name of 1 to 255 characters")
        return value

    @field_validator("private_key", "private_key_passphrase", "password")
    @classmethod
    def _is_secret(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not value.get_secret_value().strip():
            raise PydanticCustomError("secret", "a secret is not empty")
        return value

    @model_validator(mode="after")
    def _opens(self) -> Self:
        if self.private_key is not None:
            try:
                key_bytes(self.private_key, self.private_key_passphrase)
            except ValueError as error:
                raise PydanticCustomError("key", "private_key {why}", {"why": str(error)}) from None
        return self

    @property
    def address(self) -> tuple[str, str, int]:
        """Scheme, host and port."""
        text = self.host or f"{self.account.replace('_', '-').lower()}{SUFFIX}"
        parts = urlsplit(text if "://" in text else f"https://{text}")
        return parts.scheme, parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443)

    @property
    def where(self) -> str:
        """The account and its host, for messages."""
        return f"{self.account} ({self.address[1]})"


def key_bytes(key: SecretStr, passphrase: SecretStr | None) -> bytes:
    """A private key as Snowflake's connector takes it, PKCS #8 in DER.

    Raises:
        ValueError: why it is none; the text holds nothing of the key.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    secret = passphrase.get_secret_value().encode() if passphrase is not None else None
    text = key.get_secret_value().strip().encode()
    try:
        found = serialization.load_pem_private_key(text, secret)
    except TypeError:
        why = "is encrypted: give private_key_passphrase"
        raise ValueError(why if secret is None else "is not encrypted: leave the passphrase out") from None
    except (ValueError, UnsupportedAlgorithm):
        wrong = "cannot be read: it is no private key in PEM"
        encrypted = b"ENCRYPTED" in text
        raise ValueError("does not open with this passphrase" if encrypted else wrong) from None
    if not isinstance(found, rsa.RSAPrivateKey):
        raise ValueError("is no RSA key, and Snowflake takes no other")
    return found.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _has_port(host: str) -> bool:
    """Whether the port, if there is one, can be one."""
    try:
        return urlsplit(host if "://" in host else f"https://{host}").port != 0
    except ValueError:
        return False
