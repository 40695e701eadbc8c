"""Batch by batch: joins with changelogs and aggregates over them, computed against keyed snapshots.

All sources are one streaming query, so that one batch number fixes what each of them gives. A temporal join
gives the batch's rows of the stream, each with the version that held at its time. The other operators compute
the rows that the batch concerns twice, from the snapshots before it and after it, and write what differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from leatstream.model.objects import DELETED, ROWTIME
from leatstream.plan.job_spec import JobSpec, OperatorSpec
from leatstream_jobs.batches.common import Batches, BatchSink, keeping
from leatstream_jobs.changelogs.concerned_rows import Concerned, Views, link_values, register
from leatstream_jobs.changelogs.snapshot_rows import HELD, Shape, held, of_keys, union, versions
from leatstream_jobs.changelogs.snapshot_store import Manifest, SnapshotStore
from leatstream_jobs.changelogs.snapshots import BatchSnapshots
from leatstream_jobs.reading.merged_sources import ROWS, SIDE, rows_of
from leatstream_jobs.reading.scans import Scan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


# The first rows of a frame come from one job, however many partitions it has.
_SETTINGS = {"spark.sql.limit.initialNumPartitions": "1000000"}
# How the results of few rows are computed, all of them in one partition.
_FEW_ROWS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # To write code for them takes longer than to work them off without.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class SnapshotBatches(Batches):
    """Computes each batch against the snapshots before it and after it.

    Args:
        spec: of the job.
        operator: its operator.
        scans: its sources.
        sink: of the job; where rows replace each other it takes ``key``, ``value`` and what belongs to that.
    """

    def __init__(
        self,
        spec: JobSpec,
        operator: OperatorSpec,
        scans: Sequence[Scan],
        sink: BatchSink,
    ) -> None:
        super().__init__()
        self._spec = spec
        self._operator = operator
        self._scans = scans
        self._sink = sink
        self._store: SnapshotStore | None = None
        self._few = True  # as far as the batch before it shows
        self._settings: dict[str, str] = {}
        kept = {one.view: one for one in self._operator.snapshots}
        self._shapes = {
            scan.source.view: Shape.of(scan.source, kept[scan.source.view], scan.frame)
            for scan in scans
            if scan.source.view in kept
        }

    def _run(self, batch: DataFrame, number: int) -> None:
        spark = batch.sparkSession
        if self._store is None:
            self._store = SnapshotStore(spark, f"{self._spec.checkpoint}/snapshots")
        if not self._settings:
            self._settings = {**_SETTINGS, **{k: str(spark.conf.get(k)) for k in _FEW_ROWS}}
        for name, value in self._settings.items():
            spark.conf.set(name, value)
        with keeping(batch):
            rows = held(batch) if self._few else None
            self._work(batch if rows is None else rows, self._store, number, few=rows is not None)

    def _work(self, batch: DataFrame, store: SnapshotStore, number: int, *, few: bool) -> None:
        spark = batch.sparkSession
        counts, times = self._look(batch, few=few)
        self._few = sum(counts.values()) <= HELD
        rows = {scan.source.view: rows_of(batch, i) for i, scan in enumerate(self._scans)}
        fresh = {v: s.numbered(rows[v]) for v, s in self._shapes.items() if counts.get(v)}
        state = BatchSnapshots(
            store, self._operator.snapshots, self._shapes, number, fresh, counts, times, few=few
        )
        manifest = state.save()
        if not self._operator.replaces:
            self._temporal(spark, state, rows, counts, number)
        elif fresh:
            self._keyed(spark, state, manifest, number)

    def _look(self, batch: DataFrame, *, few: bool) -> tuple[dict[str, int], dict[str, int]]:
        """Per view how many rows the batch has, and the newest event time."""
        from pyspark.sql import functions as F

        times = [self._event_time(i, scan.source.view) for i, scan in enumerate(self._scans)]
        found = batch.select(SIDE, F.lit(1).alias("n"), F.coalesce(*times).alias("at"))
        if not few:
            found = found.groupBy(SIDE).agg(F.sum("n").alias("n"), F.max("at").alias("at"))
        views = [scan.source.view for scan in self._scans]
        counts, newest = dict[str, int](), dict[str, int]()
        for side, count, at in found.collect():
            view = views[side]
            counts[view] = counts.get(view, 0) + count
            if at is not None:
                newest[view] = max(at, newest.get(view, at))
        return counts, newest

    def _event_time(self, side: int, view: str) -> Column:
        """Event time of a source's rows in the batch, microseconds; NULL of those that have none."""
        from pyspark.sql import functions as F

        time = F.unix_micros(F.col(f"{ROWS}{side}.{ROWTIME}"))
        shape = self._shapes.get(view)
        # A deletion's record may lie years ahead of the rows' own times.
        return F.when(~F.col(f"{ROWS}{side}.{DELETED}"), time) if shape and shape.undated else time

    # Streams with changelogs

    def _temporal(
        self,
        spark: SparkSession,
        state: BatchSnapshots,
        rows: Mapping[str, DataFrame],
        counts: Mapping[str, int],
        number: int,
    ) -> None:
        streams = [view for view in rows if view not in self._shapes]
        if not any(counts.get(view) for view in streams):
            return
        for view in streams:
            rows[view].createOrReplaceTempView(view)
        links = {link.view: link for link in self._operator.links}
        for view, shape in self._shapes.items():
            parts = [frame for frame in (state.all_before(view), state.fresh.get(view)) if frame is not None]
            known = union(parts) if parts else shape.numbered(rows[view])
            if view in links and parts:
                keys = link_values(spark, links[view]).distinct()
                known = of_keys(known, shape.keys, keys, sum(counts.get(v, 0) for v in streams))
            found = versions(known, shape.keys, undated=shape.undated)
            shape.named(found).createOrReplaceTempView(view)
        self._sink.write(self._sink.shape(spark.sql(self._spec.sql)), number)

    # Changelogs among themselves

    def _keyed(self, spark: SparkSession, state: BatchSnapshots, manifest: Manifest, number: int) -> None:
        views = Concerned(spark, self._operator, state, manifest).views()
        before, after = (self._evaluated(spark, one, few=state.few) for one in views)
        if state.few:
            for name, value in _FEW_ROWS.items():
                spark.conf.set(name, value)
        self._sink.write(_difference(before, after), number)

    def _evaluated(self, spark: SparkSession, views: Views, *, few: bool) -> DataFrame:
        """The query's records over these rows of its changelogs."""
        if few:
            views = {view: None if rows is None else rows.coalesce(1) for view, rows in views.items()}
        register(spark, self._shapes, views)
        return self._sink.shape(spark.sql(self._spec.sql))


def _difference(before: DataFrame, after: DataFrame) -> DataFrame:
    """Records that make ``after`` of ``before``: new ones by key, no value for deleted keys.

    What stands beside the key, such as headers, counts like the value.
    """
    from pyspark.sql import functions as F

    parts = [name for name in after.columns if name != "key"]
    whole = F.when(F.col("value").isNotNull(), F.struct(*parts))
    nothing = F.lit(None).cast(after.select(whole.alias("one")).schema["one"].dataType)
    old = before.select("key", whole.alias("was"), nothing.alias("is"))
    new = after.select("key", nothing.alias("was"), whole.alias("is"))
    both = old.unionByName(new).groupBy("key").agg(F.max("was").alias("was"), F.max("is").alias("is"))
    changed = both.where(~F.col("was").eqNullSafe(F.col("is")))
    return changed.select("key", *(F.col("is")[name].alias(name) for name in parts))
