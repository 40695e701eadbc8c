"""An S3 store's settings, and the client they make.

The same client serves the admin half and the Spark half, there inside Spark's Python workers. It is boto3 and
not pyarrow's own: that one assumes a role with the machine's credentials only, and cannot ask for the very
version of a file that was listed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from leatstream.connectors.aws.access import AwsAccess, aws_client
from leatstream.connectors.settings import Api, StoreSettings

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z")
_PREFIX = re.compile(r"[A-Za-z0-9!_.*'()=@+,:&$;-]+(?:/[A-Za-z0-9!_.*'()=@+,:&$;-]+)*\Z")
_LONGEST_PREFIX = 512
_ERA = 300.0  # seconds


class _Place(StoreSettings):
    bucket: Annotated[
        str, Api(min_length=3, max_length=63, pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")
    ] = Field(description="Name of the bucket.", examples=["acme-events"])
    prefix: Annotated[
        str | None,
        Api(
            min_length=1,
            max_length=512,
            pattern=r"^[A-Za-z0-9!_.*'()=@+,:&$;-]+(/[A-Za-z0-9!_.*'()=@+,:&$;-]+)*$",
        ),
    ] = Field(None, description="What all keys begin with, without slashes around it.", examples=["team/raw"])

    @field_validator("bucket")
    @classmethod
    def _is_bucket(cls, value: str) -> str:
        if not _BUCKET.match(value) or ".." in value:
            raise PydanticCustomError(
                "bucket", "a bucket's name has 3 to 63 of the characters a-z, 0-9, '.' and '-'"
            )
        return value

    @field_validator("prefix")
    @classmethod
    def _is_prefix(cls, value: str | None) -> str | None:
        text = (value or "").strip("/")
        if not text:
            return None
        if len(text) > _LONGEST_PREFIX or not _PREFIX.match(text) or {".", ".."} & set(text.split("/")):
            raise PydanticCustomError("prefix", "write a prefix as team/raw, at most 512 characters")
        return text


class S3Config(AwsAccess, _Place):
    """A bucket of S3 or of a server that speaks its protocol, or the part of it below a prefix."""

    schema_name: ClassVar[str] = "S3"
    example: ClassVar[Mapping[str, Any]] = {
        "region": "eu-west-1",
        "bucket": "acme-events",
        "prefix": "team/raw",
    }
    sql_keys: ClassVar[Mapping[str, str]] = {
        "region": "aws.region",
        "access_key_id": "aws.access_key_id",
        "secret_access_key": "aws.secret_access_key",
        "role_arn": "aws.iam_role_arn",
        "external_id": "aws.iam_external_id",
    }

    @property
    def root(self) -> str:
        """What the key of every entity's file begins with: empty, or ending in a slash."""
        return f"{self.prefix}/" if self.prefix else ""

    @property
    def where(self) -> str:
        """The store's place, for messages."""
        return self.endpoint_url or f"region {self.region}"


def s3_client(config: S3Config, timeout: float, attempts: int = 2) -> Any:
    """A boto3 client of this store, safe to share; see ``aws_client``.

    Making one takes a good part of a second, so it is kept in the process. The machine's own credentials may
    change, and are read again every few minutes.
    """
    era = 0 if config.access_key_id is not None else int(time.monotonic() // _ERA)
    return _client(config, timeout, attempts, era)


@lru_cache(maxsize=16)
def _client(config: S3Config, timeout: float, attempts: int, _era: int) -> Any:
    return aws_client(
        "s3",
        config,
        timeout,
        attempts,
        # Other servers than AWS's rarely have a host name for each bucket, nor its newer checksums.
        s3={"addressing_style": "path" if config.endpoint_url or "." in config.bucket else "virtual"},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
