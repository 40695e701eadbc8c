"""Records of a query into topics, exactly once: a micro-batch and its number are one Kafka transaction.

One task of Spark writes a batch, so that no record passes through the driver's Python. It begins with
``init_transactions`` under the query's own transactional id, which ends whatever an earlier task left open
and keeps it from committing later; what the batch topic says after that is final. The batch topic holds, for
one query, ``{"checkpoint": …, "attempt": …, "batch": …}`` of each batch that was committed. A batch whose
number is not above the last was committed before: a replay, which writes nothing. An older attempt than the
last is a job that was given up and does not know it yet: it is refused.

The topic is the query's alone. In one that queries share, a transaction that another one left open would hide
the end from readers of committed records.
"""

from __future__ import annotations

import functools
import itertools
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leatstream.connectors.arrow_tasks import ArrowTasks, Batches
from leatstream.connectors.kafka.admin import KafkaAdmin
from leatstream.connectors.kafka.passing import passes
from leatstream.connectors.kafka.producing import LARGEST
from leatstream.connectors.kafka.settings import KafkaConfig
from leatstream.connectors.one_task import counted, write_in_one_task
from leatstream.connectors.writers import Written
from leatstream.errors import AttemptBehindError, StoreError
from leatstream.plan.job_spec import JobSpec

if TYPE_CHECKING:
    from confluent_kafka import KafkaException, Message, Producer
    from pyspark.sql import DataFrame

BATCHES = "_leatstream_batches_"
_REPLICAS = 3
# Compaction leaves the last of each key once a segment is closed: an hour's numbers are soon read.
_TOPIC_CONFIG = {"cleanup.policy": "compact", "segment.ms": "3600000"}
_ADMIN, _CALL, _COMMIT = 10.0, 30.0, 120.0  # seconds
_TRANSACTION_MS = 300_000
_WINDOWS = (100, 10_000)
# The topic will never take such a record. It ends the transaction too, which alone is worth another try.
_REFUSED = ("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD")
_SETTINGS = {
    "linger.ms": 20,
    "batch.size": 262_144,
    "message.max.bytes": LARGEST,
    "transaction.timeout.ms": _TRANSACTION_MS,
    # The topics are there before the job begins; one that has gone is to be told of soon.
    "topic.metadata.propagation.max.ms": 5000,
    # As Java's producer does, so that equal keys of all queries share a partition.
    "partitioner": "murmur2_random",
}


@dataclass(frozen=True, slots=True)
class Target:
    """What a task needs to know to write a batch.

    Attributes:
        topic: where records go that name no topic of their own.
        checkpoint: name of the query's checkpoint; another one counts batches from 0.
    """

    store: str
    config: KafkaConfig
    topic: str
    query: str
    checkpoint: str
    attempt: int

    @property
    def batches(self) -> str:
        """The query's batch topic."""
        return BATCHES + self.query


class KafkaBatchWriter:
    """Writes the batches of one attempt of a query."""

    def __init__(self, store: str, config: KafkaConfig, spec: JobSpec, admin: KafkaAdmin) -> None:
        """Make the batch topic if it is not there.

        Raises:
            AttemptBehindError: a later attempt has written.
            StoreError: what the cluster says.
        """
        from confluent_kafka import KafkaException

        self._tasks = ArrowTasks()
        self.target = Target(
            store=store,
            config=config,
            topic=spec.sink.entity,
            query=spec.query_id,
            checkpoint=spec.checkpoint_name,
            attempt=spec.attempt,
        )
        self._last: int | None = None
        if admin.topic(self.target.batches, _ADMIN) is None:
            _make_topic(admin, self.target.batches)
            return
        try:
            last = last_batch(admin, self.target)
        except KafkaException as error:
            raise _told(admin, self.target, error) from None
        if last is not None and last["attempt"] > spec.attempt:
            raise AttemptBehindError(_newer(self.target), int(last["attempt"]))
        if last is not None and last["checkpoint"] == self.target.checkpoint:
            self._last = int(last["batch"])

    def committed(self) -> int | None:
        """Number of the last batch of this checkpoint that was there when the attempt began."""
        return self._last

    def write(self, frame: DataFrame, number: int) -> Written:
        """Write one micro-batch; returns when it is committed.

        Args:
            frame: ``key`` and ``value``, BINARY, ``topic`` where records go to several, and where they have
                headers, ``headers``, ARRAY<STRUCT<key STRING, value BINARY>>.
            number: Spark's batch number.

        Returns:
            The records, and the bytes of their keys, values and headers; nothing for a replay.

        Raises:
            RuntimeError: with a mark of ``store_marks``: what the store says.
        """
        return write_in_one_task(self._tasks, frame, functools.partial(write_records, self.target, number))


