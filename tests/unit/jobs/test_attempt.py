"""What an attempt does without Spark; with it: tests/integration/jobs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from leatstream.plan.job_spec import ColumnSpec, JobSpec, Mode, SinkSpec, SourceSpec, StoreRef
from leatstream_jobs.attempt import Attempt

STORE = StoreRef(name="s", kind="kafka", config={})
COLUMNS = [ColumnSpec(name="a", type="BIGINT")]
SOURCE = SourceSpec(
    view="leat_src_0", relation="d.s.r", store=STORE, entity="t", columns=COLUMNS, value_format="json"
)
SPEC = JobSpec(
    query_id="q",
    query_name="q",
    generation=1,
    attempt=1,
    fencing_token="f",
    sql="",
    sources=[SOURCE],
    sink=SinkSpec(relation="d.s.o", store=STORE, entity="o", columns=COLUMNS, value_format="json"),
    mode=Mode.MICRO_BATCH,
    mode_reason="",
    checkpoint="file:///c",
)


class Store:
    """A source's store."""

    def incarnation(self, entity: str, timeout: float) -> str:
        return f"{entity} the first"

    def watch_source(self, source: SourceSpec) -> None:
        return None


class Disk:
    """Where the sources' identities are kept; full at first."""

    def __init__(self) -> None:
        self.tries: list[dict[str, str]] = []

    def write(self, identities: dict[str, str]) -> None:
        self.tries.append(dict(identities))
        if len(self.tries) == 1:
            raise RuntimeError("No space left on device")


def test_a_job_outlives_a_disk_that_is_full_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    driver: Any = SimpleNamespace()
    spark: Any = SimpleNamespace()
    monkeypatch.setattr("leatstream_jobs.attempt.SOURCE_CHECK", 0.0)
    attempt: Any = Attempt(driver, spark, SPEC.model_dump(mode="json"))
    attempt._known, attempt._state = Disk(), "running"
    started = SimpleNamespace(scans=[SimpleNamespace(source=SOURCE, connector=Store())])
    for _ in range(3):
        attempt._check_sources(started)
        assert attempt._failure is None
    assert attempt._known.tries == [{"leat_src_0": "t the first"}] * 2, "kept once"
