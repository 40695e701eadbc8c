"""Which changes of a query keep its checkpoint."""

from __future__ import annotations

from typing import Any

import pytest

from leatstream.plan.change import classify
from leatstream.plan.job_spec import JobSpec

STORE: dict[str, Any] = {"name": "k", "kind": "kafka", "config": {}}
COLUMNS = [{"name": "n", "type": "BIGINT"}]


def job(*, delay: int | None = None, topic: str = "out", **more: Any) -> JobSpec:
    source = {"view": "v", "relation": "r", "store": STORE, "entity": "in", "columns": COLUMNS}
    sink = {"relation": "o", "store": STORE, "entity": topic, "columns": COLUMNS, "value_format": "json"}
    document = {
        "query_id": "",
        "query_name": "",
        "generation": 0,
        "attempt": 0,
        "fencing_token": "",
        "sql": "SELECT 1",
        "sources": [source | {"value_format": "json", "watermark_delay_ms": delay}],
        "sink": sink,
        "mode": "micro_batch",
        "mode_reason": "test",
        "checkpoint": "",
    }
    return JobSpec.model_validate(document | more)


UPDATE = {"output_mode": "update"}


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (job(), job(), "hot"),
        (job(), job(sql="SELECT 2"), "restart-from-offsets"),
        (job(), job(topic="other"), "refused"),
        (job(delay=1), job(delay=1, sql="SELECT 2"), "new-state"),
        (job(delay=1), job(delay=2), "restart-keep-state"),
        (
            job(delay=1, state={"keys": "x"}),
            job(delay=1, sql="SELECT 2", state={"keys": "x"}),
            "restart-keep-state",
        ),
        (job(delay=1, state={"keys": "x"}), job(delay=1, sql="SELECT 2", state={"keys": "y"}), "new-state"),
        (job(delay=1), job(delay=1, trigger_interval_ms=5), "restart-keep-state"),
        # Groups without a window have no watermark, and state all the same.
        (job(**UPDATE), job(sql="SELECT 2", **UPDATE), "new-state"),
        (job(**UPDATE), job(trigger_interval_ms=5, **UPDATE), "restart-keep-state"),
        (job(delay=1), job(delay=1, **UPDATE), "new-state"),
        (job(), job(**UPDATE), "new-state"),
    ],
)
def test_change(old: JobSpec, new: JobSpec, kind: str) -> None:
    assert classify(old, new).kind == kind


def test_a_log_of_undecodable_records_is_a_second_reader() -> None:
    new = job()
    sources = [new.sources[0].model_copy(update={"log_entity": "bad"})]
    assert classify(job(), new.model_copy(update={"sources": sources})).kind == "new-state"
