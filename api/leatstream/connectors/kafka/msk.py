"""The token that Amazon MSK takes: a signed request to connect, good for a quarter of an hour."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

from leatstream.connectors.aws.access import AwsIdentity, aws_session
from leatstream.connectors.aws.errors import store_error

LIFE = 900  # seconds; MSK takes no longer ones


def sign_in(store: str, aws: AwsIdentity, timeout: float) -> tuple[str, float, float]:
    """Sign with the store's AWS credentials.

    Args:
        store: the store's name, for messages.
        aws: region and credentials.
        timeout: seconds that fetching the credentials of a role may take.

    Returns:
        The token, when it was made and when it expires, in seconds since the epoch.

    Raises:
        StoreError: there are no credentials, or AWS refuses the role.
    """
    from botocore.auth import SigV4QueryAuth
    from botocore.awsrequest import AWSRequest
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

    limits = Config(
        connect_timeout=timeout / 2,
        read_timeout=timeout / 2,
        retries={"mode": "standard", "total_max_attempts": 1},
        region_name=aws.region,
    )
    try:
        credentials = aws_session(aws, limits).get_credentials()
        if credentials is None:
            raise NoCredentialsError
        frozen = credentials.get_frozen_credentials()
    except (BotoCoreError, ClientError) as error:
        what = "signing in to the Kafka cluster"
        raise store_error(store, what, error, aws.region, timeout, "AWS STS") from None
    request = AWSRequest("GET", f"https://kafka.{aws.region}.amazonaws.com/")
    request.params = {"Action": "kafka-cluster:Connect"}
    SigV4QueryAuth(frozen, "kafka-cluster", aws.region, expires=LIFE).add_auth(request)
    # Behind the signature: it is for Amazon's records only.
    url = f"{request.url}&User-Agent=leatstream"
    made = datetime.strptime(request.context["timestamp"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    return base64.urlsafe_b64encode(url.encode()).rstrip(b"=").decode(), made, made + LIFE