def forget_batches(admin: KafkaAdmin, query: str, timeout: float) -> None:
    """Delete a query's batch topic; succeeds when it is not there."""
    from confluent_kafka import KafkaException

    topic = BATCHES + query
    if admin.topic(topic, timeout) is None:
        return
    try:
        admin.wait(admin.client.delete_topics([topic], request_timeout=timeout), f"delete {topic}", timeout)
    except KafkaException as error:
        if error.args[0].name() != "UNKNOWN_TOPIC_OR_PART":
            raise admin.rejected(error, f"deleting topic {topic}") from None


def _make_topic(admin: KafkaAdmin, topic: str) -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.cimpl import NewTopic

    replicas = min(_REPLICAS, admin.brokers(_ADMIN))
    new = NewTopic(topic, 1, replication_factor=replicas, config=_TOPIC_CONFIG)
    try:
        admin.wait(admin.client.create_topics([new], request_timeout=_ADMIN), f"create {topic}", _ADMIN)
    except KafkaException as error:
        if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
            raise admin.rejected(error, f"creating topic {topic}") from None
    admin.until(lambda: admin.topic(topic, _ADMIN) is not None, f"topic {topic}", _ADMIN)


def write_records(target: Target, number: int, batches: Batches) -> Batches:
    """A task: write the batch in one transaction; gives the records and their bytes."""
    return counted(batches, functools.partial(_write, target, number))


def _write(target: Target, number: int, batches: Batches) -> Written:
    from confluent_kafka import KafkaException

    admin = KafkaAdmin(target.store, target.config)
    try:
        return _commit(admin, target, number, batches)
    except KafkaException as error:
        raise _told(admin, target, error) from None


def _commit(admin: KafkaAdmin, target: Target, number: int, batches: Batches) -> Written:
    from confluent_kafka import KafkaException, Producer

    identity = {"transactional.id": f"leatstream-{target.query}"}
    producer = Producer(admin.settings() | _SETTINGS | identity)
    # Connected first: without a connection the coordinator is asked for again in half a second only.
    producer.list_topics(target.batches, timeout=_CALL)
    _again(lambda: producer.init_transactions(_CALL))
    last = last_batch(admin, target)
    if last is not None and last["attempt"] > target.attempt:
        raise StoreError("store-rejected", _newer(target))
    if last is not None and last["checkpoint"] == target.checkpoint and last["batch"] >= number:
        return Written()
    producer.begin_transaction()
    try:
        written = _produce(producer, target, batches)
        mark = {"checkpoint": target.checkpoint, "attempt": target.attempt, "batch": number}
        producer.produce(target.batches, json.dumps(mark).encode(), target.query.encode(), partition=0)
        _again(lambda: producer.commit_transaction(_COMMIT))
    except BaseException as error:
        if not (isinstance(error, KafkaException) and error.args[0].fatal()):
            _give_up(producer)
        raise
    return written


def _newer(target: Target) -> str:
    return f"A newer attempt of the query writes topic {target.topic} now."


