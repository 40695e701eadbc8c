"""``LEATSTREAM_OIDC``: what is read, and what is refused at the start of a server."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from leatstream.cli.serving import read_settings
from leatstream.errors import StackError

PAGE = Path(__file__).parents[3] / "docs" / "sign-in.md"
RULE = {"claim": "sub", "equals": "ann", "role": "reader"}
ISSUER: dict[str, Any] = {"issuer": "https://id.example", "audience": "leat", "rules": [RULE]}


def read(monkeypatch: pytest.MonkeyPatch, value: object) -> Any:
    """The issuers of a server with this value."""
    monkeypatch.setenv("LEATSTREAM_OIDC", value if isinstance(value, str) else json.dumps(value))
    return read_settings().oidc


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = read(monkeypatch, [ISSUER])
    assert found.algorithms == ("RS256", "ES256", "EdDSA")
    assert (found.account_claim, found.client_id, found.jwks_url) == ("sub", None, None)
    assert found.rules[0].scope == "write"


@pytest.mark.parametrize(
    "url", ["https://id.example/realms/shop/", "http://127.0.0.1:8080", "http://[::1]/x"]
)
def test_issuers_that_are_read(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    assert read(monkeypatch, [ISSUER | {"issuer": url}])[0].issuer == url


def test_the_blocks_of_the_page_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocks = re.findall(r"^```json\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    authority = tmp_path / "ca.crt"
    authority.touch()
    secret = tmp_path / "secret"
    secret.write_text("s")
    for block in blocks:
        text = block.replace("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt", str(authority))
        text = text.replace("/etc/leatstream/oidc-secret", str(secret))
        assert len(read(monkeypatch, text)) == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("{not json", "it is not valid JSON"),
        ({}, "LEATSTREAM_OIDC: "),
        ([{}], r"LEATSTREAM_OIDC at \[0\]\.issuer: Field required"),
        ([ISSUER | {"issuer": "http://id.example"}], r"\[0\]\.issuer: .*begins with https://"),
        ([ISSUER | {"issuer": "https://id.example/?a=b"}], r"\[0\]\.issuer: "),
        ([ISSUER | {"issuer": "https://id.example/#a"}], r"\[0\]\.issuer: "),
        ([ISSUER | {"issuer": "https://ann:pw@id.example"}], r"\[0\]\.issuer: "),
        ([ISSUER | {"jwks_url": "http://id.example/keys"}], r"\[0\]\.jwks_url: "),
        ([ISSUER | {"algorithms": ["none"]}], r"\[0\]\.algorithms\[0\]: "),
        ([ISSUER | {"algorithms": ["HS256"]}], r"\[0\]\.algorithms\[0\]: "),
        ([ISSUER | {"algorithms": []}], r"\[0\]\.algorithms: "),
        ([ISSUER | {"audience": ""}], r"\[0\]\.audience: "),
        ([ISSUER | {"audiences": "x"}], r"\[0\]\.audiences: "),
        ([ISSUER | {"ca_file": "/nowhere/ca.pem"}], r"\[0\]\.ca_file: "),
        ([ISSUER | {"rules": []}], r"\[0\]\.rules: "),
        ([ISSUER | {"rules": [RULE | {"prefix": "a"}]}], r"\[0\]\.rules\[0\]: .*either equals or prefix"),
        ([ISSUER | {"rules": [{"claim": "sub", "role": "reader"}]}], r"either equals or prefix"),
        ([ISSUER | {"rules": [RULE | {"scope": "all"}]}], r"\[0\]\.rules\[0\]\.scope: "),
        ([ISSUER | {"client_secret_variable": "NO_SUCH"}], r"\[0\]: .*client_id is missing"),
        ([ISSUER | {"cli_client_id": "a"}], r"\[0\]: .*client_id is missing"),
        (
            [ISSUER | {"client_id": "a", "client_secret_variable": "NO_SUCH"}],
            r"\[0\]: .*variable NO_SUCH holds no client secret",
        ),
        ([ISSUER | {"client_id": "a", "client_secret_file": "/nowhere/s"}], r"\[0\]\.client_secret_file: "),
        ([ISSUER | {"client_id": "a", "client_secret": "pw@"}], r"\[0\]\.client_secret: "),
        ([ISSUER, ISSUER], r"issuer https://id\.example is named twice"),
        (
            [ISSUER | {"client_id": "a"}, ISSUER | {"issuer": "https://b.example", "client_id": "b"}],
            "only one issuer can have a client_id",
        ),
    ],
)
def test_what_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch, value: object, text: str) -> None:
    with pytest.raises(StackError, match=text) as caught:
        read(monkeypatch, value)
    assert "LEATSTREAM_OIDC" in caught.value.detail
    assert "pw@" not in caught.value.detail
