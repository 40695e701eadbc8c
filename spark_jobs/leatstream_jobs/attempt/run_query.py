"""From a JobSpec to a running Spark query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leatstream.connectors.base import MAX_OFFSETS, Connector
from leatstream.connectors.registry import connector_classes
from leatstream.connectors.traffic import READER, reader_of
from leatstream.errors import JobError
from leatstream.plan.job_spec import Delivery, JobSpec, Mode, SourceSpec, StoreRef
from leatstream_jobs.attempt.batch_jobs import open_job
from leatstream_jobs.attempt.batch_size import first_limit
from leatstream_jobs.batches.common import Batches, BatchSink
from leatstream_jobs.batches.handing_over import writes_all
from leatstream_jobs.reading import json_kernel, scans
from leatstream_jobs.reading.idle import tick_folder
from leatstream_jobs.runtime.clients import clients_of
from leatstream_jobs.writing.batch_sink import by_batches, has_rows, open_sink
from leatstream_jobs.writing.checkpoint_files import checkpoint_settings
from leatstream_jobs.writing.described_sink import RecordForm, registry_of
from leatstream_jobs.writing.sink_rows import shaped, undoubled, with_logs
from leatstream_jobs.writing.written_batches import WrittenBatches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


@dataclass(frozen=True, slots=True)
class Started:
    """A query that Spark has accepted; ``batches`` are processed in Python and go into ``sinks``."""

    query: StreamingQuery
    scans: tuple[scans.Scan, ...]
    batches: Batches | None = None
    sinks: tuple[BatchSink, ...] = ()


def start(
    spark: SparkSession,
    spec: JobSpec,
    connect: Callable[[StoreRef], Connector],
    slots: int,
    secrets: Mapping[str, str] | None = None,
) -> Started:
    """Start the query; returns at once, the first batch is still to come.

    Args:
        spark: a session that no other query uses.
        spec: the job.
        connect: opens a store with its secrets resolved.
        slots: how many tasks the session can run at once.
        secrets: values by reference, for schema registries and the database of a view.

    Raises:
        JobError: job-rejected, for what is not built or cannot run; checkpoint-damaged.
        StoreError: the database of a view or a schema registry does not answer.
        pyspark.errors.PySparkException: what Spark finds wrong.
    """
    for one in (spec, *(spec.of_member(member) for member in spec.members)):
        check(one)
    known = secrets or {}
    for key, value in {**checkpoint_settings(spec.checkpoint), **spec.conf}.items():
        spark.conf.set(key, value)
    spark.conf.set(MAX_OFFSETS, str(first_limit(spec)))
    spark.conf.set(READER, reader_of(spec.query_id))
    sources = [(source, connect(source.store)) for source in spec.sources]
    if spec.mode is Mode.REALTIME:
        _check_slots(sources, slots)
    if writes_all(spark, spec):
        spec = spec.model_copy(update={"hand_over": None})  # that is over
    if spec.is_batch_job:
        job = open_job(spark, spec, sources, connect, known)
        writer = _triggered(job.frame.writeStream.foreachBatch(job.batches), spec)
        return Started(_begun(writer, spec), job.scans, job.batches, job.sinks)
    return _start_by_spark(spark, spec, sources, connect, known)


def _start_by_spark(
    spark: SparkSession,
    spec: JobSpec,
    sources: Sequence[tuple[SourceSpec, Connector]],
    connect: Callable[[StoreRef], Connector],
    secrets: Mapping[str, str],
) -> Started:
    """Start a query all of whose SQL is run by Spark as it streams."""
    realtime = spec.mode is Mode.REALTIME
    kernels = json_kernel.kernels(spec)
    opened = tuple(
        scans.register(
            spark,
            source,
            connector,
            realtime=realtime,
            ticks=tick_folder(spec.checkpoint, source.view),
            registry=registry_of(source.store, secrets),
            kernel=kernels.get(source.view),
        )
        for source, connector in sources
    )
    rows = spark.sql(spec.sql)
    rows = undoubled(rows, len(spec.sink.columns)) if spec.distinct else rows
    batches: WrittenBatches | None = None
    sinks: tuple[BatchSink, ...] = ()
    if by_batches(spec):
        sink = open_sink(spark, spec, connect, secrets)
        batches, sinks = WrittenBatches(sink), (sink,)
        frame = sink.shape(rows)
        if not has_rows(spec.sink):
            frame = with_logs(frame, spec.sink.entity, opened)
        writer = frame.writeStream.foreachBatch(batches)
    else:
        form = RecordForm.of(spec.sink, secrets)
        frame = with_logs(shaped(rows, spec.sink, form), spec.sink.entity, opened)
        if not realtime and clients_of(spark, spec.sink.store.kind) is None:
            frame = scans.measured(frame, scans.SENT)
        writer = connect(spec.sink.store).write_stream(frame, spec.sink, realtime=realtime)
    if realtime:
        writer = writer.outputMode("update").trigger(realTime=f"{spec.realtime_batch_ms} milliseconds")  # type: ignore[call-overload]
    else:
        writer = _triggered(writer.outputMode(spec.output_mode), spec)
    return Started(_begun(writer, spec), opened, batches, sinks)


def _begun(writer: DataStreamWriter, spec: JobSpec) -> StreamingQuery:
    return writer.option("checkpointLocation", spec.checkpoint).queryName(f"leat_{spec.query_id}").start()


def _triggered(writer: DataStreamWriter, spec: JobSpec) -> DataStreamWriter:
    """When batches begin; with ``available_now`` the query ends after the last batch of existing records."""
    if spec.available_now:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=f"{spec.trigger_interval_ms} milliseconds")


def check(spec: JobSpec) -> None:
    """Refuse what the data plane does not do yet, before anything starts.

    Raises:
        JobError: job-rejected.
    """
    if spec.sink.view is not None:
        return
    kind = connector_classes().get(spec.sink.store.kind)
    promised = [guarantee.name for guarantee in kind.capabilities.delivery] if kind else []
    if spec.delivery is not Delivery.AT_LEAST_ONCE and spec.delivery.value not in promised:
        raise JobError(
            "job-rejected", f"Delivery {spec.delivery.value} is not supported yet; use at_least_once."
        )
    if spec.sink.value_format not in (kind.value_formats if kind else ("json",)):
        raise JobError(
            "job-rejected", f"Value format {spec.sink.value_format} is not supported yet; use json."
        )
    if spec.sink.timestamp_strategy != "proc.time":
        raise JobError(
            "job-rejected",
            f"Sink timestamp strategy {spec.sink.timestamp_strategy} is not supported yet: Spark's Kafka "
            "sink does not write a record's time; use proc.time.",
        )


def _check_slots(sources: list[tuple[Any, Connector]], slots: int) -> None:
    """Real-time mode holds a task per partition all the time; a waiting one would read nothing."""
    needed = 0
    for source, connector in sources:
        entity = connector.find_entity(source.entity)
        if entity is None:
            raise JobError(
                "source-gone",
                f"Entity {source.entity} of {source.relation} does not exist in {source.store.name}.",
                condition="SOURCE_ENTITY_GONE",
            )
        needed += entity.properties.get("topic.partitions") or 1
    if needed > slots:
        raise JobError(
            "job-rejected",
            f"Real-time mode needs a task for each of {needed} source partitions; the driver has {slots}.",
        )
