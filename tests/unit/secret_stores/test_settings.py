"""What an operator can turn on, and what it must not open."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from leatstream.secret_stores.settings import OutsideSecretsSettings, permits
from leatstream.settings import Settings

VAULT = {
    "url": "https://v",
    "allow": ["kv/leat/*"],
    "auth": {"method": "token", "token_file": "/t"},
}


def test_everything_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Settings().outside_secrets
    assert [found.env, found.file, found.vault, found.aws_sm, found.k8s] == [None] * 5
    setting = {"aws-sm": {"allow": ["leat/*"], "regions": ["eu-west-1"]}, "vault": VAULT}
    monkeypatch.setenv("LEATSTREAM_OUTSIDE_SECRETS", json.dumps(setting))
    found = Settings().outside_secrets
    assert found.aws_sm is not None
    assert found.vault is not None
    assert found.vault.mounts == {"secret": 2}


@pytest.mark.parametrize(
    "setting",
    [
        {"env": {"allow": []}},
        {"env": {"allow": ["*"]}},
        {"env": {"allow": ["L*"]}},
        {"env": {"allow": ["LEATSTREAM_*"]}},
        {"env": {"allow": ["LEATSTREAM_KEYS_FILE"]}},
        {"env": {"allow": ["A*B"]}},
        {"file": {"roots": ["/"]}},
        {"file": {"roots": ["run/secrets"]}},
        {"file": {"roots": ["/proc/self"]}},
        {"vault": VAULT | {"url": "https://user:pw@v"}},
        {"vault": VAULT | {"auth": {"method": "token"}}},
        {"vault": VAULT | {"mounts": {"kv": 3}}},
        {"aws-sm": {"allow": ["a"], "regions": ["moon"]}},
        {"aws-sm": {"allow": ["a"], "regions": ["eu-west-1"], "role_arn": "leat"}},
        {"aws-sm": {"allow": ["a"], "regions": ["eu-west-1"], "endpoint_url": "https://h/path"}},
        {"k8s": {"allow": ["streams"]}},
        {"magic": {}},
    ],
)
def test_settings_that_open_too_much_or_mean_nothing(setting: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        OutsideSecretsSettings.model_validate(setting)


def test_a_pattern_is_a_text_or_its_beginning() -> None:
    assert permits(["kv/leat/*", "kv/one"], "kv/leat/a/b")
    assert permits(["kv/leat/*", "kv/one"], "kv/one")
    assert not permits(["kv/leat/*", "kv/one"], "kv/one/more")
    assert not permits(["kv/leat/*"], "kv/leather/a")
