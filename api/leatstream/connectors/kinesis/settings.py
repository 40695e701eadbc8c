"""A Kinesis store's settings, and the client they make.

``KinesisConfig`` is the ``kinesis {…}`` object of REST, Terraform and SQL. The same client serves the admin
half and the Spark half, there inside Spark's Python workers.
"""

from __future__ import annotations

from typing import Any

from leatstream.connectors.aws.access import AwsAccess, aws_client


class KinesisConfig(AwsAccess):
    """How to reach Kinesis Data Streams in one region.

    Without an access key the machine's own credentials are used: environment, profile, container or instance.
    """


def kinesis_client(config: KinesisConfig, timeout: float, attempts: int = 2) -> Any:
    """A boto3 client of this store; see ``aws_client``."""
    return aws_client("kinesis", config, timeout, attempts)
