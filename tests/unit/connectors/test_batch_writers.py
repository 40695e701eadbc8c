"""Writers of whole micro-batches, without their stores."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from leatstream.connectors.kafka_settings import KafkaConfig
from leatstream.connectors.kafka_transactions import KafkaBatchWriter


class Frame:
    """A batch that cannot be computed."""

    def __init__(self, text: str) -> None:
        self.text = text

    def repartition(self, number: int) -> Any:
        raise ValueError(self.text)


@pytest.mark.parametrize("role", ["source", "sink", "table"])
def test_whose_fault_it_was_is_kept(role: str) -> None:
    """A batch is computed where it is written: what its sources say passes through here, too."""
    spec: Any = SimpleNamespace(
        query_id="q", attempt=1, checkpoint="file:///c/g1", sink=SimpleNamespace(entity="t")
    )
    admin: Any = SimpleNamespace(topic=lambda _name, _timeout: "it is there")
    writer = KafkaBatchWriter("k", KafkaConfig(bootstrap_servers="b:1"), spec, admin)
    mark = f"LEAT_STORE {role} entity-not-found It is gone. LEAT_STORE_END"
    frame: Any = Frame(f"Job aborted: Traceback … RuntimeError: {mark} at org.apache")
    with pytest.raises(RuntimeError) as caught:
        writer.write(frame, 1)
    assert str(caught.value) == mark
