"""From a JobSpec to a running Spark query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from leatstream.connectors.base import Connector
from leatstream.connectors.registry import connector_classes
from leatstream.connectors.writers import BatchTarget, TableWriter
from leatstream.errors import JobError
from leatstream.formats import json, primitive
from leatstream.formats.described import FORMATS as DESCRIBED
from leatstream.model.objects import DELETED, ROWKEY, ROWTIME
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import (
    ColumnSpec,
    Delivery,
    JobSpec,
    Mode,
    OperatorSpec,
    SinkSpec,
    SourceSpec,
    StoreRef,
)
from leatstream.views.base import ViewWriter
from leatstream.views.opening import view_writer
from leatstream_jobs import scans
from leatstream_jobs.batch_size import first_limit
from leatstream_jobs.checkpoint_age import keeps_up
from leatstream_jobs.described_sink import RecordForm, registry_of
from leatstream_jobs.file_rows import file_rows
from leatstream_jobs.idle import tick_folder, with_ticks
from leatstream_jobs.joint_batches import JointBatches, JointPart
from leatstream_jobs.lookup_batches import LookupBatches, TableLookup
from leatstream_jobs.pattern_batches import PatternBatches
from leatstream_jobs.snapshot_batches import SnapshotBatches, together
from leatstream_jobs.table_sink import table_rows
from leatstream_jobs.view_sink import Applier, view_rows, write_view
from leatstream_jobs.written_batches import WrittenBatches

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

# The connector reads it from the session (connectors/kafka/connector.py MAX_OFFSETS).
MAX_OFFSETS = "leatstream.max_offsets_per_trigger"


@dataclass(frozen=True, slots=True)
class Started:
    """A query that Spark has accepted; ``batches`` are those that are worked off in Python."""

    query: StreamingQuery
    scans: tuple[scans.Scan, ...]
    batches: SnapshotBatches | PatternBatches | LookupBatches | WrittenBatches | JointBatches | None = None


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
        JobError: job-rejected, for what is not built or cannot run.
        StoreError: the database of a view or a schema registry does not answer.
        pyspark.errors.PySparkException: what Spark finds wrong.
    """
    jobs = [spec, *(spec.of_member(member) for member in spec.members)]
    for one in jobs:
        check(one)
    known = secrets or {}
    realtime = spec.mode is Mode.REALTIME
    for key, value in spec.conf.items():
        spark.conf.set(key, value)
    spark.conf.set(MAX_OFFSETS, str(first_limit(spec)))
    sources = [(source, connect(source.store)) for source in spec.sources]
    if realtime:
        _check_slots(sources, slots)
    if spec.members:
        return _start_joint(spark, spec, jobs, sources, connect, known)
    if spec.operator is not None:
        return _start_batches(spark, spec, spec.operator, sources, connect(spec.sink.store), known)
    if spec.lookups:
        tables = [TableLookup(one, connect(one.store).table_reader(one)) for one in spec.lookups]
        return _start_lookups(spark, spec, tables, sources, connect(spec.sink.store), known)
    opened = tuple(
        scans.register(
            spark,
            s,
            connector,
            realtime=realtime,
            ticks=tick_folder(spec.checkpoint, s.view),
            registry=registry_of(s.store, known),
        )
        for s, connector in sources
    )
    rows = spark.sql(spec.sql)
    rows = undoubled(rows, len(spec.sink.columns)) if spec.distinct else rows
    sink = None if spec.sink.view is not None else connect(spec.sink.store)
    batches: WrittenBatches | None = None
    if sink is not None and _has_tables(spec.sink):
        target = sink.table_writer(spec)
        keeps_up(spark, spec, target.committed())
        batches = WrittenBatches(target)
        writer = _in_columns(rows, spec.sink, target).writeStream.foreachBatch(batches)
    elif sink is not None and _exactly_once(spec):
        once = sink.batch_writer(spec)
        keeps_up(spark, spec, once.committed())
        batches = WrittenBatches(once)
        frame = with_logs(shaped(rows, spec.sink, RecordForm.of(spec.sink, known)), spec.sink.entity, opened)
        writer = frame.writeStream.foreachBatch(batches)
    else:
        writer = _writer(spark, rows, spec, sink, known, opened)
    writer = writer.option("checkpointLocation", spec.checkpoint).queryName(f"leat_{spec.query_id}")
    if realtime:
        writer = writer.outputMode("update").trigger(realTime=f"{spec.realtime_batch_ms} milliseconds")  # type: ignore[call-overload]
    else:
        writer = _triggered(writer.outputMode(spec.output_mode), spec)
    return Started(writer.start(), opened, batches)


