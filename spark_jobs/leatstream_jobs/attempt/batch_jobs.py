"""Jobs that are processed batch by batch in Python: which of them a JobSpec asks for, and what it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from leatstream.connectors.base import Connector
from leatstream.plan.job_spec import JobSpec, SourceSpec, StoreRef
from leatstream_jobs.batches.common import Batches, BatchSink
from leatstream_jobs.batches.joint_batches import JointBatches, JointPart
from leatstream_jobs.changelogs.lookup_batches import LookupBatches, TableLookup
from leatstream_jobs.changelogs.snapshot_batches import SnapshotBatches
from leatstream_jobs.patterns.batches import PatternBatches
from leatstream_jobs.reading import scans
from leatstream_jobs.reading.idle import tick_folder, with_ticks
from leatstream_jobs.reading.merged_sources import together
from leatstream_jobs.writing.batch_sink import open_sink
from leatstream_jobs.writing.described_sink import registry_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A job made ready: every batch of ``frame``, which reads all ``scans``, is passed to ``batches``.

    ``sinks`` are those of the job and of its members, in their order.
    """

    frame: DataFrame
    scans: tuple[scans.Scan, ...]
    batches: Batches
    sinks: tuple[BatchSink, ...]


def open_job(
    spark: SparkSession,
    spec: JobSpec,
    sources: Sequence[tuple[SourceSpec, Connector]],
    connect: Callable[[StoreRef], Connector],
    secrets: Mapping[str, str],
) -> BatchJob:
    """Open the sources and sinks of such a job.

    Args:
        spark: the job's session.
        spec: that is a batch job.
        sources: with the stores that they are in.
        connect: opens a store with its secrets resolved.
        secrets: values by reference, for schema registries and the database of a view.

    Raises:
        JobError: job-rejected, for what is not built; checkpoint-damaged.
        StoreError: a store, the database of a view or a schema registry does not answer.
    """
    opened = tuple(
        scans.read(spark, source, connector, realtime=False, registry=registry_of(source.store, secrets))
        for source, connector in sources
    )
    if spec.members:
        jobs = (spec, *(spec.of_member(member) for member in spec.members))
        parts = [JointPart(one, open_sink(spark, one, connect, secrets)) for one in jobs]
        sinks = tuple(part.sink for part in parts)
        return BatchJob(opened[0].frame, opened, JointBatches(opened[0], parts), sinks)
    sink = open_sink(spark, spec, connect, secrets)
    batches: Batches
    if spec.operator is None:
        tables = [TableLookup(one, connect(one.store).table_reader(one)) for one in spec.lookups]
        batches = LookupBatches(spec, opened, tables, sink)
    elif spec.operator.pattern is None:
        batches = SnapshotBatches(spec, spec.operator, opened, sink)
    else:
        opened = tuple(_ticking(spark, scan, spec.checkpoint) for scan in opened)
        batches = PatternBatches(spec, spec.operator.pattern, opened, sink)
    return BatchJob(together(opened), opened, batches, (sink,))


def _ticking(spark: SparkSession, scan: scans.Scan, checkpoint: str) -> scans.Scan:
    """The scan, with the ticks of a source that may fall silent."""
    if scan.source.idle_timeout_ms is None:
        return scan
    return replace(scan, frame=with_ticks(spark, scan.frame, tick_folder(checkpoint, scan.source.view)))
