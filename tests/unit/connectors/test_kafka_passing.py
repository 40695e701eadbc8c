"""A broker that hands a partition over has refused nothing."""

from __future__ import annotations

import time
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from leatstream.connectors.kafka.admin import KafkaAdmin
from leatstream.connectors.kafka.settings import KafkaConfig
from leatstream.connectors.kafka.transactions import Target, _told
from leatstream.errors import StoreError

CODES = {
    KafkaError.NOT_LEADER_FOR_PARTITION: "store-unreachable",
    KafkaError.LEADER_NOT_AVAILABLE: "store-unreachable",
    KafkaError.COORDINATOR_NOT_AVAILABLE: "store-unreachable",
    KafkaError.POLICY_VIOLATION: "store-rejected",
    KafkaError.INVALID_RECORD: "store-rejected",
}


@pytest.mark.parametrize(("number", "code"), CODES.items())
def test_a_batch_is_refused_or_waits(number: int, code: str) -> None:
    """Found by the fault suite: the end of the batch topic was asked for while the broker came back."""
    admin: Any = SimpleNamespace(store="s")
    target = Target("s", KafkaConfig(bootstrap_servers="h:1"), "t", "qry_1", "c", 1)
    assert _told(admin, target, KafkaException(KafkaError(number))).code == code


@pytest.mark.parametrize(("number", "code"), CODES.items())
def test_what_is_asked_of_a_cluster_is_refused_or_waits(number: int, code: str) -> None:
    admin = KafkaAdmin.__new__(KafkaAdmin)
    admin.store = "s"
    found = admin.rejected(KafkaException(KafkaError(number)), "creating topic t")
    assert found.code == code
    assert found.detail.startswith("Store s: creating topic t ")


def test_a_cluster_that_does_not_answer_is_told_in_the_words_of_rest_and_of_sql() -> None:
    admin = KafkaAdmin.__new__(KafkaAdmin)
    admin.store, admin.servers, admin._heard = "s", "h:1", deque()
    hint = admin.unreachable(KafkaException(KafkaError(KafkaError._TRANSPORT)), 5.0).faults[0].hint
    for word in ("bootstrap_servers", "'uris'", "security_protocol", "'tls.disabled'"):
        assert word in str(hint)


def test_a_refused_login_that_has_passed_is_no_answer_to_a_later_question() -> None:
    """Passwords are changed, and brokers refuse logins while they start: what waits later is to go on."""
    admin = KafkaAdmin("s", KafkaConfig(bootstrap_servers="h:1"))
    before = time.monotonic()
    admin.settings()["error_cb"](KafkaError(KafkaError._AUTHENTICATION))
    with pytest.raises(StoreError, match="refused the login"):
        admin.raise_if_final(before)
    admin.raise_if_final(time.monotonic())
    for _ in range(1000):
        admin.settings()["error_cb"](KafkaError(KafkaError._TRANSPORT))
    assert len(admin._heard) == 100
