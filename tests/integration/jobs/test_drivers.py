"""Real driver processes, a real broker: what a query does from its first record to its end."""

from __future__ import annotations

import copy
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Producer
from driver_variables import driver_variables
from small_api import Pool, SmallApi

from leatstream.connectors.kafka.connector import KafkaConnector
from leatstream.dev.class_archive import VARIABLE as ARCHIVE_VARIABLE

FILTER = "SELECT id, upper(name) AS name, __leat_rowkey, __leat_rowtime FROM leat_src_0 WHERE name <> 'x'"
COLUMNS = "id BIGINT NOT NULL, name VARCHAR"
OUT = "id BIGINT, name VARCHAR"


def documents(numbers: range) -> list[dict[str, Any]]:
    return [{"id": i, "name": f"n{i}"} for i in numbers]


def java_of(pid: int) -> psutil.Process:
    return next(p for p in psutil.Process(pid).children(recursive=True) if p.name() == "java")


def wait_gone(process: psutil.Process, timeout: float = 30) -> None:
    process.wait(timeout)


@pytest.mark.long  # e2e/test_main_job.py does the same through the server
def test_a_realtime_filter_runs_stops_and_goes_on_where_it_stopped(
    pool: Pool,
    job: Any,
    topic: Callable[..., str],
    produce: Any,
    rows: Any,
    kafka: KafkaConnector,
    bootstrap: str,
    eventually: Callable[..., Any],
) -> None:
    source, sink = topic(), topic()
    produce(source, {"id": -1, "name": "too early"})
    spec = job(
        [{"entity": source, "columns": COLUMNS, "starting_position": "latest", "max_ahead_ms": 86_400_000}],
        sink,
        FILTER,
        OUT,
        mode="realtime",
    )
    driver = pool.take()
    driver.run(spec)
    produce(source, *documents(range(100)), {"id": 7000, "name": "x"})
    assert {r["id"] for r in rows(sink, 100)} == set(range(100))
    # The batch at work is told of too: the report of a real-time batch comes after a minute only.
    progress = driver.wait_progress(lambda p: p["input_rows_total"] == 101)
    assert progress["output_rows_total"] == 100
    archive = Path(driver_variables()[ARCHIVE_VARIABLE])
    mapped = {found.path for found in java_of(driver.process.pid).memory_maps()}
    assert (str(archive) in mapped) == (archive.is_file() and archive.stat().st_size > 0)
    driver.give_back()
    assert driver.states == ["starting", "running", "stopping", "stopped"]
    told = driver.beats[-1]["progress"]
    least = sum(len(json.dumps(document)) for document in documents(range(100)))
    assert least <= told["input_bytes_total"] <= least + 101 * 100
    assert 100 * len('{"id": 1}') <= told["output_bytes_total"] <= least + 100 * 100

    # The same driver takes it again, and what the first attempt has done is none of the second's.
    produce(source, *documents(range(100, 200)))
    driver.run(spec | {"attempt": 2, "realtime_batch_ms": 5_000})
    assert {beat["attempt"] for beat in driver.beats} == {2}
    assert not any("has stopped" in line for beat in driver.beats for line in beat["log"])
    produce(source, *documents(range(200, 300)))
    # At least once: what the cut-off batch had written may come again, nothing may be missing.
    eventually(lambda: {r["id"] for r in rows(sink, 300)} >= set(range(300)), what="every number")
    assert {r["id"] for r in rows(sink, 300)} == set(range(300))
    keys = [r.key for r in kafka.read_records(sink, from_beginning=True, limit=1, idle_timeout=5) if r]
    assert keys[0] is not None

    # A partition that is added is read from its first record; a real-time batch sees those that were there.
    kafka.update_entity(source, {"topic.partitions": 3}, {})
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(source, json.dumps({"id": 300, "name": "new"}).encode(), partition=2)
    assert producer.flush(30) == 0
    eventually(lambda: 300 in {r["id"] for r in rows(sink, 301)}, what="the number of the new partition")

    # The topic goes while the query reads it.
    kafka.drop_entity(source)
    told = driver.wait_state("failed")
    assert told["error"]["code"] == "source-gone"
    assert source in told["error"]["detail"]
    assert told["error"]["retryable"] is False
    assert driver.process.wait(40) == 1


