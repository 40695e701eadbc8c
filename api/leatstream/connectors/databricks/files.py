"""A table's files: Delta Lake over S3, by delta-rs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leatstream.connectors.aws.access import aws_session
from leatstream.connectors.databricks.settings import DatabricksFiles
from leatstream.errors import StoreError

if TYPE_CHECKING:
    from deltalake import DeltaTable


def storage_options(files: DatabricksFiles) -> dict[str, str]:
    """How delta-rs reaches the bucket, with the credentials of now: those of a role expire.

    Raises:
        StoreError: store-auth-failed, there are no credentials.
    """
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        found = aws_session(files, Config(region_name=files.region)).get_credentials()
        frozen = found.get_frozen_credentials() if found is not None else None
    except (BotoCoreError, ClientError):
        frozen = None
    if frozen is None:
        raise StoreError(
            "store-auth-failed",
            f"There are no credentials for bucket {files.bucket}.",
            hint="Give access_key_id and secret_access_key, or a role that the server may assume.",
        )
    options = {
        "AWS_REGION": files.region,
        "AWS_ACCESS_KEY_ID": frozen.access_key,
        "AWS_SECRET_ACCESS_KEY": frozen.secret_key,
        "AWS_SESSION_TOKEN": frozen.token,
        # S3 itself decides which of two writers makes the next version.
        "aws_conditional_put": "etag",
        "max_retries": "3",
        "retry_timeout": "20s",
        "timeout": "60s",
    }
    if files.endpoint_url is not None:
        options |= {"AWS_ENDPOINT_URL": files.endpoint_url, "AWS_ALLOW_HTTP": "true"}
    return {name: value for name, value in options.items() if value is not None}


def opened(location: str, files: DatabricksFiles) -> DeltaTable:
    """The table as it is now; call it within ``file_errors``."""
    from deltalake import DeltaTable

    return DeltaTable(location, storage_options=storage_options(files))
