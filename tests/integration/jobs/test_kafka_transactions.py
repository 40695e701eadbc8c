"""Queries into a topic of a real broker, exactly once, whatever is repeated or breaks in between."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kafka_tasks
import pyarrow as pa
import pytest
from kafka_tasks import records, written
from pyspark.sql import SparkSession
from test_changelogs import Run

from leatstream.connectors.base import Connector
from leatstream.connectors.kafka.admin import KafkaAdmin
from leatstream.connectors.kafka.settings import KafkaConfig
from leatstream.connectors.kafka.transactions import BATCHES, Target, last_batch
from leatstream.connectors.registry import open_connector
from leatstream.errors import AttemptBehindError, JobError
from leatstream.plan.job_spec import Delivery, StoreRef

pytestmark = pytest.mark.spark
ITEMS = {"s": {"columns": "id BIGINT, n INTEGER"}}
SQL = "CREATE STREAM o AS SELECT id, n FROM s"


class TopicRun(Run):
    """A statement over files whose sink is a topic."""

    def __init__(self, spark: SparkSession, folder: Path, sql: str, bootstrap: str) -> None:
        super().__init__(spark, folder, sql, ITEMS)
        self.topic = f"t_{uuid.uuid4().hex[:8]}"
        config = {"bootstrap_servers": bootstrap}
        self.target = open_connector("kafka", "k", config, {})
        self.target.create_entity(self.topic, {"topic.partitions": 3, "topic.replicas": 1}, {})
        store = StoreRef(name="k", kind="kafka", config=config)
        sink = self.spec.sink.model_copy(update={"store": store, "entity": self.topic})
        self.spec = self.spec.model_copy(
            update={
                "sink": sink,
                "query_id": self.topic,
                "delivery": Delivery.EXACTLY_ONCE,
                "checkpoint": (folder / "q" / "g1").as_uri(),
            }
        )
        self.commits = folder / "q" / "g1" / "commits"

    def connect(self, store: StoreRef) -> Connector:
        return self.target if store.name == "k" else self.store

    def run(self) -> None:
        """Work everything off, in a job of its own."""
        from leatstream_jobs.attempt import run_query

        started = run_query.start(self.spark, self.spec, self.connect, 2)
        try:
            started.query.processAllAvailable()
        finally:
            started.query.stop()

    def ids(self) -> list[int]:
        """Of every committed record, in order."""
        found = self.target.read_records(self.topic, from_beginning=True, limit=None, idle_timeout=0.5)
        return sorted(json.loads(record.value)["id"] for record in found if record is not None)


@pytest.fixture
def run(
    spark: SparkSession, kafka_broker: str, tmp_path: Path, eventually: Callable[..., Any]
) -> Iterator[TopicRun]:
    one = TopicRun(spark, tmp_path, SQL, kafka_broker)
    yield one
    one.target.drop_entity(one.topic)
    one.target.forget_batches(one.topic, 10.0)
    admin = KafkaAdmin("k", KafkaConfig(bootstrap_servers=kafka_broker))
    eventually(lambda: admin.topic(BATCHES + one.topic, 5.0) is None, 20, "the batch topic is gone")


def items(*numbers: int) -> dict[str, list[list[Any]]]:
    return {"s": [[str(i), {"id": i, "n": i % 7}, i] for i in numbers]}


def test_a_batch_that_is_repeated_is_written_once(run: TopicRun) -> None:
    run.give(items(*range(50)))
    run.run()
    assert run.ids() == list(range(50))
    # As after a crash between Kafka's commit and Spark's: the batch is run again.
    for one in run.commits.glob("*[0-9]"):
        one.unlink()
    for one in run.commits.glob(".*.crc"):
        one.unlink()
    run.give(items(*range(50, 80)))
    run.run()
    assert run.ids() == list(range(80))
    assert "_leat" not in " ".join(entity.name for entity in run.target.list_entities())


def test_a_checkpoint_from_a_backup_is_told_and_loses_nothing(run: TopicRun, tmp_path: Path) -> None:
    """Its batches have numbers that the topic knows already, and other records: they would pass for replays."""
    checkpoint, backup = run.commits.parent, tmp_path / "backup"
    run.give(items(*range(10)))
    run.run()
    shutil.copytree(checkpoint, backup)
    run.give(items(*range(10, 20)))
    run.run()
    shutil.rmtree(checkpoint)
    shutil.copytree(backup, checkpoint)
    run.give(items(*range(20, 30)))
    for _ in range(2):
        with pytest.raises(JobError, match="knows of batch 0, but the sink holds batch 1") as told:
            run.run()
        assert told.value.code == "checkpoint-damaged"
    shutil.rmtree(checkpoint)
    with pytest.raises(JobError, match="knows of nothing"):
        run.run()
    # The way out: a checkpoint of another name, as RESTART QUERY … FROM makes it.
    anew = run.spec.checkpoint.replace("/g1", "/g2")
    run.spec = run.spec.model_copy(update={"checkpoint": anew, "attempt": 2})
    run.run()
    assert run.ids() == sorted([*range(20), *range(30)])


def test_an_attempt_below_the_last_tells_that_one(run: TopicRun) -> None:
    run.give(items(1))
    run.spec = run.spec.model_copy(update={"attempt": 7})
    run.run()
    run.spec = run.spec.model_copy(update={"attempt": 3})
    with pytest.raises(AttemptBehindError, match="newer attempt") as told:
        run.run()
    assert told.value.newest == 7


@pytest.fixture
def target(kafka_broker: str) -> Iterator[Callable[..., Target]]:
    config = KafkaConfig(bootstrap_servers=kafka_broker)
    connector = open_connector("kafka", "k", {"bootstrap_servers": kafka_broker}, {})
    name = f"t_{uuid.uuid4().hex[:8]}"
    connector.create_entity(name, {"topic.partitions": 1, "topic.replicas": 1}, {})
    connector.create_entity(BATCHES + name, {"topic.partitions": 1, "topic.replicas": 1}, {})
    yield lambda attempt=1, checkpoint="g1": Target("k", config, name, name, checkpoint, attempt)
    connector.drop_entity(name)
    connector.forget_batches(name, 10.0)


def committed(target: Target) -> list[int]:
    connector = open_connector("kafka", "k", {"bootstrap_servers": target.config.bootstrap_servers}, {})
    found = connector.read_records(target.topic, from_beginning=True, limit=None, idle_timeout=0.5)
    return [json.loads(record.value)["id"] for record in found if record is not None]


def test_numbers_attempts_and_checkpoints(target: Callable[..., Target]) -> None:
    one = target()
    assert written(one, 0, records(1, 2)) == 2
    assert written(one, 0, records(1, 2)) == 0
    assert written(one, 1, iter(())) == 0, "an empty batch needs no transaction"
    assert written(target(attempt=2), 1, records(3)) == 1
    with pytest.raises(RuntimeError, match=r"LEAT_STORE sink store-rejected A newer attempt of the query"):
        written(one, 2, records(4))
    assert written(target(attempt=3, checkpoint="g2"), 0, records(5)) == 1, "a new checkpoint counts anew"
    assert committed(one) == [1, 2, 3, 5]
    admin = KafkaAdmin("k", one.config)
    assert last_batch(admin, one) == {"checkpoint": "g2", "attempt": 3, "batch": 0}


def test_what_a_task_left_open_is_never_seen(target: Callable[..., Target]) -> None:
    one = target()

    def dies() -> Iterator[pa.RecordBatch]:
        yield from records(1, 2)
        raise OSError("the task dies")

    with pytest.raises(OSError, match="the task dies"):
        written(one, 0, dies())
    assert written(one, 0, records(1, 2)) == 2
    assert committed(one) == [1, 2]


def test_of_two_tasks_with_one_batch_one_writes(target: Callable[..., Target]) -> None:
    one = target()
    task = [sys.executable, kafka_tasks.__file__, str(one.config.bootstrap_servers), one.topic]
    overtaken = subprocess.run(task, capture_output=True, text=True, timeout=120)
    assert overtaken.stdout == "2\n", overtaken.stderr
    # A producer that has heard of it before the last record says only that it takes no more.
    told = r"LEAT_STORE sink store-unreachable .* (took the batch over|was not committed: .*Fatal error)"
    assert overtaken.returncode == -signal.SIGABRT or re.search(told, overtaken.stderr), overtaken
    assert written(one, 0, records(1, 2)) == 0
    assert committed(one) == [1, 2]


def test_the_last_number_is_found_behind_many_that_were_given_up(
    target: Callable[..., Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leatstream.connectors.kafka.transactions._WINDOWS", (1, 2))
    one = target()
    assert last_batch(KafkaAdmin("k", one.config), one) is None
    assert written(one, 7, records(1)) == 1
    assert last_batch(KafkaAdmin("k", one.config), one) == {"checkpoint": "g1", "attempt": 1, "batch": 7}


def test_a_topic_that_is_gone_is_named(target: Callable[..., Target], kafka_broker: str) -> None:
    one = target()
    open_connector("kafka", "k", {"bootstrap_servers": kafka_broker}, {}).drop_entity(one.topic)
    with pytest.raises(RuntimeError, match=r"LEAT_STORE sink \S+ Store k: .*"):
        written(one, 0, records(1))
    open_connector("kafka", "k", {"bootstrap_servers": kafka_broker}, {}).create_entity(
        one.topic, {"topic.partitions": 1, "topic.replicas": 1}, {}
    )