@pytest.mark.long  # e2e/test_main_job.py does the same through the server
def test_micro_batches_skip_and_count_bad_records_and_survive_a_kill(
    pool: Pool, job: Any, topic: Callable[..., str], produce: Any, rows: Any, api: SmallApi
) -> None:
    source, sink = topic(), topic()
    bad = [b"no json", b"[]", b'{"name":"without id"}', b'{"id":"1","name":"quoted"}', b'{"id":5} trailing']
    produce(source, *documents(range(50)), *bad, None, {"id": 50, "name": None})
    scan = {"entity": source, "columns": COLUMNS, "on_error": "ignore"}
    spec = job([scan], sink, "SELECT id, name, __leat_rowkey, __leat_rowtime FROM leat_src_0", OUT)
    driver = pool.take()
    pool.prepare()
    driver.run(spec)
    produce(source, *bad, *documents(range(51, 100)))
    progress = driver.wait_progress(lambda p: p["skipped_rows_total"] >= 10 and p["output_rows_total"] >= 100)
    assert progress["skipped_rows_total"] == 10
    assert progress["input_rows_total"] == 111
    assert progress["sources"][0]["entity"] == source
    assert sum(progress["sources"][0]["end_offsets"].values()) == 111
    assert progress["sources"][0]["lag"] == 0
    assert {r["id"]: r["name"] for r in rows(sink, 100)}[50] is None

    # kill -9 in the middle of a flood: the JVM ends too, and the next attempt misses nothing.
    java = java_of(driver.process.pid)
    produce(source, *documents(range(100, 40_000)))
    os.kill(driver.process.pid, signal.SIGKILL)
    wait_gone(java)
    again = pool.take()
    pool.prepare()
    again.run(spec | {"attempt": 2})
    again.wait_progress(lambda p: p["sources"] and p["sources"][0]["lag"] == 0)
    seen = Counter(r["id"] for r in rows(sink, 40_000))
    assert set(seen) == set(range(40_000))

    # A newer attempt has taken over: the driver must end at once and say nothing more.
    java = java_of(again.process.pid)
    api.fenced.add(again.id)
    assert again.process.wait(30) == 3
    wait_gone(java)


def test_a_join_keeps_only_the_state_it_needs_and_a_forgotten_driver_ends(
    pool: Pool, job: Any, topic: Callable[..., str], produce: Any, rows: Any
) -> None:
    left, right, sink = topic(1), topic(1), topic(1)
    sql = (
        "SELECT a.id, a.v, b.v AS w, a.__leat_rowkey, a.__leat_rowtime "
        "FROM leat_src_0 a JOIN leat_src_1 b ON a.id = b.id AND b.__leat_rowtime BETWEEN "
        "a.__leat_rowtime - INTERVAL 5 MINUTES AND a.__leat_rowtime + INTERVAL 5 MINUTES"
    )
    columns = "id BIGINT, v VARCHAR, ts BIGINT"
    scans = [
        {"entity": e, "columns": columns, "timestamp": "ts", "watermark_delay_ms": 1000}
        for e in (left, right)
    ]
    own_api = SmallApi()
    driver = pool.start(api=own_api, orphan_seconds=5)
    driver.wait_idle()
    pool.prepare()
    driver.run(job(scans, sink, sql, "id BIGINT, v VARCHAR, w VARCHAR"))
    start = 1_700_000_000_000
    produce(left, *({"id": i, "v": "l", "ts": start + i} for i in range(200)))
    produce(right, *({"id": i, "v": "r", "ts": start + 60_000} for i in range(100)))
    driver.wait_progress(lambda p: p["state_rows"] >= 300)
    assert len(rows(sink, 100)) == 100
    _wait_until_it_looks_again(driver, own_api)

    # Time goes on: old rows can no longer match and leave the state.
    for hour in (1, 2):
        later = start + hour * 3_600_000
        produce(left, {"id": 1000, "v": "l", "ts": later})
        produce(right, {"id": 1000, "v": "r", "ts": later})
        driver.wait_progress(lambda p, t=later: p["watermark"] and _millis(p["watermark"]) >= t - 1000)
    driver.wait_progress(lambda p: p["state_rows"] <= 10)

    # Too late for the state, in time for nothing: dropped, and the query goes on.
    produce(left, {"id": 5, "v": "late", "ts": start})
    produce(right, {"id": 5, "v": "late", "ts": start})
    produce(left, {"id": 2000, "v": "l", "ts": later + 1})
    produce(right, {"id": 2000, "v": "r", "ts": later + 1})
    found = rows(sink, 103)
    assert [r for r in found if "late" in (r["v"], r["w"])] == []
    assert len(found) == 103

    # The API goes and does not come back: the driver stops its query in order, and its JVM ends with it.
    java = java_of(driver.process.pid)
    own_api.close()
    assert driver.process.wait(60) == 0
    wait_gone(java)


