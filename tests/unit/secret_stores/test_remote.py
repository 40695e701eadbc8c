"""Vault, Kubernetes and AWS Secrets Manager, as their real answers are."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from secret_doubles import SecretDouble, secret_double

from leatstream.errors import SecretStoreError
from leatstream.model.outside_secrets import OutsideReference
from leatstream.ports import SecretProvider
from leatstream.secret_stores import open_providers
from leatstream.secret_stores.settings import OutsideSecretsSettings

CANARY = "s3cret-canary"


@pytest.fixture
def double(caplog: pytest.LogCaptureFixture) -> Iterator[SecretDouble]:
    caplog.set_level(logging.DEBUG)
    with secret_double() as made:
        yield made
    assert CANARY not in caplog.text


def provider(kind: str, **settings: Any) -> SecretProvider:
    return open_providers(OutsideSecretsSettings.model_validate({kind: settings}), ())[kind]


def read(found: SecretProvider, text: str) -> str:
    reference = OutsideReference.read(text)
    assert found.permits(reference) is None
    return found.read(reference)


def refused(found: SecretProvider, text: str, code: str, said: str) -> None:
    with pytest.raises(SecretStoreError, match=said) as caught:
        read(found, text)
    assert caught.value.code == code
    assert CANARY not in caught.value.detail


def vault(double: SecretDouble, auth: dict[str, Any], **more: Any) -> SecretProvider:
    mounts = {"kv": 2, "kv/old": 1}
    return provider("vault", url=double.url, allow=["kv/*"], mounts=mounts, auth=auth, **more)


def test_engines_of_both_versions(double: SecretDouble, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("hvs.one\n")
    double.tokens.add("hvs.one")
    double.values = {
        "kv/data/leat/kafka": {
            "data": {"password": CANARY, "port": 1, "half": "\ud800"},
            "metadata": {"version": 3},
        },
        "kv/old/leat": {"password": CANARY},
        "kv/data/gone": {"data": None, "metadata": {"deletion_time": "2026-01-01T00:00:00Z"}},
    }
    found = vault(double, {"method": "token", "token_file": str(file)}, namespace="team")
    assert read(found, "secret://vault/kv/leat/kafka#password") == CANARY
    assert read(found, "secret://vault/kv/leat/kafka#port") == "1"
    assert read(found, "secret://vault/kv/old/leat#password") == CANARY
    assert {call[2] for call in double.calls} == {"team"}
    refused(found, "secret://vault/kv/leat/kafka#user", "secret-missing", "no key 'user'")
    refused(found, "secret://vault/kv/leat/kafka#half", "secret-missing", "not a text in UTF-8")
    refused(found, "secret://vault/kv/none#a", "secret-missing", "does not exist")
    refused(found, "secret://vault/kv/gone#a", "secret-missing", "deleted")
    file.write_text("hvs.two")  # an agent has renewed it
    refused(found, "secret://vault/kv/leat/kafka#password", "secret-store-refused", "permission denied")
    file.write_text("hvs.\u00fc")
    refused(found, "secret://vault/kv/leat/kafka#password", "secret-store-refused", "one line of ASCII text")
    file.unlink()
    refused(found, "secret://vault/kv/leat/kafka#password", "secret-store-refused", "cannot be read")
    assert found.permits(OutsideReference.read("secret://vault/sys/raw#a")) is not None


@pytest.mark.parametrize(
    ("auth", "body"),
    [
        ({"method": "approle", "role_id": "r", "secret_id_file": "id"}, {"role_id": "r", "secret_id": "x"}),
        ({"method": "kubernetes", "role": "leat", "token_file": "id"}, {"role": "leat", "jwt": "x"}),
    ],
)
def test_logins(
    double: SecretDouble,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    auth: dict[str, Any],
    body: dict[str, str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "id").write_text("x")
    double.values["kv/data/a"] = {"data": {"b": CANARY}}
    found = vault(double, auth)
    refused(found, "secret://vault/kv/a#b", "secret-store-refused", "invalid role or secret ID")
    double.logins[json.dumps(body, sort_keys=True)] = "hvs.one"
    double.calls.clear()
    assert [read(found, "secret://vault/kv/a#b") for _ in range(2)] == [CANARY] * 2
    login = f"/v1/auth/{auth['method']}/login"
    assert [call[1] for call in double.calls] == [login, "/v1/kv/data/a", "/v1/kv/data/a"]
    double.tokens.clear()  # revoked before its time
    assert read(found, "secret://vault/kv/a#b") == CANARY
    double.values["kv/data/b"] = None
    double.logins.clear()
    double.tokens.clear()
    refused(found, "secret://vault/kv/a#b", "secret-store-refused", "login")


def test_a_sealed_or_absent_vault_is_an_outage(double: SecretDouble, tmp_path: Path) -> None:
    (tmp_path / "t").write_text("hvs.one")
    auth = {"method": "token", "token_file": str(tmp_path / "t")}
    for status in (429, 500, 503):
        double.status = status
        refused(vault(double, auth), "secret://vault/kv/a#b", "secret-store-unreachable", str(status))
    absent = provider("vault", url="http://127.0.0.1:1", allow=["*"], mounts={"kv": 2}, auth=auth)
    refused(absent, "secret://vault/kv/a#b", "secret-store-unreachable", "does not answer")
    untrusted = provider(
        "vault", url=double.url.replace("http:", "https:"), allow=["*"], mounts={"kv": 2}, auth=auth
    )
    refused(untrusted, "secret://vault/kv/a#b", "secret-store-unreachable", "does not answer")


def test_secrets_of_kubernetes(double: SecretDouble, tmp_path: Path) -> None:
    (tmp_path / "t").write_text("sa-token")
    double.secrets["streams/leat-kafka"] = {"password": CANARY, "empty": ""}
    allow = ["streams/leat-*"]
    found = provider("k8s", url=double.url, allow=allow, token_file=str(tmp_path / "t"))
    assert read(found, "secret://k8s/streams/leat-kafka#password") == CANARY
    refused(found, "secret://k8s/streams/leat-kafka#user", "secret-missing", "no key 'user'")
    refused(found, "secret://k8s/streams/leat-kafka#empty", "secret-missing", "empty")
    refused(found, "secret://k8s/streams/leat-none#a", "secret-missing", "does not exist")
    assert found.permits(OutsideReference.read("secret://k8s/streams/other#a")) is not None
    assert found.permits(OutsideReference.read("secret://k8s/streamsx/leat-kafka#a")) is not None
    (tmp_path / "t").write_text("another")
    refused(found, "secret://k8s/streams/leat-kafka#password", "secret-store-refused", "is forbidden")
    double.status = 503
    refused(found, "secret://k8s/streams/leat-kafka#password", "secret-store-unreachable", "503")


def test_a_server_in_no_pod_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    refused(provider("k8s", allow=["a/b"]), "secret://k8s/a/b#c", "secret-store-refused", "not run in a pod")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    import boto3
    from moto import mock_aws

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        yield boto3.client("secretsmanager", region_name="eu-west-1")


def test_secrets_of_aws(aws: Any, caplog: pytest.LogCaptureFixture) -> None:
    arn = aws.create_secret(Name="leat/db", SecretString=json.dumps({"password": CANARY}))["ARN"]
    aws.create_secret(Name="leat/raw", SecretBinary=CANARY.encode())
    aws.create_secret(Name="leat/gone", SecretString="x")
    aws.delete_secret(SecretId="leat/gone")
    allow = ["leat/*", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:leat/*"]
    found = provider("aws-sm", allow=allow, regions=["eu-west-1"])
    caplog.set_level(logging.DEBUG)
    caplog.clear()
    assert read(found, "secret://aws-sm/leat/db#password") == CANARY
    assert read(found, "secret://aws-sm/leat/raw?region=eu-west-1") == CANARY
    assert read(found, f"secret://aws-sm/{arn}#password") == CANARY
    assert "botocore" in caplog.text
    assert CANARY not in caplog.text
    refused(found, "secret://aws-sm/leat/db#user", "secret-missing", "no key 'user'")
    refused(found, "secret://aws-sm/leat/none", "secret-missing", "ResourceNotFoundException")
    refused(found, "secret://aws-sm/leat/gone", "secret-missing", "deletion")
    for text in ("other", "leat/db?region=us-east-1", arn.replace("eu-west-1", "us-east-1")):
        assert found.permits(OutsideReference.read(f"secret://aws-sm/{text}")) is not None, text


def test_what_aws_refuses_and_when_it_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

    found: Any = provider("aws-sm", allow=["*"], regions=["eu-west-1"])

    class Client:
        fault: Exception

        def get_secret_value(self, **_: str) -> Any:
            raise self.fault

    client = found._clients["eu-west-1"] = Client()

    def said(code: str) -> ClientError:
        return ClientError({"Error": {"Code": code, "Message": CANARY}}, "GetSecretValue")

    for fault in (said("AccessDeniedException"), said("DecryptionFailure"), NoCredentialsError()):
        client.fault = fault
        refused(found, "secret://aws-sm/a", "secret-store-refused", "AWS refused the server")
    away = (
        said("InternalServiceError"),
        said("ThrottlingException"),
        EndpointConnectionError(endpoint_url="x"),
    )
    for fault in away:
        client.fault = fault
        refused(found, "secret://aws-sm/a", "secret-store-unreachable", "eu-west-1")
