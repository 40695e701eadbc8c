"""Faults that a restart cannot cure are told as what they are, and a new checkpoint from a chosen place cures them."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from attempts import Host, attempt, written
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from statement_cases import job_of

from leatstream.connectors.kafka.connector import KafkaConnector
from leatstream_jobs.attempt import pulse, source_checks

pytestmark = pytest.mark.spark
SQL = "SELECT id, __leat_rowkey, __leat_rowtime FROM leat_src_0"


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "heartbeat_seconds", 0.1)
    monkeypatch.setattr(source_checks, "SOURCE_CHECK", 0.05)


def numbers(*wanted: int) -> list[dict[str, Any]]:
    return [{"id": n} for n in wanted]


def copy_job(job: Any, source: str, sink: str, checkpoint: Path, **more: Any) -> dict[str, Any]:
    scan = {"entity": source, "columns": "id BIGINT", **more}
    return dict(job([scan], sink, SQL, "id BIGINT", checkpoint=checkpoint.as_uri()))


def test_a_topic_made_anew_while_nobody_looked(
    spark: SparkSession,
    job: Any,
    topic: Callable[..., str],
    produce: Any,
    rows: Any,
    kafka: KafkaConnector,
    tmp_path: Path,
) -> None:
    source, sink = topic(1), topic(1)
    produce(source, *numbers(*range(5)))
    spec = copy_job(job, source, sink, tmp_path / "g1")
    assert attempt(spark, spec, written(5))["state"] == "stopped"
    kafka.drop_entity(source)
    told = attempt(spark, spec | {"attempt": 2})
    assert told["error"]["code"] == "source-gone"
    assert "does not exist any more" in told["error"]["detail"]
    # More records than before: Spark alone would go on at number 5 of another topic.
    kafka.create_entity(source, {"topic.partitions": 1, "topic.replicas": 1}, {})
    produce(source, *numbers(*range(100, 110)))
    told = attempt(spark, spec | {"attempt": 3})
    assert (told["error"]["code"], told["error"]["retryable"]) == ("source-gone", False)
    assert "created again" in told["error"]["detail"]
    assert [r["id"] for r in rows(sink, 5)] == list(range(5))
    begin = {"starting_position": "offsets", "starting_offsets": {"0": 7}}
    again = copy_job(job, source, sink, tmp_path / "g2", **begin)
    assert attempt(spark, again | {"attempt": 4}, written(3))["state"] == "stopped"
    assert [r["id"] for r in rows(sink, 8)][5:] == [107, 108, 109]


def test_a_silent_query_notices_that_its_sink_was_deleted(
    spark: SparkSession,
    job: Any,
    topic: Callable[..., str],
    produce: Any,
    kafka: KafkaConnector,
    tmp_path: Path,
) -> None:
    source, sink = topic(1), topic(1)
    produce(source, *numbers(1))
    has_written, dropped = written(1), list[str]()

    def drop(beat: Mapping[str, Any]) -> bool:
        if not dropped and has_written(beat):
            kafka.drop_entity(sink)
            dropped.append(sink)
        return False

    told = attempt(spark, copy_job(job, source, sink, tmp_path / "g1"), drop)
    assert (told["state"], told["error"]["condition"]) == ("failed", "SINK_ENTITY_GONE")


class Hanging:
    """Stops the broker's process once the query has written its rows, and lets it go on once that is told."""

    def __init__(self, bootstrap: str) -> None:
        port = int(bootstrap.rpartition(":")[2])
        listening = (c for c in psutil.net_connections("tcp") if c.status == psutil.CONN_LISTEN)
        self.broker = next(c.pid for c in listening if c.laddr.port == port)
        self.told: list[str | None] = []

    def __call__(self, beat: Mapping[str, Any]) -> bool:
        waits = (beat.get("pulse") or {}).get("waits_for")
        if not self.told and written(3)(beat):
            assert waits is None
            os.kill(self.broker, signal.SIGSTOP)
            self.told.append(None)
        elif self.told == [None] and waits is not None:
            os.kill(self.broker, signal.SIGCONT)
            self.told.append(str(waits))
        return len(self.told) == 2 and waits is None

    def go_on(self) -> None:
        """Whatever has happened, the broker is the other tests' too."""
        os.kill(self.broker, signal.SIGCONT)


