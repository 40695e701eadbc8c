"""Micro-batches of a backlog get as large as their target time allows, while the query runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attempts import Host, attempt
from pyspark.sql import SparkSession

from leatstream_jobs.attempt import attempt as attempts
from leatstream_jobs.attempt import batch_size, polling
from leatstream_jobs.attempt.polling import set_pause

pytestmark = pytest.mark.spark
SQL = "SELECT id, __leat_rowkey, __leat_rowtime FROM leat_src_0"


def test_the_limit_grows_while_the_query_runs(
    spark: SparkSession,
    job: Any,
    topic: Callable[..., str],
    produce: Any,
    rows: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Host, "heartbeat_seconds", 0.1)
    monkeypatch.setattr(batch_size, "FIRST", 4)
    monkeypatch.setattr(batch_size, "LEAST", 1)
    source, sink = topic(1), topic(1)
    produce(source, *({"id": n} for n in range(4)))
    scan = {"entity": source, "columns": "id BIGINT"}
    spec = job([scan], sink, SQL, "id BIGINT", checkpoint=(tmp_path / "c").as_uri())
    # Each batch is far from as long as is wanted, so that the limit doubles.
    spec |= {"max_offsets_per_trigger": 500, "target_batch_ms": 3_600_000}
    sizes: list[int] = []
    taken = attempts.Progress.take

    def noted(self: Any, report: Any) -> None:
        sizes.append(int(report.get("numInputRows", 0)))
        taken(self, report)

    monkeypatch.setattr(attempts.Progress, "take", noted)
    # A busy machine counts a batch late, and the next few are of the same size.
    grown, many = [], 200

    def enough(beat: Any) -> bool:
        progress = beat.get("progress") or {}
        if progress.get("batch_limit") == 8 and not grown:
            grown.append(True)
            produce(source, *({"id": n} for n in range(4, many)))
        return progress.get("input_rows_total") == many

    monkeypatch.setattr(polling, "QUIET", ((0.0, 200),))
    pauses: list[int] = []

    def paused(query: Any, milliseconds: int) -> None:
        set_pause(query, milliseconds)
        pauses.append(query._jsq.streamingQuery().pollingDelayMs())

    monkeypatch.setattr(polling, "set_pause", paused)
    told = attempt(spark, spec, enough)
    assert pauses[0] == 200, "Spark itself has it from the running query"
    assert (told["state"], told["progress"]["batch_limit"] > 8) == ("stopped", True)
    full = [size for size in sizes if size]
    assert (full[0], 8 in full, 16 in full) == (4, True, True), sizes
    assert sum(full) == many
    assert len(rows(sink, many)) == many
    # From its checkpoint it begins with the first limit again.
    produce(source, *({"id": n} for n in range(many, many + 6)))
    sizes.clear()
    again = attempt(
        spark, spec | {"attempt": 2}, lambda beat: (beat.get("progress") or {}).get("input_rows_total") == 6
    )
    assert (again["state"], next(size for size in sizes if size)) == ("stopped", 4)
