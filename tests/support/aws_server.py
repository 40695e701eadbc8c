"""moto's server: the AWS that can be had without an account."""

from __future__ import annotations

import contextlib
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from leatstream.dev import local_kinesis

REGION = "eu-west-1"


@contextmanager
def aws_server() -> Iterator[str]:
    """A server of its own on a free port; gives its address."""
    server = local_kinesis.aws_server(0)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield f"http://{server.host}:{server.port}"
    finally:
        server.shutdown()
        serving.join()


def check_logins(address: str, after: int) -> None:
    """Let the server check signatures and keys, after so many calls that it does not; -1 = never."""
    count = str(after if after >= 0 else 10**9).encode()
    request = urllib.request.Request(
        f"{address}/moto-api/reset-auth", data=count, headers={"Content-Type": "text/plain"}, method="POST"
    )
    urllib.request.urlopen(request, timeout=10).read()


@cache
def s3_of(address: str) -> Any:
    """A client of the server's S3."""
    return _client_of("s3", address, s3={"addressing_style": "path"})


@cache
def kinesis_of(address: str) -> Any:
    """A client of the server's Kinesis."""
    return _client_of("kinesis", address)


def _client_of(service: str, address: str, **more: Any) -> Any:
    import boto3
    from botocore.config import Config

    return boto3.client(
        service,
        region_name=REGION,
        endpoint_url=address,
        aws_access_key_id="AKIAEXAMPLE",
        aws_secret_access_key="a-secret",
        config=Config(**more),
    )


def bucket(address: str, name: str) -> None:
    """Make a bucket; there is one already where a server before this one had it: moto's memory is one."""
    client = s3_of(address)
    with contextlib.suppress(client.exceptions.BucketAlreadyOwnedByYou):
        client.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
