"""Settings of the two Iceberg kinds: where the catalog is, who we are there, and who we are at its files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_core import PydanticCustomError

from leatstream.connectors.aws.access import AwsAccess
from leatstream.connectors.setting_values import certificate_checked
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

_URL = re.compile(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?\Z")
_PATH = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/[^\s?#]*)?\Z")
_SECRET = Api(min_length=1, max_length=10_000, pattern=r"^[!-~]+$")
_ADDRESS = Api(min_length=8, max_length=1000, pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$")


def _url(value: str | None) -> str | None:
    if value is not None and not _URL.match(value):
        raise PydanticCustomError("url", "write http:// or https://, a host, perhaps a port and a path")
    return value.rstrip("/") if value else value


def _secret(value: SecretStr | None) -> SecretStr | None:
    text = value.get_secret_value() if value else None
    if text is not None and (not text or any(ord(c) <= 32 or ord(c) > 126 for c in text)):
        raise PydanticCustomError("secret", "a secret is not empty and has no blanks")
    return value


class IcebergFiles(StoreSettings):
    """Access to the files of the tables, for catalogs that hand out no credentials for them."""

    schema_name: ClassVar[str] = "IcebergFiles"

    endpoint_url: Annotated[str | None, Connects(), Sql("iceberg.s3.endpoint_url"), _ADDRESS] = Field(
        None, description="Address of the object store, where it is not AWS's own."
    )
    region: Annotated[str | None, Sql("iceberg.s3.region"), Api(min_length=1, max_length=40)] = Field(
        None, description="Region of the buckets.", examples=["eu-west-1"]
    )
    access_key_id: Annotated[
        str | None,
        Sql("iceberg.s3.access_key_id"),
        Needs("secret_access_key"),
        Api(min_length=1, max_length=128, pattern=r"^[!-~]+$"),
    ] = Field(None, description="Access key.")
    secret_access_key: Annotated[
        SecretStr | None,
        Sql("iceberg.s3.secret_access_key"),
        Needs("access_key_id"),
        Secret("the secret of the access key", of="access_key_id"),
        _SECRET,
    ] = Field(None, description="Secret of the access key")

    _is_url = field_validator("endpoint_url")(_url)
    _is_secret = field_validator("secret_access_key")(_secret)

    @classmethod
    def takes_machine_credentials(cls, config: Mapping[str, Any]) -> bool:
        """Whether there is no access key: pyarrow then looks for the machine's own."""
        return config.get("access_key_id") is None

    @model_validator(mode="after")
    def _together(self) -> Self:
        if (self.access_key_id is None) != (self.secret_access_key is None):
            raise PydanticCustomError("keys", "access_key_id and secret_access_key go together")
        return self


