"""Runs real queries once, so that the JVM has loaded and compiled what the next start needs.

Measured: the first query of a driver takes 9 s to its first record, the fourth 0.4 s.
"""

from __future__ import annotations

import functools
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leatstream.connectors.base import Connector
from leatstream.connectors.registry import connector_classes, open_connector
from leatstream.plan.job_spec import ColumnSpec, JobSpec, Mode, SinkSpec, SourceSpec, StoreRef
from leatstream_jobs.attempt import run_query
from leatstream_jobs.attempt.progress import Progress
from leatstream_jobs.attempt.running import is_running, wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PREFIX = "_leat_warmup_"
_COLUMNS = [
    ColumnSpec(name="id", type="BIGINT"),
    ColumnSpec(name="name", type="VARCHAR"),
    ColumnSpec(name="at", type="TIMESTAMP"),
]
_SQL = (
    "SELECT `id`, upper(`name`) AS `name`, `at`, `__leat_rowkey`, `__leat_rowtime` FROM leat_warm_0 "
    "WHERE `name` <> 'x'"
)
_ROUND_TIMEOUT = 90.0


def warm_up(spark: SparkSession, bootstrap: str | None, work_dir: Path, step: Callable[[str], None]) -> None:
    """Run a filter in micro-batch and real-time mode, twice; in memory only when there is no broker.

    Args:
        spark: the session to warm.
        bootstrap: a broker for internal topics, or None.
        work_dir: where checkpoints may lie.
        step: called before each part.
    """
    connector_classes()  # queries of a shared driver begin in threads, which may meet modules half imported
    if bootstrap is None:
        step("warming in memory")
        _in_memory(spark, work_dir)
        return
    name = f"{PREFIX}{uuid.uuid4().hex[:12]}"
    connector = open_connector("kafka", "warm-up", {"bootstrap_servers": bootstrap})
    topics = (f"{name}_in", f"{name}_out")
    try:
        for topic in topics:
            connector.create_entity(topic, {"topic.partitions": 1, "topic.replicas": 1}, {}, timeout=20)
        rounds = (Mode.MICRO_BATCH, Mode.REALTIME, Mode.MICRO_BATCH, Mode.REALTIME)
        for i, mode in enumerate(rounds):
            step(f"warming {mode.value} ({i + 1} of {len(rounds)})")
            _round(spark, bootstrap, topics, mode, connector, work_dir / f"warm{i}")
    finally:
        for topic in topics:
            connector.drop_entity(topic, timeout=20)


def _round(
    spark: SparkSession,
    bootstrap: str,
    topics: tuple[str, str],
    mode: Mode,
    connector: Connector,
    place: Path,
) -> None:
    spec = _spec(bootstrap, topics, mode, place)
    started = run_query.start(spark, spec, lambda _store: connector, slots=8)
    progress = Progress(spec.sources)
    try:
        wait_for(lambda: is_running(spark, started.query, mode, progress), _ROUND_TIMEOUT)
        before = _end(bootstrap, topics[1])
        _produce(bootstrap, topics[0])
        wait_for(lambda: _end(bootstrap, topics[1]) > before, _ROUND_TIMEOUT)
    finally:
        started.query.stop()
        shutil.rmtree(place, ignore_errors=True)


def _spec(bootstrap: str, topics: tuple[str, str], mode: Mode, place: Path) -> JobSpec:
    store = StoreRef(name="warm-up", kind="kafka", config={"bootstrap_servers": bootstrap})
    source = SourceSpec(
        view="leat_warm_0",
        relation="warm-up",
        store=store,
        entity=topics[0],
        columns=_COLUMNS,
        value_format="json",
    )
    sink = SinkSpec(relation="warm-up", store=store, entity=topics[1], columns=_COLUMNS, value_format="json")
    return JobSpec(
        query_id=uuid.uuid4().hex,
        query_name="warm-up",
        generation=1,
        attempt=1,
        fencing_token="",
        sql=_SQL,
        sources=[source],
        sink=sink,
        mode=mode,
        mode_reason="warm-up",
        checkpoint=place.as_uri(),
        conf={"spark.sql.shuffle.partitions": "1"},
    )


def _produce(bootstrap: str, topic: str) -> None:
    from confluent_kafka import Producer

    producer: Any = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for i in range(20):
        value = f'{{"id":{i},"name":"n{i}","at":"2024-01-01 00:00:00.{i:03d}"}}'
        producer.produce(topic, key=str(i).encode(), value=value.encode())
    producer.flush(20)


def _end(bootstrap: str, topic: str) -> int:
    """The offset after the last record of the topic's one partition."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": PREFIX})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10, cached=False)[1])
    finally:
        consumer.close()


def _has_reports(query: StreamingQuery) -> bool:
    return len(query.recentProgress) > 1


def _in_memory(spark: SparkSession, work_dir: Path) -> None:
    from leatstream.formats import json, json_writing

    place = work_dir / "warm-memory"
    for i in range(2):
        rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
        decoder = json.decoder(_COLUMNS)
        texts = rows.selectExpr('concat(\'{"id":\', value, \',"name":"n"}\') AS __leat_text')
        parsed = decoder.over(texts).where(~decoder.undecodable).select(*decoder.fields)
        made = parsed.select(json_writing.encode(_COLUMNS, [parsed[c.name] for c in _COLUMNS]).alias("value"))
        query = made.writeStream.format("noop").option("checkpointLocation", str(place / str(i))).start()
        try:
            wait_for(functools.partial(_has_reports, query), _ROUND_TIMEOUT)
        finally:
            query.stop()
    shutil.rmtree(place, ignore_errors=True)
