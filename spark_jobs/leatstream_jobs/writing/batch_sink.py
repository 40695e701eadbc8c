"""Where batches go that are processed in Python: how rows become what a sink takes, and who writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from leatstream.connectors.base import Connector
from leatstream.connectors.registry import connector_classes
from leatstream.connectors.writers import BatchTarget, Written
from leatstream.plan.job_spec import Delivery, JobSpec, SinkSpec, StoreRef
from leatstream_jobs.batches.common import BatchSink
from leatstream_jobs.batches.handing_over import hushed
from leatstream_jobs.writing.checkpoint_age import keeps_up
from leatstream_jobs.writing.described_sink import RecordForm
from leatstream_jobs.writing.file_rows import file_rows
from leatstream_jobs.writing.sink_rows import shaped
from leatstream_jobs.writing.table_sink import table_rows
from leatstream_jobs.writing.view_sink import Applier, keyed_view_rows, opened_view, view_changes, view_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def has_tables(sink: SinkSpec) -> bool:
    """Whether rows go by column into a table, through ``Connector.table_writer``."""
    found = connector_classes().get(sink.store.kind)
    return found is not None and found.tables


def has_rows(sink: SinkSpec) -> bool:
    """Whether rows and not records are written: into tables, files or views."""
    found = connector_classes().get(sink.store.kind)
    return sink.view is not None or (found is not None and (found.tables or found.takes_rows))


def by_batches(spec: JobSpec) -> bool:
    """Whether the sink is written through a ``BatchSink``, and not by Spark itself."""
    found = connector_classes().get(spec.sink.store.kind)
    streams = found is not None and found.streams and not has_rows(spec.sink)
    handed = spec.silent or spec.hand_over is not None
    return spec.is_batch_job or not streams or handed or exactly_once(spec)


def exactly_once(spec: JobSpec) -> bool:
    """Whether records go batch by batch through ``Connector.batch_writer``."""
    kind = connector_classes().get(spec.sink.store.kind)
    return spec.delivery is Delivery.EXACTLY_ONCE and kind is not None and not kind.takes_rows


def open_sink(
    spark: SparkSession, spec: JobSpec, connect: Callable[[StoreRef], Connector], secrets: Mapping[str, str]
) -> BatchSink:
    """Open the sink of a job; what it is not to write yet, it does not.

    Args:
        spark: for the file system of the checkpoint.
        spec: the job.
        connect: opens a store with its secrets resolved.
        secrets: values by reference, for schema registries and the database of a view.

    Raises:
        JobError: checkpoint-damaged, the sink holds a batch that the checkpoint does not know.
        StoreError: the store, the database of a view or a schema registry does not answer.
    """
    return hushed(spec, _opened(spark, spec, connect, secrets))


def _opened(
    spark: SparkSession, spec: JobSpec, connect: Callable[[StoreRef], Connector], secrets: Mapping[str, str]
) -> BatchSink:
    sink = spec.sink
    if sink.view is not None:
        return _view_sink(spec, Applier(spec, opened_view(spark, spec, secrets)))
    connector = connect(sink.store)
    if connector.takes_rows:
        target = BatchTarget(spec.query_id, spec.query_name, spec.generation, spec.checkpoint)
        return BatchSink(lambda rows: file_rows(rows, sink), connector.row_writer(sink, target))
    if has_tables(sink):
        table = connector.table_writer(spec)
        keeps_up(spark, spec, table.committed())
        return BatchSink(lambda rows: table_rows(rows, sink, table), table.write)
    form = RecordForm.of(sink, secrets)
    if exactly_once(spec):
        once = connector.batch_writer(spec)
        keeps_up(spark, spec, once.committed())
        return BatchSink(lambda rows: shaped(rows, sink, form), once.write)

    def write(frame: DataFrame, _number: int) -> Written | None:
        return connector.write_batch(frame, sink)

    return BatchSink(lambda rows: shaped(rows, sink, form), write)


def _view_sink(spec: JobSpec, applier: Applier) -> BatchSink:
    """The sink of a view: rows as they are, or as what differs by key where that is worked out."""
    sink, operator = spec.sink, spec.operator
    if operator is None or not operator.replaces:
        return BatchSink(lambda rows: view_rows(rows, sink), applier.apply)

    def write(records: DataFrame, number: int) -> Written:
        return applier.apply(view_changes(records), number)

    return BatchSink(lambda rows: keyed_view_rows(rows, sink), write)
