"""A Databricks store's settings: the workspace, and the bucket or volume that rows are written to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_core import PydanticCustomError

from leatstream.connectors.aws.access import AwsAccess
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

_HOST = re.compile(r"(?:https://)?([A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d{1,5})?)/?\Z")
# Tokens are sent there: without encryption to this machine alone.
_LOCAL = re.compile(r"http://(?:127\.0\.0\.1|localhost)(?::\d{1,5})?/?\Z")
# It stands in statements between quotation marks.
_VOLUME = r"^/Volumes/[A-Za-z0-9_-]+/[A-Za-z0-9_-]+/[A-Za-z0-9_-]+(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*/?$"
_BUCKET = r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"


class DatabricksFiles(AwsAccess):
    """The bucket of an external location, where new tables' files lie."""

    schema_name: ClassVar[str] = "DatabricksFiles"

    sql_keys: ClassVar[Mapping[str, str]] = {
        "bucket": "databricks.cloud.s3.bucket",
        "prefix": "databricks.cloud.s3.prefix",
        "region": "databricks.cloud.region",
        "access_key_id": "aws.access_key_id",
        "secret_access_key": "aws.secret_access_key",
        "role_arn": "aws.iam_role_arn",
        "external_id": "aws.iam_external_id",
        "endpoint_url": "aws.endpoint_url",
    }

    bucket: Annotated[str, Receives(), Api(min_length=3, max_length=63, pattern=_BUCKET)] = Field(
        pattern=_BUCKET, description="Bucket of an external location of the catalog."
    )
    prefix: Annotated[str, Api(max_length=500, pattern=NAME_PATTERN)] = Field(
        "leatstream", description="Folder in the bucket; default `leatstream`."
    )

    @field_validator("prefix")
    @classmethod
    def _is_prefix(cls, value: str) -> str:
        if not re.match(r"[A-Za-z0-9!_.*'()/=-]+\Z", value) or ".." in value:
            raise PydanticCustomError("prefix", "write folders of letters, digits and -_.=/")
        return value.strip("/")


class DatabricksConfig(StoreSettings):
    """A catalog of a Databricks workspace."""

    schema_name: ClassVar[str] = "Databricks"
    example: ClassVar[Mapping[str, Any]] = {
        "host": "dbc-12345678-9abc.cloud.databricks.com",
        "warehouse_id": "0123456789abcdef",
        "s3": {"bucket": "acme-lake", "region": "eu-west-1"},
    }

    host: Annotated[
        str,
        Connects(),
        Sql("uris", example="'uris' = 'https://dbc-….cloud.databricks.com'"),
        Api(min_length=1, max_length=300, pattern=r"^[A-Za-z0-9._:/-]+$"),
    ] = Field(description="Address of the workspace.", examples=["dbc-12345678-9abc.cloud.databricks.com"])
    warehouse_id: Annotated[
        str,
        Sql("databricks.warehouse_id", example="'databricks.warehouse_id' = '…'"),
        Api(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$"),
    ] = Field(
        pattern=r"^[A-Za-z0-9_-]+$",
        description="SQL warehouse that creates tables, and writes those that have no files in `s3`.",
    )
    catalog: Annotated[
        str, Sql("databricks.catalog"), Api(min_length=1, max_length=255, pattern=r"^[^./ \x00-\x1f\x7f]+$")
    ] = Field("main", pattern=r"^[^./ \x00-\x1f\x7f]+$", description="Catalog; default `main`.")
    client_id: Annotated[
        str | None,
        Needs("client_secret"),
        Sql("databricks.client_id"),
        Api(min_length=1, max_length=200, pattern=r"^[!-~]+$"),
    ] = Field(None, description="Application id of a service principal, in place of a token.")
    token: Annotated[
        SecretStr | None,
        Sql("databricks.app_token"),
        Secret("the access token"),
        Api(min_length=1, max_length=4000, pattern=r"^[!-~]+$"),
    ] = Field(None, description="Access token")
    client_secret: Annotated[
        SecretStr | None,
        Needs("client_id"),
        Sql("databricks.client_secret"),
        Secret("the secret of the service principal", of="client_id"),
        Api(min_length=1, max_length=4000, pattern=r"^[!-~]+$"),
    ] = Field(None, description="Secret of the service principal")
    volume: Annotated[
        str | None,
        Sql("databricks.volume"),
        Api(min_length=1, max_length=500, pattern=_VOLUME),
    ] = Field(
        None,
        pattern=_VOLUME,
        description="Folder of a volume where rows wait for the warehouse. Without `s3` tables are managed.",
        examples=["/Volumes/main/default/staging"],
    )
    s3: DatabricksFiles | None = Field(
        None, description="Bucket where the files of new tables lie, which are then external."
    )

    @field_validator("host")
    @classmethod
    def _is_host(cls, value: str) -> str:
        found = _HOST.match(value)
        if found is None and _LOCAL.match(value) is None:
            raise PydanticCustomError("host", "write the workspace's host name or https:// address")
        return value.rstrip("/") if found is None else f"https://{found[1]}"

    @field_validator("volume")
    @classmethod
    def _is_folder(cls, value: str | None) -> str | None:
        return None if value is None else value.rstrip("/")

    @model_validator(mode="after")
    def _one_login(self) -> Self:
        if self.token is not None and self.client_id is not None:
            raise PydanticCustomError("login", "token and client_id exclude each other")
        return self
