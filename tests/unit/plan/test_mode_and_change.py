"""Which mode a job runs in, and what a changed statement does to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from leatstream.plan.change import classify
from leatstream.plan.job_spec import ColumnSpec, Delivery, JobSpec, Mode, SinkSpec, SourceSpec, StoreRef
from leatstream.plan.mode import Shape, choose_mode

PLAIN = Shape(
    stateful=False,
    realtime_sources=True,
    realtime_sink=True,
    skips_records=False,
    source_partitions=[2],
    slots=8,
)


@pytest.mark.parametrize(
    ("change", "mode", "reason"),
    [
        ({}, Mode.REALTIME, "stateless"),
        ({"stateful": True}, Mode.MICRO_BATCH, "state"),
        ({"realtime_sources": False}, Mode.MICRO_BATCH, "Kafka only"),
        ({"realtime_sink": False}, Mode.MICRO_BATCH, "Kafka only"),
        ({"skips_records": True}, Mode.MICRO_BATCH, "counted per batch"),
        ({"source_partitions": [6, 3]}, Mode.MICRO_BATCH, "9 partitions, 8 slots"),
        ({"source_partitions": [5, 3]}, Mode.REALTIME, "stateless"),
        ({"delivery": Delivery.EXACTLY_ONCE}, Mode.MICRO_BATCH, "exactly-once"),
        ({"wanted": "micro_batch"}, Mode.MICRO_BATCH, "asked for"),
        ({"wanted": "realtime", "stateful": True}, Mode.MICRO_BATCH, "state"),
    ],
)
def test_the_mode_and_its_reason(change: dict[str, Any], mode: Mode, reason: str) -> None:
    chosen, why = choose_mode(replace(PLAIN, **change))
    assert chosen is mode
    assert reason in why


STORE = StoreRef(name="k", kind="kafka", config={})
COLUMN = ColumnSpec(name="n", type="BIGINT")
SOURCE = SourceSpec(
    view="leat_src_0", relation="d.s.a", store=STORE, entity="a", columns=[COLUMN], value_format="json"
)
JOB = JobSpec(
    query_id="q",
    query_name="q",
    generation=1,
    attempt=3,
    fencing_token="x",
    sql="SELECT n FROM leat_src_0",
    sources=[SOURCE],
    sink=SinkSpec(relation="d.s.b", store=STORE, entity="b", columns=[COLUMN], value_format="json"),
    mode=Mode.REALTIME,
    mode_reason="",
    checkpoint="/c",
)
STATEFUL = JOB.model_copy(
    update={
        "mode": Mode.MICRO_BATCH,
        "sources": [SOURCE.model_copy(update={"watermark_delay_ms": 1000})],
        "conf": {"spark.sql.shuffle.partitions": "2"},
    }
)


@pytest.mark.parametrize(
    ("old", "change", "kind"),
    [
        (JOB, {}, "hot"),
        (JOB, {"attempt": 9, "fencing_token": "y", "generation": 4, "checkpoint": "/d"}, "hot"),
        (JOB, {"sql": "SELECT n + 1 AS n FROM leat_src_0"}, "restart-from-offsets"),
        (JOB, {"mode": Mode.MICRO_BATCH}, "new-state"),
        (JOB, {"sources": [SOURCE.model_copy(update={"entity": "z"})]}, "new-state"),
        (JOB, {"sources": [SOURCE, SOURCE]}, "new-state"),
        (JOB, {"sink": JOB.sink.model_copy(update={"entity": "z"})}, "refused"),
        (STATEFUL, {"sql": "SELECT n FROM leat_src_0 WHERE n > 1"}, "new-state"),
        (STATEFUL, {"max_offsets_per_trigger": 7}, "restart-keep-state"),
        # Spark goes on with the number that the checkpoint holds.
        (STATEFUL, {"conf": {"spark.sql.shuffle.partitions": "3"}}, "restart-keep-state"),
    ],
)
def test_the_class_of_a_change(old: JobSpec, change: dict[str, Any], kind: str) -> None:
    found = classify(old, old.model_copy(update=change))
    assert found.kind == kind
    assert found.reason