class IcebergRestConfig(StoreSettings):
    """A catalog that speaks Iceberg's REST protocol, such as Polaris, Lakekeeper, Nessie or Unity Catalog."""

    schema_name: ClassVar[str] = "IcebergRest"
    example: ClassVar[Mapping[str, Any]] = {
        "uri": "https://catalog.example.com/api/catalog",
        "warehouse": "lake",
        "client_id": "leatstream",
        "scope": "PRINCIPAL_ROLE:ALL",
    }

    uri: Annotated[str, Connects(), Sql("uris", example="'uris' = 'https://host/api/catalog'"), _ADDRESS] = (
        Field(
            description="Address of the catalog, without /v1.",
            examples=["https://catalog.example.com/api/catalog"],
        )
    )
    warehouse: Annotated[
        str | None, Sql("iceberg.catalog.id"), Api(min_length=1, max_length=1000, pattern=NAME_PATTERN)
    ] = Field(None, description="Warehouse or catalog to use, where the server has several.")
    client_id: Annotated[
        str | None,
        Sql("iceberg.rest.client_id"),
        Needs("client_secret"),
        Api(min_length=1, max_length=1000, pattern=r"^[^:\s]+$"),
    ] = Field(None, description="OAuth2 client.")
    client_secret: Annotated[
        SecretStr | None,
        Sql("iceberg.rest.client_secret"),
        Needs("client_id"),
        Secret("the client's secret", of="client_id"),
        _SECRET,
    ] = Field(None, description="Secret of the OAuth2 client")
    scope: Annotated[
        str | None,
        Sql("iceberg.rest.client_scope"),
        Needs("client_id"),
        Api(min_length=1, max_length=1000, pattern=NAME_PATTERN),
    ] = Field(None, description="OAuth2 scope; default `catalog`.", examples=["PRINCIPAL_ROLE:ALL"])
    token_uri: Annotated[
        str | None, Connects(), Sql("iceberg.rest.token_uri"), Needs("client_id"), _ADDRESS
    ] = Field(None, description="Where tokens are requested; default the catalog's own /v1/oauth/tokens.")
    token: Annotated[SecretStr | None, Sql("iceberg.rest.token"), Secret("the token"), _SECRET] = Field(
        None, description="A ready token, instead of an OAuth2 client"
    )
    ca_certificate: Annotated[
        str | None, Receives(), Sql("tls.ca_cert_file", pem=True), Api(min_length=1, max_length=100_000)
    ] = Field(
        None, description="Certificate authority of the catalog to trust, PEM; default the machine's own."
    )
    s3: IcebergFiles | None = Field(
        None, description="Access to the files, where the catalog hands out no credentials."
    )

    _is_url = field_validator("uri", "token_uri")(_url)
    _is_secret = field_validator("client_secret", "token")(_secret)

    @field_validator("client_id")
    @classmethod
    def _is_client(cls, value: str | None) -> str | None:
        if value is not None and (not value or ":" in value or any(c.isspace() for c in value)):
            raise PydanticCustomError("client", "a client id has no colon and no blanks")
        return value

    _pem = field_validator("ca_certificate")(certificate_checked)

    @model_validator(mode="after")
    def _together(self) -> Self:
        if (self.client_id is None) != (self.client_secret is None):
            raise PydanticCustomError("client", "client_id and client_secret go together")
        if self.token is not None and self.client_id is not None:
            raise PydanticCustomError("token", "give a token, or client_id and client_secret, not both")
        if self.client_id is None and (self.scope or self.token_uri):
            raise PydanticCustomError("client", "scope and token_uri need client_id")
        return self

    @property
    def where(self) -> str:
        """The catalog's place, for messages."""
        return f"{self.uri} (warehouse {self.warehouse})" if self.warehouse else self.uri


class IcebergGlueConfig(AwsAccess):
    """The Iceberg tables in the Glue Data Catalog of one AWS account and region."""

    schema_name: ClassVar[str] = "IcebergGlue"
    example: ClassVar[Mapping[str, Any]] = {
        "region": "eu-west-1",
        "warehouse_path": "s3://acme-lake/warehouse",
        "role_arn": "arn:aws:iam::123456789012:role/leatstream",
    }
    sql_keys: ClassVar[Mapping[str, str]] = {
        "region": "aws.region",
        "access_key_id": "aws.access_key_id",
        "secret_access_key": "aws.secret_access_key",
        "role_arn": "aws.iam_role_arn",
        "external_id": "aws.iam_external_id",
        "endpoint_url": "uris",
    }

    catalog_id: Annotated[
        str | None, Sql("iceberg.catalog.id"), Api(min_length=12, max_length=12, pattern=r"^[0-9]{12}$")
    ] = Field(None, description="AWS account whose catalog it is; default that of the credentials.")
    warehouse_path: Annotated[
        str | None,
        Sql("iceberg.warehouse.default_path"),
        Api(min_length=8, max_length=1000, pattern=r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\s?#]*)?$"),
    ] = Field(
        None,
        description="Where new tables lie; needed to create one in a database that has no location.",
        examples=["s3://acme-lake/warehouse"],
    )
    s3_endpoint_url: Annotated[str | None, Connects(), Sql("iceberg.s3.endpoint_url"), _ADDRESS] = Field(
        None, description="Another address of S3 than the region's own, such as a VPC endpoint."
    )

    _is_s3_url = field_validator("s3_endpoint_url")(_url)

    @field_validator("catalog_id")
    @classmethod
    def _is_account(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[0-9]{12}", value):
            raise PydanticCustomError("account", "write the 12 digits of an AWS account")
        return value

    @field_validator("warehouse_path")
    @classmethod
    def _is_path(cls, value: str | None) -> str | None:
        if value is not None and not _PATH.match(value):
            raise PydanticCustomError("path", "write s3://<bucket>/<prefix>")
        return value.rstrip("/") if value else value

    @property
    def where(self) -> str:
        """The catalog's place, for messages."""
        return self.endpoint_url or f"region {self.region}"
