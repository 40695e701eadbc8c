"""A Kinesis store's settings, and the client they make.

The same client serves the admin half and the Spark half, there inside Spark's Python workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from leatstream.connectors.aws.access import AwsAccess, aws_client


class KinesisConfig(AwsAccess):
    """Kinesis Data Streams of one AWS region."""

    schema_name: ClassVar[str] = "Kinesis"
    example: ClassVar[Mapping[str, Any]] = {
        "region": "eu-west-1",
        "role_arn": "arn:aws:iam::123456789012:role/leatstream",
    }
    sql_keys: ClassVar[Mapping[str, str]] = {
        "region": "kinesis.region",
        "access_key_id": "kinesis.access_key_id",
        "secret_access_key": "kinesis.secret_access_key",
        "role_arn": "kinesis.iam_role_arn",
        "external_id": "kinesis.external_id",
        "endpoint_url": "uris",
    }


def kinesis_client(config: KinesisConfig, timeout: float, attempts: int = 2) -> Any:
    """A boto3 client of this store; see ``aws_client``."""
    return aws_client("kinesis", config, timeout, attempts)