def _wait_until_it_looks_again(driver: Any, api: SmallApi) -> None:
    """While nothing comes there are no batches, and yet its lag does not grow old."""
    seen = {"batch": None, "since": 0.0}

    def looked_again() -> bool:
        told = driver.last
        if told["progress"]["batch_id"] != seen["batch"]:
            seen.update(batch=told["progress"]["batch_id"], since=time.monotonic())
        age = told["pulse"]["lag_age_seconds"]
        return age is not None and age < time.monotonic() - seen["since"] - 1

    api.wait(looked_again, 60, "another look at the ends of the sources")


@pytest.mark.long  # e2e/test_main_job.py does the same through the server
def test_an_undecodable_record_fails_the_query_and_is_skipped_if_told_so(
    pool: Pool, job: Any, topic: Callable[..., str], produce: Any, rows: Any, api: SmallApi
) -> None:
    source, sink = topic(1), topic(1)
    produce(source, *documents(range(3)), b'{"id":"geheim"}')
    driver = pool.take()
    spec = job([{"entity": source, "columns": COLUMNS}], sink, FILTER, OUT, mode="realtime")
    told = driver.run(spec, until="failed")
    error = told["error"]
    assert error["code"] == "undecodable-record"
    assert error["retryable"] is False
    assert f"topic {source}, partition 0, offset 3" in error["detail"]
    assert 'column id is BIGINT, the record has the string "geheim"' in error["shown"]
    assert (error["record"], error["columns"]) == (
        {"entity": source, "partition": "0", "offset": "3"},
        ["id"],
    )
    assert "geheim" not in error["detail"]  # which becomes a message, and is logged
    everything = str([beat["log"] for beat in api.beats[driver.id]]) + driver.said()
    assert "geheim" not in everything
    assert "\tat " not in everything
    assert "Traceback" not in everything
    assert driver.process.wait(40) == 1
    produce(source, {"id": 7, "name": "behind it"})
    skipping = copy.deepcopy(spec) | {"attempt": 2, "fencing_token": "second"}
    skipping["sources"][0]["skip"] = {"0": ["3"]}
    second = pool.take()
    second.run(skipping)
    assert {row["id"] for row in rows(sink, 4)} == {0, 1, 2, 7}
    pool.give_back(second)


@pytest.mark.core
def test_the_analyzer_answers_and_ends_when_it_is_no_longer_known(pool: Pool, api: SmallApi) -> None:
    driver = pool.start("analyzer")
    views = [{"name": "leat_src_0", "ddl": "id BIGINT NOT NULL, name STRING, __leat_rowtime TIMESTAMP"}]

    def ask(sql: str) -> dict[str, Any]:
        request = f"r{len(api.analyses)}"
        api.give(driver.id, {"kind": "analyze", "id": request, "views": views, "sql": sql})
        found: dict[str, Any] = api.wait(lambda: api.analyses.get(request), 120, "the analysis")
        return found

    assert ask("SELECT id + 1 AS n, upper(name) AS u FROM leat_src_0") == {
        "columns": [
            {"name": "n", "type": "bigint", "nullable": False},
            {"name": "u", "type": "string", "nullable": True},
        ]
    }
    failure = ask("SELECT nme FROM leat_src_0")["failure"]
    assert failure["condition"] == "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    assert (failure["start"], failure["stop"], failure["fragment"]) == (7, 9, "nme")
    assert "\n" not in failure["message"]
    assert "Project" not in failure["message"]
    assert ask("SELECT id +")["failure"]["condition"].startswith("PARSE_SYNTAX_ERROR")
    taken = []
    for i in range(20):
        begin = time.perf_counter()
        ask(f"SELECT id + {i} AS n, upper(name) AS u FROM leat_src_0 WHERE name LIKE 'a%'")
        taken.append(time.perf_counter() - begin)
    print(f"analysis: median {sorted(taken)[10] * 1000:.0f} ms, longest {max(taken) * 1000:.0f} ms")
    api.tokens[driver.id] = "another"
    assert driver.process.wait(30) == 0


def _millis(watermark: str) -> float:
    return datetime.fromisoformat(watermark).timestamp() * 1000
