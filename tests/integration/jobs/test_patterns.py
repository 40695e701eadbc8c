"""MATCH_RECOGNIZE on real Spark: tests/fixtures/queries/patterns, batch by batch, and what survives a crash.

A case tells what ``statement_cases`` says. Each batch writes what the watermark that it brings decides;
``late`` is how many rows came behind the one before. With ``restart`` the job is started anew for each batch.
With ``LEATSTREAM_REWRITE_CASES=1`` the outcomes are written down instead: read the difference.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from short_form import later
from statement_cases import FileStore, Pairs, job_of, ordered

from leatstream.connectors.registry import open_connector
from leatstream.model.objects import ROWMETA
from leatstream.plan.job_spec import SourceSpec, StoreRef
from leatstream_jobs.attempt import run_query
from leatstream_jobs.patterns.batches import PatternBatches
from leatstream_jobs.patterns.cells import place
from leatstream_jobs.reading import idle

pytestmark = pytest.mark.spark
FOLDER = Path(__file__).parents[2] / "fixtures" / "queries" / "patterns"
CASES = {path.stem: path for path in sorted(FOLDER.glob("*.json"))}
REWRITE = bool(os.environ.get("LEATSTREAM_REWRITE_CASES"))


class Run:
    """A statement over one stream, whose batches are put in one by one."""

    def __init__(
        self, spark: SparkSession, case: Mapping[str, Any], job: Callable[..., Any], folder: Path
    ) -> None:
        self.spark, self.store = spark, FileStore(folder / "records")
        self.store.put(0, [])
        spec = job_of(spark, case, job, ("s", "out"))
        partitions = "2" if case.get("restart") else "1"
        self.spec = spec.model_copy(update={"conf": {"spark.sql.shuffle.partitions": partitions}})
        self.query: Any = None
        self.late = 0

    @property
    def batches(self) -> PatternBatches:
        """What works the batches off."""
        assert isinstance(self.started.batches, PatternBatches)
        return self.started.batches

    def begin(self) -> None:
        """Start, or start again."""
        store: Any = self.store
        self.started = run_query.start(self.spark, self.spec, lambda _: store, 2)
        self.query = self.started.query

    def batch(self, records: list[dict[str, Any]]) -> Pairs:
        """Put records in; gives what that writes."""
        if self.query is None:
            self.begin()
        self.store.batch += 1
        if records:
            self.store.put(self.store.batch, records)
        self.query.processAllAvailable()
        return self.store.written.get(self.store.batch, [])

    def end(self) -> None:
        """Stop; the checkpoint stays."""
        if self.query is not None:
            self.query.stop()
            self.query = None
            self.late += self.batches.late_rows


# Their mechanisms are shown by other cases too.
LATER = (
    "alternation",
    "counted",
    "greedy_within",
    "nested_columns",
    "over_sub_select",
    "skip_past_last_row",
    "skip_to_first",
    "without_partitions",
)


@pytest.mark.parametrize("name", later(CASES, LATER))
def test_case(name: str, spark: SparkSession, job: Callable[..., Any], tmp_path: Path) -> None:
    case = json.loads(CASES[name].read_text(encoding="utf-8"))
    run = Run(spark, case, job, tmp_path)
    found: list[Pairs] = []
    try:
        for records in case["batches"]:
            found.append(run.batch(records))
            if case.get("restart"):
                run.end()
    finally:
        run.end()
    if REWRITE:
        CASES[name].write_text(_written(case | {"expected": found, "late": run.late}), encoding="utf-8")
        return
    for number, (got, expected) in enumerate(zip(found, case["expected"], strict=True)):
        assert ordered(got) == ordered(expected), f"batch {number}"
    assert run.late == case["late"]


@pytest.mark.core
def test_a_silent_source_and_a_sink_that_fails_once(
    spark: SparkSession, job: Callable[..., Any], tmp_path: Path
) -> None:
    case = {
        "sql": "CREATE STREAM m AS SELECT * FROM s WITH ('source.idle.timeout.millis' = 1000) MATCH_RECOGNIZE ("
        "PARTITION BY k ORDER BY rowtime MEASURES COUNT(*) AS c PATTERN (A+) WITHIN 1 MINUTE DEFINE A AS n > 0)",
        "columns": "k VARCHAR, n BIGINT, at TIMESTAMP",
    }
    run = Run(spark, case, job, tmp_path)
    try:
        rows = [{"k": k, "n": n, "at": f"2026-01-01 00:00:0{n}"} for k, n in (("a", 1), ("a", 2), ("b", 3))]
        assert run.batch(rows) == []
        assert run.batches.state_rows == 2
        folder = idle.tick_folder(run.spec.checkpoint, run.spec.sources[0].view)
        run.store.broken = True
        idle.write_tick(spark, folder, 1_767_225_600_000 + 72_000)
        with pytest.raises(StreamingQueryException):
            run.batch([])
        assert isinstance(run.batches.error, ConnectionError)
        run.end()
        run.store.broken = False
        # The matches are in the snapshot already: the repeated batch only writes them.
        assert ordered(run.batch([])) == ordered([(None, {"k": "a", "c": 2})])
        assert run.batches.state_rows == 1
        assert run.batches.watermark_ms == 1_767_225_600_000 + 62_000
        late = [{"k": "b", "n": 5, "at": "2026-01-01 00:01:02"}]
        assert run.batch(late) == []
        idle.write_tick(spark, folder, 1_767_225_600_000 + 75_000)
        assert run.batch([]) == [(None, {"k": "b", "c": 1})]
        assert (run.batches.state_rows, run.batches.late_rows) == (0, 1)
    finally:
        run.end()


def _written(case: Mapping[str, Any]) -> str:
    """The case with one record per line."""
    parts = []
    for key, value in case.items():
        shown = json.dumps(value, ensure_ascii=False)
        if key in ("batches", "expected"):
            lines = ["[" + ",\n     ".join(json.dumps(r, ensure_ascii=False) for r in b) + "]" for b in value]
            shown = "[\n    " + ",\n    ".join(lines) + "\n  ]"
        parts.append(f'  "{key}": {shown}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


# Kind: settings, then positions in their order.
AWS = {"region": "eu-west-1", "access_key_id": "AKIAEXAMPLE"}
POSITIONS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "kafka": (
        {"bootstrap_servers": "localhost:1"},
        [{"partition": 0, "offset": 9}, {"partition": 0, "offset": 10}, {"partition": 11, "offset": 1}],
    ),
    "kinesis": (
        AWS,
        [
            {"shard": "shardId-000000000000", "sequence_number": "9" * 55},
            {"shard": "shardId-000000000000", "sequence_number": "1" + "0" * 55},
            # Records of an aggregate have its number and their place in it.
            {"shard": "shardId-000000000000", "sequence_number": "2" + "0" * 55 + ".0"},
            {"shard": "shardId-000000000000", "sequence_number": "2" + "0" * 55 + ".9"},
            {"shard": "shardId-000000000000", "sequence_number": "2" + "0" * 55 + ".10"},
            {"shard": "shardId-000000000000", "sequence_number": "2" + "0" * 54 + "1"},
            {"shard": "shardId-000000000001", "sequence_number": "1" * 55},
        ],
    ),
    "s3": (
        AWS | {"bucket": "data"},
        [
            {"file": "a/1.json", "offset": 9},
            {"file": "a/1.json", "offset": 10},
            {"file": "a/2.json", "offset": 0},
        ],
    ),
}


@pytest.mark.parametrize("kind", POSITIONS)
def test_rows_of_one_time_stand_in_the_order_of_their_source(kind: str, spark: SparkSession) -> None:
    settings, positions = POSITIONS[kind]
    secrets = {"secret_access_key": "a-secret"} if "access_key_id" in settings else {}
    source = SourceSpec(
        view="v",
        relation="d.s.r",
        store=StoreRef(name="s", kind=kind, config={}),
        entity="e",
        columns=[],
        value_format="json",
    )
    frame = open_connector(kind, "s", settings, secrets).read_stream(spark, source, realtime=False)
    meta = frame.select(ROWMETA).schema
    members = meta[ROWMETA].dataType.fieldNames()  # type: ignore[attr-defined]
    always = {"topic": "e", "timestamp_type": 1}
    rows = [(tuple((always | one).get(name) for name in members),) for one in positions]
    known = spark.createDataFrame(rows, meta)
    places = [row[0] for row in known.select(place(known)).collect()]
    assert None not in places
    assert places == sorted(places)
    assert len(set(places)) == len(places)
