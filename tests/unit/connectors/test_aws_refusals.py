"""What AWS answers to a clock that is off and to the wrong region: its real answers, through botocore's stub."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.stub import Stubber

from leatstream.connectors.kinesis.connector import KinesisConnector
from leatstream.connectors.registry import open_connector
from leatstream.connectors.s3.connector import S3Connector
from leatstream.errors import StoreError

KEYS = {"region": "eu-west-1", "access_key_id": "AKIAEXAMPLE"}
SECRET = {"secret_access_key": "a-secret"}
EARLY = "Signature not yet current: 20260101T120000Z is still later than 20260101T115500Z (20260101T115000Z + 5 min.)"
LATE = "Signature expired: 20260101T115000Z is now earlier than 20260101T115500Z (20260101T120000Z - 5 min.)"
SKEWED = "The difference between the request time and the current time is too large."
SCOPE = "Credential should be scoped to a valid region, not 'eu-west-1'. "


@pytest.fixture
def kinesis() -> Iterator[tuple[KinesisConnector, Stubber]]:
    store = open_connector("kinesis", "s", KEYS, SECRET)
    assert isinstance(store, KinesisConnector)
    with Stubber(store.admin.client(5)) as stub:
        yield store, stub


@pytest.fixture
def s3() -> Iterator[tuple[S3Connector, Stubber]]:
    store = open_connector("s3", "s", {**KEYS, "bucket": "acme-events"}, SECRET)
    assert isinstance(store, S3Connector)
    with Stubber(store.admin.client(5)) as stub:
        yield store, stub


@pytest.mark.parametrize("message", [EARLY, LATE])
def test_kinesis_and_a_clock_that_is_off(kinesis: Any, message: str) -> None:
    store, stub = kinesis
    stub.add_client_error("list_streams", "InvalidSignatureException", message, 400)
    with pytest.raises(StoreError, match="the clock of this machine") as caught:
        store.test(5)
    assert caught.value.code == "store-auth-failed"
    assert "clock" in str(caught.value.faults[0].hint)


@pytest.mark.parametrize("code", ["RequestTimeTooSkewed", "RequestExpired"])
def test_s3_and_a_clock_that_is_off(s3: Any, code: str) -> None:
    store, stub = s3
    stub.add_client_error("list_objects_v2", code, SKEWED, 403)
    with pytest.raises(StoreError, match="the clock of this machine") as caught:
        store.test(5)
    assert caught.value.code == "store-auth-failed"


def test_kinesis_in_another_region(kinesis: Any) -> None:
    store, stub = kinesis
    stub.add_client_error("list_streams", "InvalidSignatureException", SCOPE, 400)
    with pytest.raises(StoreError, match="signed for another region") as caught:
        store.test(5)
    assert "endpoint_url" in str(caught.value.faults[0].hint)
    lost = "Stream clicks under account 123456789012 not found."
    stub.add_client_error("list_streams", "ResourceNotFoundException", lost, 400)
    with pytest.raises(StoreError, match="no such stream at region eu-west-1") as caught:
        store.test(5)
    assert (caught.value.code, "region" in str(caught.value.faults[0].hint)) == ("entity-not-found", True)


@pytest.mark.parametrize(
    ("code", "status", "more", "words"),
    [
        ("PermanentRedirect", 301, {"x-amz-bucket-region": "eu-central-1"}, "but in eu-central-1"),
        ("AuthorizationHeaderMalformed", 400, {"x-amz-bucket-region": "us-east-2"}, "but in us-east-2"),
        ("PermanentRedirect", 301, {}, "not in eu-west-1 (PermanentRedirect)"),
        ("AuthorizationHeaderMalformed", 400, {"x-amz-bucket-region": "<b>"}, "not in eu-west-1 (Auth"),
    ],
)
def test_a_bucket_in_another_region(
    s3: Any, code: str, status: int, more: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, stub = s3
    # botocore follows the answer once itself; that S3 then says the same is what reaches us.
    for _ in range(3):
        stub.add_client_error("list_objects_v2", code, "wrong", status, response_meta={"HTTPHeaders": more})
    with pytest.raises(StoreError) as caught:
        store.test(5)
    assert caught.value.code == "store-rejected"
    assert words in caught.value.detail
    assert "region" in str(caught.value.faults[0].hint)


@pytest.mark.parametrize(
    ("code", "why"),
    [("OptInRequired", "has not enabled this region"), ("UnrecognizedClientException", "AWS refused")],
)
def test_a_region_that_is_off(kinesis: Any, code: str, why: str) -> None:
    store, stub = kinesis
    stub.add_client_error("list_streams", code, "The security token included in the request is invalid.", 400)
    with pytest.raises(StoreError, match=why) as caught:
        store.test(5)
    assert caught.value.code == "store-auth-failed"
    assert "region" in str(caught.value.faults[0].hint)
    assert "enable" in str(caught.value.faults[0].hint).lower()
