"""Spark's progress reports as the heartbeat tells them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from leatstream.connectors.entities import SourceWatch
from leatstream.plan.job_spec import ColumnSpec, SourceSpec, StoreRef
from leatstream_jobs.analysis.analyze import plain_message, simple_type
from leatstream_jobs.attempt.live import LiveCounts
from leatstream_jobs.attempt.progress import Progress
from leatstream_jobs.runtime.session import settings

COLUMNS = [ColumnSpec(name="a", type="BIGINT")]


def source(relation: str, entity: str) -> SourceSpec:
    store = StoreRef(name="s", kind="kafka", config={})
    return SourceSpec(
        view=relation, relation=relation, store=store, entity=entity, columns=COLUMNS, value_format="json"
    )


def report(stamp: str, **more: Any) -> dict[str, Any]:
    return {
        "timestamp": stamp,
        "batchId": 3,
        "numInputRows": 10,
        "inputRowsPerSecond": float("inf"),
        "processedRowsPerSecond": 12.34567,
        "batchDuration": 5,
        "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"},
        "stateOperators": [
            {"numRowsTotal": 2, "memoryUsedBytes": 7, "numRowsDroppedByWatermark": 3},
            {"numRowsTotal": 1, "memoryUsedBytes": 1},
        ],
        "observedMetrics": {
            "leat_skipped_v": {"skipped": 2, "untimely": 1},
            "leat_read_v": {"size": 40},
            "leat_read_w": {"size": None},
            "leat_sent": {"size": 3},
            "other": {"skipped": 9, "size": 9},
        },
        "sink": {"numOutputRows": 8},
        "sources": [
            {"endOffset": '{"b":{"0":5}}', "latestOffset": '{"b":{"0":9}}'},
            {"endOffset": {"a": {"0": 1, "1": 2}}, "latestOffset": None},
        ],
    } | more


def test_totals_add_up_and_sources_are_found_by_entity() -> None:
    progress = Progress([source("r.a", "a"), source("r.b", "b")])
    assert progress.as_json() is None
    progress.take(report("2024-01-01T00:00:00.000Z"))
    progress.take(report("2024-01-01T00:00:01.000Z", sink={"numOutputRows": -1}))
    assert (progress.read_bytes, progress.sent_bytes) == (80, 6)
    told = progress.as_json()
    assert told == {
        "batch_id": 3,
        "input_rows_total": 20,
        "output_rows_total": 8,
        "input_rows_per_second": None,
        "processed_rows_per_second": 12.346,
        "output_rows_per_second": None,
        "batch_duration_ms": 5,
        "watermark": None,
        "skipped_rows_total": 4,
        "untimely_rows_total": 2,
        "late_rows_total": 6,
        "state_rows": 3,
        "state_bytes": 8,
        "batch_limit": None,
        "sources": [
            {"relation": "r.b", "entity": "b", "end_offsets": {"0": 5}, "lag": 4, "partition_lags": {"0": 4}},
            {
                "relation": "r.a",
                "entity": "a",
                "end_offsets": {"0": 1, "1": 2},
                "lag": None,
            },
        ],
    }


def test_what_batches_tell_that_keep_rows_themselves() -> None:
    @dataclass
    class Kept:
        late_rows: int = 2
        state_rows: int = 3
        watermark_ms: int | None = None

    progress = Progress([], figures=Kept())
    progress.take({"timestamp": "2026-01-01T00:00:00.000Z", "batchId": 1})
    told = progress.as_json()
    assert told is not None
    assert (told["late_rows_total"], told["state_rows"], told["watermark"]) == (2, 3, None)
    progress.figures = Kept(watermark_ms=1_767_225_600_250)
    told = progress.as_json()
    assert told is not None
    assert told["watermark"] == "2026-01-01T00:00:00.250Z"


def test_positions_that_are_no_numbers_are_told_as_they_are() -> None:
    progress = Progress([source("r.a", "a"), source("r.s", "s")])
    ends = {
        "start": "TRIM_HORIZON",
        "made": "1",
        "s": {"shardId-000000000000": "4958!", "shardId-000000000001": ""},
    }
    both = [{"endOffset": ends, "latestOffset": None}, {"endOffset": ends, "latestOffset": ends}]
    progress.take(report("2024-01-01T00:00:00.000Z", sources=both))
    told = progress.as_json()
    assert told is not None
    assert told["sources"][0] == {"relation": "r.s", "entity": "s", "end_offsets": ends["s"], "lag": None}


def test_what_a_store_keeps_for_its_reader_is_told() -> None:
    progress = Progress([source("r.t", "t")])
    place = {"t": {"lsn": "0/1A", "rows": 3}, "__state": '{"after": ["secret key"]}'}
    progress.take(report("2024-01-01T00:00:00.000Z", sources=[{"endOffset": place, "latestOffset": None}]))
    progress.watches["r.t"] = SourceWatch("leat_q_g1_0", 10, 200, None)
    told = progress.as_json()
    assert told is not None
    assert told["sources"] == [
        {
            "relation": "r.t",
            "entity": "t",
            "end_offsets": {"lsn": "0/1A", "rows": 3},
            "lag": None,
            "slot": {"name": "leat_q_g1_0", "lag_bytes": 10, "kept_bytes": 200, "left_bytes": None},
        }
    ]


def test_one_topic_read_twice() -> None:
    progress = Progress([source("r.x", "t"), source("r.y", "t")])
    same = {"endOffset": {"t": {"0": 1}}, "latestOffset": {"t": {"0": 1}}}
    progress.take(report("2024-01-01T00:00:00.000Z", sources=[same, same]))
    told = progress.as_json()
    assert told is not None
    assert [s["relation"] for s in told["sources"]] == ["r.x", "r.y"]


def test_sources_of_one_name_are_no_silence_while_one_of_them_is_behind() -> None:
    """The orders of one store joined with the orders of another: which is which a report does not tell."""
    progress = Progress([source("us.orders", "orders"), source("eu.orders", "orders"), source("r.b", "b")])

    def read(us: int, eu: int) -> dict[str, Any]:
        ends = [("orders", us, 9), ("orders", eu, 5), ("b", 1, 1)]
        both = [{"endOffset": {t: {"0": at}}, "latestOffset": {t: {"0": end}}} for t, at, end in ends]
        progress.take(report("2024-01-01T00:00:00.000Z", sources=both))
        return progress.read_to()

    assert read(3, 5) == read(9, 4) == {"b": [{"0": 1}]}
    assert read(9, 5) == {"orders": [{"0": 9}, {"0": 5}], "b": [{"0": 1}]}


def test_types_are_written_so_that_they_read_back() -> None:
    nested = {
        "type": "struct",
        "fields": [
            {"name": "a b", "type": {"type": "array", "elementType": "long", "containsNull": True}},
            {"name": "m", "type": {"type": "map", "keyType": "string", "valueType": "decimal(5,2)"}},
        ],
    }
    assert simple_type(nested) == "struct<`a b`:array<bigint>,m:map<string,decimal(5,2)>>"
    assert simple_type("timestamp_ntz") == "timestamp_ntz"


def test_messages_without_excerpt_and_plan() -> None:
    text = (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `x` cannot be resolved. SQLSTATE: 42703; line 1 pos 7;"
        "\n'Project ['x]\n+- LocalRelation <empty>\n"
    )
    assert plain_message(text) == "A column `x` cannot be resolved."
    parse = "[PARSE_SYNTAX_ERROR] Syntax error at end of input. SQLSTATE: 42601 (line 1, pos 9)\n\n== SQL ==\nx\n^"
    assert plain_message(parse) == "Syntax error at end of input."


def test_session_settings_hold_what_checkpoints_and_types_rest_on(tmp_path: Any) -> None:
    found = settings(
        tmp_path, 4, {"LEATSTREAM_SPARK_JARS": "/a.jar:/b.jar", "LEATSTREAM_DRIVER_MEMORY": "1g"}
    )
    assert found["spark.master"] == "local[4]"
    assert found["spark.jars"] == "/a.jar,/b.jar"
    assert found["spark.driver.memory"] == "1g"
    assert found["spark.sql.session.timeZone"] == "UTC"
    assert found["spark.sql.ansi.enabled"] == "true"
    assert "RocksDB" in found["spark.sql.streaming.stateStore.providerClass"]


def test_the_archive_of_classes_is_named_once_it_is_there(tmp_path: Any) -> None:
    archive = tmp_path / "a place" / "spark.jsa"
    archive.parent.mkdir()

    def flags() -> str:
        return settings(tmp_path, 4, {"LEATSTREAM_CLASS_ARCHIVE": str(archive)})[
            "spark.driver.extraJavaOptions"
        ]

    absent = flags()
    archive.touch()  # this Java cannot write one
    assert flags() == absent
    archive.write_bytes(b"classes")
    assert f'"-XX:SharedArchiveFile={archive}"' in flags()
    assert "SharedArchiveFile" not in absent


def test_what_the_driver_ran_before_is_none_of_the_querys_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [LiveCounts(7, 101, 100), LiveCounts(8, 5, 5)]
    monkeypatch.setattr("leatstream_jobs.attempt.progress.newest", lambda _: 7)
    monkeypatch.setattr("leatstream_jobs.attempt.progress.look", lambda _: seen.pop(0))
    progress, spark = Progress([source("r.a", "a")]), SimpleNamespace()
    progress.begin_live(spark)  # type: ignore[arg-type]
    progress.look_live(spark)  # type: ignore[arg-type]
    assert progress.as_json() is None
    progress.look_live(spark)  # type: ignore[arg-type]
    assert (progress.as_json() or {})["input_rows_total"] == 5


def test_reports_after_the_clock_was_set_back_are_taken_in() -> None:
    """Else progress, lag and the size of batches would stand still until it is as late again."""
    times = ["2026-01-01T10:00:00.000Z", "2026-01-01T10:00:01.000Z"]

    def report(at: str) -> Any:
        text = json.dumps({"timestamp": at, "batchId": 1, "numInputRows": 1, "sources": []})
        return SimpleNamespace(timestamp=lambda: at, json=lambda: text)

    query: Any = SimpleNamespace(_jsq=SimpleNamespace(recentProgress=lambda: [report(at) for at in times]))
    progress = Progress([])
    assert progress.look(query)
    assert not progress.look(query)
    times.append("2026-01-01T09:00:00.000Z")
    assert progress.look(query)
    assert (progress.look(query), progress.input_rows) == (False, 3)