def test_a_broker_that_hangs_is_told_while_the_query_runs(
    spark: SparkSession,
    job: Any,
    topic: Callable[..., str],
    produce: Any,
    bootstrap: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pulse, "UNANSWERED", 0.5)
    source, sink = topic(1), topic(1)
    produce(source, *numbers(1, 2, 3))
    broker = Hanging(bootstrap)
    try:
        last = attempt(spark, copy_job(job, source, sink, tmp_path / "g1"), broker)
    finally:
        broker.go_on()
    assert last["state"] == "stopped"
    _, waits = broker.told
    assert waits is not None
    assert waits.startswith("store store does not answer: ")


@pytest.mark.core
def test_a_value_that_cannot_be_computed_names_its_record(
    spark: SparkSession,
    job: Any,
    topic: Callable[..., str],
    produce: Any,
    rows: Any,
    tmp_path: Path,
) -> None:
    """The record is found by halves of the batch that has failed, behind those that are done; then skipped."""
    source, sink = topic(2), topic(1)
    checkpoint = (tmp_path / "g1").as_uri()
    sql = "SELECT CAST(k AS BIGINT) + 1 AS id, __leat_rowkey, __leat_rowtime FROM leat_src_0"
    spec = dict(
        job(
            [{"entity": source, "columns": "id VARCHAR, k VARCHAR"}],
            sink,
            sql,
            "id BIGINT",
            checkpoint=checkpoint,
        )
    )
    produce(source, *({"id": str(n), "k": str(n)} for n in range(20)))
    assert attempt(spark, spec, written(20))["state"] == "stopped"
    produce(source, *({"id": str(n), "k": "n/a" if n == 77 else str(n)} for n in range(20, 120)))
    error = attempt(spark, spec | {"attempt": 2})["error"]
    assert error["condition"] == "CAST_INVALID_INPUT"
    place = error["record"]
    assert 'the string "n/a" is no BIGINT' in error["shown"]
    assert f"topic {source}, partition {place['partition']}, offset {place['offset']}" in error["detail"]
    scan = {**spec["sources"][0], "skip": {place["partition"]: [place["offset"]]}}
    skipping = spec | {"attempt": 3, "sources": [scan]}
    assert attempt(spark, skipping, written(99))["state"] == "stopped"
    assert {r["id"] for r in rows(sink, 119)} >= set(range(1, 121)) - {78}


def test_records_that_expired_before_they_were_read(
    spark: SparkSession,
    job: Any,
    topic: Callable[..., str],
    produce: Any,
    rows: Any,
    bootstrap: str,
    tmp_path: Path,
) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    source, sink = topic(2), topic(1)
    produce(source, *numbers(*range(20)))
    spec = copy_job(job, source, sink, tmp_path / "g1")
    assert attempt(spark, spec, written(20))["state"] == "stopped"
    produce(source, *numbers(*range(20, 60)))
    client = AdminClient({"bootstrap.servers": bootstrap})
    ends = [TopicPartition(source, p, 15) for p in (0, 1)]
    for one in client.delete_records(ends).values():
        one.result(20)
    told = attempt(spark, spec | {"attempt": 2})
    assert (told["error"]["code"], told["error"]["retryable"]) == ("source-gone", False)
    assert source in told["error"]["detail"]
    left = 60 - 30
    begin = {"starting_position": "offsets", "starting_offsets": {"1": 15}}  # the other from its beginning
    again = copy_job(job, source, sink, tmp_path / "g2", **begin)
    assert attempt(spark, again | {"attempt": 3}, written(left))["state"] == "stopped"
    assert len(rows(sink, 20 + left)) == 20 + left


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _scribble(path: Path) -> None:
    path.write_bytes(b"v1\n\x00\xff no json")


def _last(folder: Path) -> Path:
    return max((p for p in folder.iterdir() if p.name.isdecimal()), key=lambda p: int(p.name))


DAMAGES: dict[str, Callable[[Path], None]] = {
    "offsets cut off": lambda c: _truncate(_last(c / "offsets")),
    "offsets empty": lambda c: _last(c / "offsets").write_bytes(b""),
    "offsets scribbled": lambda c: _scribble(_last(c / "offsets")),
    "commits scribbled": lambda c: _scribble(_last(c / "commits")),
    "metadata cut off": lambda c: _truncate(c / "metadata"),
    "metadata empty": lambda c: (c / "metadata").write_bytes(b""),
    "metadata gone": lambda c: (c / "metadata").unlink(),
}


def damaged(whole: Path, place: Path, damage: Callable[[Path], Any]) -> Path:
    """A copy of a checkpoint with such damage, whose files' sums tell nothing of it."""
    shutil.copytree(whole, place)
    for checksum in place.rglob(".*.crc"):
        checksum.unlink()
    damage(place)
    return place