def _start_batches(
    spark: SparkSession,
    spec: JobSpec,
    operator: OperatorSpec,
    sources: list[tuple[SourceSpec, Connector]],
    sink: Connector,
    secrets: Mapping[str, str],
) -> Started:
    opened = tuple(
        scans.read(spark, s, connector, realtime=False, registry=registry_of(s.store, secrets))
        for s, connector in sources
    )
    records, write = _batchwise(spark, spec, sink, secrets)
    batches: SnapshotBatches | PatternBatches
    if operator.pattern is not None:
        opened = tuple(_ticking(spark, scan, spec.checkpoint) for scan in opened)
        batches = PatternBatches(spec, operator.pattern, opened, records, write)
    else:
        batches = SnapshotBatches(spec, operator, opened, records, write)
    return _started(spec, opened, batches)


def _start_lookups(
    spark: SparkSession,
    spec: JobSpec,
    tables: Sequence[TableLookup],
    sources: list[tuple[SourceSpec, Connector]],
    sink: Connector,
    secrets: Mapping[str, str],
) -> Started:
    opened = tuple(
        scans.read(spark, s, connector, realtime=False, registry=registry_of(s.store, secrets))
        for s, connector in sources
    )
    batches = LookupBatches(spec, opened, tables, *_batchwise(spark, spec, sink, secrets))
    return _started(spec, opened, batches)


def _start_joint(
    spark: SparkSession,
    spec: JobSpec,
    jobs: Sequence[JobSpec],
    sources: list[tuple[SourceSpec, Connector]],
    connect: Callable[[StoreRef], Connector],
    secrets: Mapping[str, str],
) -> Started:
    opened = tuple(
        scans.read(spark, s, connector, realtime=False, registry=registry_of(s.store, secrets))
        for s, connector in sources
    )
    parts = [JointPart(one, *_part(spark, one, connect, secrets)) for one in jobs]
    return _started(spec, opened, JointBatches(opened[0], parts), opened[0].frame)


def _part(
    spark: SparkSession, spec: JobSpec, connect: Callable[[StoreRef], Connector], secrets: Mapping[str, str]
) -> tuple[Callable[[DataFrame, SinkSpec], DataFrame], Callable[[DataFrame, SinkSpec, int], None]]:
    """The same for one query of a job of several, whose sink may be a view."""
    if spec.sink.view is None:
        return _batchwise(spark, spec, connect(spec.sink.store), secrets)
    applier = Applier(spec, _opened_view(spark, spec, secrets))
    return (
        lambda rows, target: view_rows(*_numbered(rows, target), target),
        lambda frame, _target, number: applier.apply(frame, number),
    )


def _started(
    spec: JobSpec,
    opened: tuple[scans.Scan, ...],
    batches: SnapshotBatches | PatternBatches | LookupBatches | JointBatches,
    frame: DataFrame | None = None,
) -> Started:
    writer = (together(opened) if frame is None else frame).writeStream.foreachBatch(batches)
    writer = writer.option("checkpointLocation", spec.checkpoint).queryName(f"leat_{spec.query_id}")
    return Started(_triggered(writer, spec).start(), opened, batches)


def _triggered(writer: DataStreamWriter, spec: JobSpec) -> DataStreamWriter:
    """When batches begin; with ``available_now`` the query ends behind the last one of what is there now."""
    if spec.available_now:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=f"{spec.trigger_interval_ms} milliseconds")


