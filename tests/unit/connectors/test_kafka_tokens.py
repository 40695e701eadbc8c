"""Fetching tokens, as far as it goes without an endpoint."""

from __future__ import annotations

import pytest

from leatstream.connectors.kafka.login import KafkaOauth
from leatstream.connectors.kafka.tokens import fetch_token
from leatstream.errors import StoreError


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".example", "999.1.1.1"])
def test_a_host_that_no_name_can_be_is_told_like_one_that_does_not_answer(host: str) -> None:
    oauth = KafkaOauth(token_url=f"https://{host}/t", client_id="leat", client_secret="s3cret")
    with pytest.raises(StoreError) as caught:
        fetch_token("s", oauth)
    assert caught.value.code == "store-unreachable"
    assert f"https://{host}/t does not answer" in caught.value.detail
    assert "s3cret" not in str(caught.value)
