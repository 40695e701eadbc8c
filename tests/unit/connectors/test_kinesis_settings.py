"""A Kinesis store's settings, and what AWS's errors become."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError
from pydantic import ValidationError

from leatstream.connectors.aws.errors import store_error
from leatstream.connectors.kinesis.connector import KinesisConnector
from leatstream.connectors.kinesis.settings import KinesisConfig
from leatstream.connectors.registry import open_connector
from leatstream.connectors.store_marks import find_mark, marked
from leatstream.errors import StoreError

ROLE = "arn:aws:iam::123456789012:role/leatstream"


@pytest.mark.parametrize(
    "wrong",
    [
        {"region": "Frankfurt"},
        {"region": "eu-west-1", "endpoint_url": "localhost:4566"},
        {"region": "eu-west-1", "access_key_id": "AKIA"},
        {"region": "eu-west-1", "secret_access_key": "s3cr3t"},
        {"region": "eu-west-1", "access_key_id": "AKIA", "secret_access_key": "a b"},
        {"region": "eu-west-1", "role_arn": "leatstream"},
        {"region": "eu-west-1", "external_id": "agreed"},
        {"region": "eu-west-1", "regoin": "x"},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        KinesisConfig.model_validate(wrong)


def test_legal_settings() -> None:
    KinesisConfig.model_validate({"region": "us-gov-west-1"})
    KinesisConfig.model_validate({"region": "eu-west-1", "role_arn": ROLE, "external_id": "a:b/c"})
    found = KinesisConfig.model_validate({"region": "eu-west-1", "endpoint_url": "http://127.0.0.1:5000/"})
    assert found.endpoint_url == "http://127.0.0.1:5000"


def test_the_secret_is_not_shown() -> None:
    secret = {"secret_access_key": "s3cr3t"}
    store = open_connector("kinesis", "s", {"region": "eu-west-1", "access_key_id": "AKIA"}, secret)
    assert isinstance(store, KinesisConnector)
    assert "s3cr3t" not in repr(store.config)
    assert KinesisConnector.secret_fields() == ("secret_access_key",)


def client_error(code: str, message: str = "no", status: int = 400) -> ClientError:
    answer = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "ListStreams")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "code", "word"),
    [
        (client_error("UnrecognizedClientException"), "store-auth-failed", "secret_access_key"),
        (client_error("AccessDeniedException"), "store-auth-failed", "policy"),
        (client_error("ExpiredTokenException"), "store-auth-failed", "credentials"),
        (
            client_error("InvalidSignatureException", "Signature expired: 20260101"),
            "store-auth-failed",
            "clock",
        ),
        (client_error("403", status=403), "store-auth-failed", "credentials"),
        (NoCredentialsError(), "store-auth-failed", "credentials"),
        (ConnectTimeoutError(endpoint_url="http://h"), "store-unreachable", "endpoint_url"),
        (client_error("ThrottlingException"), "store-unreachable", "too often"),
        (client_error("ResourceNotFoundException"), "entity-not-found", ""),
        (client_error("LimitExceededException", "shard quota of 500"), "store-rejected", ""),
    ],
)
def test_what_aws_says_becomes_what_a_person_can_do(error: Exception, code: str, word: str) -> None:
    found = store_error("s", "listing streams", error, "region eu-west-1", 5)
    assert found.code == code
    assert word in str(found.faults[0].hint)
    assert "Store s" in found.detail


def test_an_error_finds_its_way_through_spark() -> None:
    text = marked("sink", StoreError("store-auth-failed", "Store s: AWS refused it.", hint="Check the keys."))
    found = find_mark(f"Traceback …\nRuntimeError: {text}\n at org.apache")
    assert found == ("sink", "store-auth-failed", "Store s: AWS refused it. Check the keys.")
    assert find_mark("something else") is None