def _ticking(spark: SparkSession, scan: scans.Scan, checkpoint: str) -> scans.Scan:
    """The scan, with the ticks of a source that may fall silent."""
    if scan.source.idle_timeout_ms is None:
        return scan
    return replace(scan, frame=with_ticks(spark, scan.frame, tick_folder(checkpoint, scan.source.view)))


def _batchwise(
    spark: SparkSession, spec: JobSpec, sink: Connector, secrets: Mapping[str, str]
) -> tuple[Callable[[DataFrame, SinkSpec], DataFrame], Callable[[DataFrame, SinkSpec, int], None]]:
    """What makes records of the SQL's rows, and what writes them, for an operator over kept rows."""
    if not _has_tables(spec.sink):
        form = RecordForm.of(spec.sink, secrets)
        if _exactly_once(spec):
            once = sink.batch_writer(spec)
            keeps_up(spark, spec, once.committed())
            return (
                lambda rows, target: shaped(rows, target, form),
                lambda frame, _target, number: once.write(frame, number),
            )
        return (
            lambda rows, target: shaped(rows, target, form),
            lambda frame, target, _number: sink.write_batch(frame, target),
        )
    table = sink.table_writer(spec)
    keeps_up(spark, spec, table.committed())
    return (
        lambda rows, target: _in_columns(rows, target, table),
        lambda frame, _target, number: table.write(frame, number),
    )


def _in_columns(rows: DataFrame, sink: SinkSpec, table: TableWriter) -> DataFrame:
    """Rows of the compiled SQL for a table."""
    numbered, values = _numbered(rows, sink)
    return table_rows(numbered, values, sink, table)


def _writer(
    spark: SparkSession,
    rows: DataFrame,
    spec: JobSpec,
    sink: Connector | None,
    secrets: Mapping[str, str],
    opened: Sequence[scans.Scan],
) -> DataStreamWriter:
    if sink is not None:
        if sink.takes_rows:
            target = BatchTarget(spec.query_id, spec.query_name, spec.generation, spec.checkpoint)
            numbered, values = _numbered(rows, spec.sink)
            return sink.write_rows(file_rows(numbered, values, spec.sink), spec.sink, target)
        form = RecordForm.of(spec.sink, secrets)
        frame = with_logs(shaped(rows, spec.sink, form), spec.sink.entity, opened)
        return sink.write_stream(frame, spec.sink, realtime=spec.mode is Mode.REALTIME)
    numbered, values = _numbered(rows, spec.sink)
    return write_view(numbered, values, spec, _opened_view(spark, spec, secrets))


def _opened_view(spark: SparkSession, spec: JobSpec, secrets: Mapping[str, str]) -> ViewWriter:
    view = spec.sink.view
    reference = view.database.secret if view is not None and view.database is not None else None
    writer = view_writer(spec, secrets[reference] if reference else None)
    writer.open()
    keeps_up(spark, spec, writer.committed())
    return writer


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


def _exactly_once(spec: JobSpec) -> bool:
    """Whether records go batch by batch through ``Connector.batch_writer``."""
    kind = connector_classes().get(spec.sink.store.kind)
    return spec.delivery is Delivery.EXACTLY_ONCE and kind is not None and not kind.takes_rows


def _has_tables(sink: SinkSpec) -> bool:
    found = connector_classes().get(sink.store.kind)
    return found is not None and found.tables


def with_logs(frame: DataFrame, entity: str, opened: Sequence[scans.Scan]) -> DataFrame:
    """The records and, in the same batch, those for the logs of undecodable ones, each with its ``topic``."""
    from pyspark.sql import functions as F

    logged = [scan for scan in opened if scan.source.log_entity is not None]
    if not logged:
        return frame
    frame = frame.withColumn("topic", F.lit(entity))
    for scan in logged:
        frame = frame.unionByName(scans.undecodable(scan).withColumn("topic", F.lit(scan.source.log_entity)))
    return frame


def undoubled(rows: DataFrame, wanted: int) -> DataFrame:
    """Each row of the first ``wanted`` columns once, with the first one's hidden columns.

    The state is kept for ever.
    """
    hidden = rows.columns[wanted:]
    numbered = [f"__leat_c{i}" for i in range(wanted)]
    return rows.toDF(*numbered, *hidden).dropDuplicates(numbered)