def _produce(producer: Producer, target: Target, batches: Batches) -> Written:
    count = size = 0
    for batch in batches:
        keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
        names = batch.schema.names
        topics = batch.column("topic").to_pylist() if "topic" in names else itertools.repeat(target.topic)
        headers = batch.column("headers").to_pylist() if "headers" in names else itertools.repeat(None)
        count += batch.num_rows
        size += sum(map(len, filter(None, keys))) + sum(map(len, filter(None, values)))
        for topic, key, value, given in zip(topics, keys, values, headers, strict=False):
            more: Any = {"headers": [(one["key"], one["value"]) for one in given]} if given else {}
            if given:
                size += sum(len(name.encode()) + len(text or b"") for name, text in more["headers"])
            while True:
                try:
                    producer.produce(topic, value, key, **more)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
    return Written(count, size)


def _give_up(producer: Producer) -> None:
    from confluent_kafka import KafkaException

    try:
        producer.purge()
        producer.abort_transaction(_CALL)
    except KafkaException:
        return  # the next task's init_transactions ends it


def _again(call: Any) -> None:
    """Call until it is through: some faults of a transaction only want patience."""
    from confluent_kafka import KafkaException

    end = time.monotonic() + _COMMIT
    while True:
        try:
            call()
            return
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > end:
                raise


def last_batch(admin: KafkaAdmin, target: Target) -> dict[str, Any] | None:
    """What the batch topic says last: ``{"checkpoint", "attempt", "batch"}``; None for nothing yet.

    Raises:
        StoreError: its end could not be read.
    """
    from confluent_kafka import Consumer, TopicPartition

    settings = {"group.id": "leatstream", "enable.auto.commit": False, "isolation.level": "read_committed"}
    prompt = {"enable.partition.eof": True, "fetch.wait.max.ms": 10}
    consumer = Consumer(admin.settings() | settings | prompt)
    try:
        place = TopicPartition(target.batches, 0)
        low, high = consumer.get_watermark_offsets(place, timeout=_CALL)
        starts = [max(low, high - window) for window in _WINDOWS] + [low]
        for start in dict.fromkeys(starts):
            consumer.assign([TopicPartition(target.batches, 0, start)])
            found = _last_from(consumer)
            if found is not None:
                value: dict[str, Any] = json.loads(found.value() or b"null")
                return value
        return None
    finally:
        consumer.close()


def _last_from(consumer: Any) -> Message | None:
    from confluent_kafka import KafkaError, KafkaException

    last: Message | None = None
    end = time.monotonic() + _CALL
    while time.monotonic() < end:
        message = consumer.poll(0.5)
        if message is None:
            continue
        error = message.error()
        if error is None:
            last = message
        elif error.code() == KafkaError._PARTITION_EOF:
            return last
        elif not passes(error):
            raise KafkaException(error)
    raise StoreError("store-unreachable", f"The last batch could not be read within {_CALL:g} s.")


def _told(admin: KafkaAdmin, target: Target, error: KafkaException) -> StoreError:
    fault = error.args[0]
    name, where = fault.name(), f"Store {admin.store}: "
    if name.endswith("AUTHORIZATION_FAILED"):
        needed = f"topics {target.topic} and {target.batches} and transactional id leatstream-{target.query}"
        return StoreError("store-auth-failed", f"{where}the user may not write {needed}.")
    if name in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"):
        return StoreError("entity-not-found", f"{where}topic {target.topic} does not exist any more.")
    if name in ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"):
        # The one that took over has committed this batch, or the next try asks it.
        return StoreError("store-unreachable", f"{where}another task of the query took the batch over.")
    wants_patience = passes(fault) or fault.txn_requires_abort() or name.startswith("_")
    if wants_patience and name not in _REFUSED:
        return StoreError("store-unreachable", f"{where}the batch was not committed: {fault.str()}.")
    return StoreError("store-rejected", f"{where}topic {target.topic} refused the batch: {fault.str()}.")
