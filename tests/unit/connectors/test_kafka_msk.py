"""Amazon MSK's token: signed as AWS's rules say, worked out a second time here without botocore."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from leatstream.connectors.aws.access import AwsIdentity
from leatstream.connectors.kafka.admin import KafkaAdmin
from leatstream.connectors.kafka.msk import LIFE, sign_in
from leatstream.connectors.kafka.settings import KafkaConfig
from leatstream.errors import StoreError

ROLE = "arn:aws:iam::123456789012:role/leatstream"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


def signature(secret: str, query: dict[str, str], host: str) -> str:
    """Signature Version 4 of a GET whose parameters are ``query``."""
    listed = "&".join(f"{quote(k, safe='-_.~')}={quote(v, safe='-_.~')}" for k, v in sorted(query.items()))
    empty = hashlib.sha256(b"").hexdigest()
    asked = "\n".join(["GET", "/", listed, f"host:{host}", "", "host", empty])
    _, day, region, service, end = query["X-Amz-Credential"].split("/")
    scope = "/".join((day, region, service, end))
    digest = hashlib.sha256(asked.encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", query["X-Amz-Date"], scope, digest])
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, end):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


@pytest.mark.parametrize("session_token", [None, "of/a+role=="])
def test_the_token_is_a_signed_request(monkeypatch: pytest.MonkeyPatch, session_token: str | None) -> None:
    import botocore.session

    given = Credentials("AKIDEXAMPLE", SECRET, session_token)
    monkeypatch.setattr(botocore.session.Session, "get_credentials", lambda self: given)
    text, made, expires = sign_in("s", AwsIdentity(region="eu-west-1"), 1)
    assert expires == made + LIFE
    assert not set(text) & set("+/=")
    url = urlsplit(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode())
    assert (url.scheme, url.netloc, url.path) == ("https", "kafka.eu-west-1.amazonaws.com", "/")
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    assert query["Action"] == "kafka-cluster:Connect"
    assert (query["X-Amz-Expires"], query["X-Amz-SignedHeaders"]) == ("900", "host")
    assert query["X-Amz-Credential"].endswith("/eu-west-1/kafka-cluster/aws4_request")
    assert query.get("X-Amz-Security-Token") == session_token
    assert query.pop("User-Agent") == "leatstream"
    assert query.pop("X-Amz-Signature") == signature(SECRET, query, url.netloc)


def admin(**aws: Any) -> KafkaAdmin:
    sasl = {"mechanism": "aws_msk_iam", "aws": {"region": "eu-west-1"} | aws}
    body = {"bootstrap_servers": "h:1", "security_protocol": "sasl_ssl", "sasl": sasl}
    return KafkaAdmin("s", KafkaConfig.model_validate(body))


def test_a_machine_without_credentials_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    import botocore.session

    monkeypatch.setattr(botocore.session.Session, "get_credentials", lambda self: None)
    with pytest.raises(StoreError, match="no AWS credentials for signing in to the Kafka cluster") as caught:
        admin().settings()
    assert caught.value.code == "store-auth-failed"


def test_a_role_that_is_refused_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from botocore.credentials import AssumeRoleCredentialFetcher

    def refuse(self: AssumeRoleCredentialFetcher) -> Any:
        assert self._assume_role_kwargs() == {"RoleArn": ROLE, "RoleSessionName": "leatstream"}
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": SECRET}}, "AssumeRole")

    monkeypatch.setattr(AssumeRoleCredentialFetcher, "fetch_credentials", refuse)
    with pytest.raises(StoreError, match="AWS refused signing in to the Kafka cluster") as caught:
        admin(access_key_id="AKID", secret_access_key=SECRET, role_arn=ROLE).settings()
    assert caught.value.code == "store-auth-failed"
    assert "role_arn" in str(caught.value.faults[0].hint)
    assert SECRET not in f"{caught.value.detail}{caught.value.faults}"