def shaped(rows: DataFrame, sink: SinkSpec, form: RecordForm | None = None) -> DataFrame:
    """Rows of the compiled SQL as records: ``key`` and ``value``, both BINARY.

    Raises:
        JobError: job-rejected, when the SQL's columns are not the sink's.
    """
    from pyspark.sql import functions as F

    numbered, values = _numbered(rows, sink)
    form = form or RecordForm()
    key = _key(sink, values, form)
    value = form.value(sink, values)
    if sink.deletes:
        # No value behind a key: readers of the changelog forget the row.
        value = F.when(~F.col(DELETED), value)
    return numbered.select(key.alias("key"), value.alias("value")).select(F.col("key"), F.col("value"))


def _numbered(rows: DataFrame, sink: SinkSpec) -> tuple[DataFrame, list[Column]]:
    """The rows with numbered columns, and the sink's columns over them, of their declared types."""
    names = rows.columns
    wanted = len(sink.columns)
    hidden = [DELETED, ROWKEY, ROWTIME] if sink.deletes else [ROWKEY, ROWTIME]
    if names[wanted:] != hidden:
        raise JobError(
            "job-rejected",
            f"The query gives {max(len(names) - len(hidden), 0)} columns, {sink.relation} has {wanted}.",
        )
    # Two columns of a join may share a name; positions are what counts.
    numbered = rows.toDF(*(f"__leat_c{i}" for i in range(wanted)), *hidden)
    return numbered, [_value(numbered, i, column) for i, column in enumerate(sink.columns)]


def _value(rows: DataFrame, index: int, column: ColumnSpec) -> Column:
    from pyspark.sql import functions as F

    field = rows.schema.fields[index]
    value = F.col(field.name)
    wanted = parse_type(column.type).spark()
    if _plain(field.dataType.simpleString()) != _plain(wanted):
        value = value.cast(wanted)
    if column.not_null and field.nullable:
        mark = F.raise_error(F.lit(f"LEAT_NULL_COLUMN {column.name} LEAT_NULL_COLUMN_END")).cast(wanted)
        value = F.coalesce(value, mark)
    return value


def _key(sink: SinkSpec, values: list[Column], form: RecordForm) -> Column:
    from pyspark.sql import functions as F

    if not sink.key_columns:
        return F.col(ROWKEY)
    by_name = {c.name: (c, v) for c, v in zip(sink.columns, values, strict=True)}
    missing = [name for name in sink.key_columns if name not in by_name]
    if missing:
        raise JobError(
            "job-rejected", f"Key columns {', '.join(missing)} are not columns of {sink.relation}."
        )
    chosen = [by_name[name] for name in sink.key_columns]
    if sink.key_format == "json":
        return json.encode([c for c, _ in chosen], [v for _, v in chosen])
    if sink.key_format in DESCRIBED:
        return form.key(sink, [c for c, _ in chosen], [v for _, v in chosen])
    if sink.key_format not in (None, "primitive"):
        raise JobError("job-rejected", f"Keys are not written in {sink.key_format}; use primitive or json.")
    if len(chosen) != 1:
        raise JobError("job-rejected", "A primitive key is made of exactly one column.")
    column, value = chosen[0]
    return primitive.encode(value, sink.key_type or column.type)


def _check_slots(sources: list[tuple[Any, Connector]], slots: int) -> None:
    """Real-time mode holds a task per partition all the time; a waiting one would read nothing."""
    needed = 0
    for source, connector in sources:
        entity = connector.find_entity(source.entity)
        if entity is None:
            raise JobError(
                "source-gone",
                f"Entity {source.entity} of {source.relation} does not exist in {source.store.name}.",
            )
        needed += entity.properties.get("topic.partitions") or 1
    if needed > slots:
        raise JobError(
            "job-rejected",
            f"Real-time mode needs a task for each of {needed} source partitions; the driver has {slots}.",
        )


def _plain(type_text: str) -> str:
    return type_text.lower().replace(" ", "").replace("`", "")