def test_a_damaged_checkpoint(
    spark: SparkSession, job: Any, topic: Callable[..., str], produce: Any, rows: Any, tmp_path: Path
) -> None:
    source, sink = topic(1), topic(1)
    produce(source, *numbers(*range(5)))
    spec = copy_job(job, source, sink, tmp_path / "whole")
    assert attempt(spark, spec, written(5))["state"] == "stopped"
    produce(source, *numbers(5))
    found = {}
    for number, (name, damage) in enumerate(DAMAGES.items()):
        place = damaged(tmp_path / "whole", tmp_path / f"damaged{number}", damage)
        told = attempt(spark, spec | {"attempt": number + 2, "checkpoint": place.as_uri()}, written(1))
        found[name] = told.get("error") or {"code": told["state"]}
    assert {name: error["code"] for name, error in found.items()} == dict.fromkeys(
        DAMAGES, "checkpoint-damaged"
    )
    assert not any(error["retryable"] for error in found.values())
    assert attempt(spark, spec | {"attempt": 99}, written(1))["state"] == "stopped"
    assert [r["id"] for r in rows(sink, 6)] == list(range(6))


def _every(pattern: str, damage: Callable[[Path], Any]) -> Callable[[Path], None]:
    """Damages these files of one partition's state."""

    def damage_all(checkpoint: Path) -> None:
        found = list((checkpoint / "state" / "0" / "0").glob(pattern))
        assert found
        for path in found:
            damage(path)

    return damage_all


UNREADABLE = ("job-failed", "state-unreadable", True)
STATE_DAMAGES: dict[str, tuple[Callable[[Path], Any], tuple[str, str | None, bool]]] = {
    "changelogs gone": (
        _every("[0-9]*.changelog", Path.unlink),
        ("checkpoint-damaged", "CANNOT_LOAD_STATE_STORE.CANNOT_READ_STREAMING_STATE_FILE", False),
    ),
    # Spark says the same of these and of a disk that is away: the restarts tell.
    "changelogs cut off": (_every("[0-9]*.changelog", _truncate), UNREADABLE),
    "changelogs empty": (_every("[0-9]*.changelog", lambda p: p.write_bytes(b"")), UNREADABLE),
    "schema cut off": (_every("_metadata/schema", _truncate), ("checkpoint-damaged", None, False)),
    "state gone": (
        lambda c: shutil.rmtree(c / "state"),
        ("checkpoint-damaged", "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY", False),
    ),
}


def test_damaged_state(
    spark: SparkSession, job: Any, topic: Callable[..., str], produce: Any, tmp_path: Path
) -> None:
    source, sink = topic(1), topic(1)
    sql = "CREATE CHANGELOG c AS SELECT id, count(*) AS n FROM s GROUP BY id"
    case = {"sql": sql, "columns": "id BIGINT, at TIMESTAMP", "timestamp": None}
    spec = job_of(spark, case, job, (source, sink)).model_dump(mode="json")
    spec |= {"checkpoint": (tmp_path / "whole").as_uri()}
    produce(source, *numbers(*range(5)))
    assert attempt(spark, spec, written(5))["state"] == "stopped"
    produce(source, *numbers(*range(5)))
    found = {}
    for number, (name, (damage, _)) in enumerate(STATE_DAMAGES.items()):
        place = damaged(tmp_path / "whole", tmp_path / f"damaged{number}", damage)
        told = attempt(spark, spec | {"attempt": number + 2, "checkpoint": place.as_uri()}, written(5))
        error = told.get("error") or {"code": told["state"], "retryable": None}
        found[name] = (error["code"], error.get("condition"), error["retryable"])
    assert found == {name: expected for name, (_, expected) in STATE_DAMAGES.items()}
    assert attempt(spark, spec | {"attempt": 99}, written(5))["state"] == "stopped"


def test_records_that_were_taken_back_are_not_read(
    spark: SparkSession, job: Any, topic: Callable[..., str], bootstrap: str, rows: Any, tmp_path: Path
) -> None:
    """Of transactions only what was committed; the gaps they leave in a topic's offsets are none of its records."""
    source, sink = topic(1), topic(1)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": source})
    producer.init_transactions(30)
    for number, kept in enumerate((True, False, True)):
        producer.begin_transaction()
        producer.produce(source, json.dumps({"id": number}).encode())
        assert producer.flush(30) == 0
        producer.commit_transaction(30) if kept else producer.abort_transaction(30)
    told = attempt(spark, copy_job(job, source, sink, tmp_path / "g1"), written(2))
    assert told["state"] == "stopped"
    assert [r["id"] for r in rows(sink, 2)] == [0, 2]
