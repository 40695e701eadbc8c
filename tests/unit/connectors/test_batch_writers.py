"""Writers of whole micro-batches, without their stores."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from leatstream.connectors.kafka.settings import KafkaConfig
from leatstream.connectors.kafka.transactions import KafkaBatchWriter, Target, _told


class Tasks:
    """Tasks of Spark that cannot compute a batch."""

    def __init__(self, text: str) -> None:
        self.text = text

    def run(self, *_: Any, **__: Any) -> Any:
        raise ValueError(self.text)


@pytest.mark.parametrize("role", ["source", "sink", "table"])
def test_whose_fault_it_was_is_kept(role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is computed where it is written: what its sources say passes through here, too."""
    spec: Any = SimpleNamespace(
        query_id="q", attempt=1, checkpoint_name="g1", sink=SimpleNamespace(entity="t")
    )
    admin: Any = SimpleNamespace(topic=lambda _name, _timeout: "it is there")
    monkeypatch.setattr("leatstream.connectors.kafka.transactions.last_batch", lambda *_: None)
    writer: Any = KafkaBatchWriter("k", KafkaConfig(bootstrap_servers="b:1"), spec, admin)
    mark = f"LEAT_STORE {role} entity-not-found It is gone. LEAT_STORE_END"
    writer._tasks = Tasks(f"Job aborted: Traceback … RuntimeError: {mark} at org.apache")
    with pytest.raises(RuntimeError) as caught:
        writer.write(None, 1)
    assert str(caught.value) == mark


@pytest.mark.parametrize(
    ("code", "abort", "told"),
    [
        ("MSG_SIZE_TOO_LARGE", True, "store-rejected"),
        ("INVALID_RECORD", True, "store-rejected"),
        ("NOT_ENOUGH_REPLICAS", True, "store-unreachable"),
        ("_MSG_TIMED_OUT", True, "store-unreachable"),
        ("_FENCED", False, "store-unreachable"),
        ("TOPIC_AUTHORIZATION_FAILED", True, "store-auth-failed"),
        ("UNKNOWN_TOPIC_OR_PART", True, "entity-not-found"),
    ],
)
def test_what_another_try_may_cure_is_tried_again(code: str, abort: bool, told: str) -> None:
    """Any fault of a record makes the transaction one that has to be given up; not each is worth a repetition."""
    config = KafkaConfig(bootstrap_servers="b:1")
    fault = KafkaError(getattr(KafkaError, code), "because", txn_requires_abort=abort)
    admin: Any = SimpleNamespace(store="k")
    assert _told(admin, Target("k", config, "t", "q", "g1", 1), KafkaException(fault)).code == told
