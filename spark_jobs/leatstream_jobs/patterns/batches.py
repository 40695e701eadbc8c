"""Row patterns batch by batch: rows wait for the watermark in a snapshot, and matches are written.

Spark computes what is of one row, parts the rows and keeps them; the matcher runs in its Python workers, once
for each partition that has new rows or that the watermark decides about. As with other snapshots, batch N
reads what was there before N, so that a repeated batch gives the same matches.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leatstream.model.objects import ROWKEY, ROWTIME
from leatstream.plan.job_spec import JobSpec, PatternSpec
from leatstream.plan.pattern import from_json
from leatstream_jobs.batches.common import Batches, BatchSink, keeping
from leatstream_jobs.changelogs.snapshot_store import File, Manifest, SnapshotStore
from leatstream_jobs.patterns.cells import kind_of, one_zero, place, text, value
from leatstream_jobs.patterns.matching import Matcher, Pattern, State
from leatstream_jobs.patterns.values import PatternError, Row
from leatstream_jobs.reading.idle import TICK
from leatstream_jobs.reading.merged_sources import ROWS, SIDE, rows_of
from leatstream_jobs.reading.scans import Scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MARK = "LEAT_PATTERN"
_WORKED = "state STRING, due BIGINT, out ARRAY<STRING>"
_SCHEMA = f"key STRING, batch BIGINT, had BOOLEAN, r STRUCT<{_WORKED}>"
_NEVER = -(1 << 62)  # the watermark before there is one
_MOST_FILES = 8


class PatternBatches(Batches):
    """Finds the matches that each batch decides about.

    Attributes:
        late_rows: rows that came behind the watermark, and were left out.
        state_rows: partitions in which something is open.
        watermark_ms: of the last batch.

    Args:
        spec: of the job.
        pattern: of its operator.
        scans: its sources.
        sink: of the job.
    """

    def __init__(
        self,
        spec: JobSpec,
        pattern: PatternSpec,
        scans: Sequence[Scan],
        sink: BatchSink,
    ) -> None:
        super().__init__()
        self.late_rows = self.state_rows = 0
        self.watermark_ms: int | None = None
        self._spec, self._pattern, self._scans = spec, pattern, scans
        self._sink = sink
        self._store: SnapshotStore | None = None

    def last_watermark(self, spark: SparkSession) -> int:
        """What the last batch went by, microseconds from the epoch; 0 for none yet."""
        store = self._store or self._opened(spark)
        return max(store.before(sys.maxsize).newest.get(self._pattern.view, 0), 0)

    def _opened(self, spark: SparkSession) -> SnapshotStore:
        return SnapshotStore(spark, f"{self._spec.checkpoint}/patterns")

    def _run(self, batch: DataFrame, number: int) -> None:
        spark = batch.sparkSession
        if self._store is None:
            self._store = self._opened(spark)
            known = self._known(self._store, self._store.before(number))
            self.state_rows = 0 if known is None else known.where("due IS NOT NULL").count()
        store = self._store
        before = store.before(number)
        manifest = store.find(number)
        if manifest is None:
            with keeping(batch):
                manifest = self._advance(spark, store, batch, before, number)
        mark = manifest.newest[self._pattern.view]
        self.watermark_ms = None if mark == _NEVER else mark // 1000
        name = manifest.changes.get(self._pattern.view)
        changed = store.rows([File(name, 0)], _schema()) if name is not None else None
        if changed is not None:
            self._tell(spark, changed, number)

    def _advance(
        self, spark: SparkSession, store: SnapshotStore, held: DataFrame, before: Manifest, number: int
    ) -> Manifest:
        """Find the matches of a batch, and keep what is open after it."""
        from pyspark.sql import functions as F

        view = self._pattern.view
        late = before.newest.get(view, _NEVER)
        newest = self._newest(held, before, late)
        # It never decreases, also where another delay has been set meanwhile.
        newest[view] = max(late, self._watermark(newest, number))
        for i, scan in enumerate(self._scans):
            rows = rows_of(held, i)
            rows = rows.where(~F.col(TICK)).drop(TICK) if TICK in rows.columns else rows
            rows = rows.where(F.unix_micros(F.col(ROWTIME)) > late)
            rows.createOrReplaceTempView(scan.source.view)
        worked = self._worked(spark, self._known(store, before), newest[view])
        name = f"{view}-{number:012d}"
        batch = worked.select("key", F.lit(number).cast("bigint").alias("batch"), "had", "r")
        files = (*before.files.get(view, ()), store.write(name, batch))
        manifest = Manifest(number, {view: self._merged(store, files, number)}, {view: name}, newest)
        store.commit(manifest)
        store.clean(manifest)
        return manifest

    def _newest(self, held: DataFrame, before: Manifest, late: int) -> dict[str, int]:
        """View to its newest event time so far; late rows are counted on the way."""
        from pyspark.sql import functions as F

        sides = range(len(self._scans))
        times = F.coalesce(*(F.unix_micros(F.col(f"{ROWS}{i}.{ROWTIME}")) for i in sides))
        ticks = [
            F.col(f"{ROWS}{i}.{TICK}")
            for i in sides
            if TICK in held.schema[f"{ROWS}{i}"].dataType.names  # type: ignore[attr-defined]
        ]
        ticked = F.coalesce(*ticks, F.lit(False)) if ticks else F.lit(False)
        count = F.count_if((times <= late) & ~ticked)
        found = held.groupBy(SIDE).agg(F.max(times).alias("at"), count.alias("late")).collect()
        newest = dict(before.newest)
        for row in found:
            view = self._scans[row[SIDE]].source.view
            newest[view] = max(int(row["at"]), newest.get(view, _NEVER))
            self.late_rows += int(row["late"])
        return newest

    def _watermark(self, newest: Mapping[str, int], number: int) -> int:
        """Microseconds: the slowest source's newest time, less its delay; where it takes over, as given."""
        given = self._spec.hand_over
        if given is not None and given.batch == number and given.watermark_us is not None:
            return given.watermark_us
        marks = [
            newest[s.source.view] - 1000 * (s.source.watermark_delay_ms or 0)
            for s in self._scans
            if s.source.view in newest
        ]
        return min(marks) if len(marks) == len(self._scans) else _NEVER

    def _known(self, store: SnapshotStore, manifest: Manifest) -> DataFrame | None:
        """The newest state of each partition: ``key``, ``state``, ``due``; None of no partition."""
        from pyspark.sql import functions as F

        rows = store.rows(manifest.files.get(self._pattern.view, ()), _schema())
        if rows is None:
            return None
        kept = F.max_by(F.struct("r.state", "r.due"), F.col("batch")).alias("kept")
        return rows.groupBy("key").agg(kept).select("key", "kept.*").where("state IS NOT NULL")

    def _worked(self, spark: SparkSession, known: DataFrame | None, watermark: int) -> DataFrame:
        """``key``, ``had`` and what the matcher gives (``r``), of each partition that is concerned."""
        from pyspark.sql import functions as F

        rows = self._encoded(spark).groupBy("key").agg(F.collect_list("row").alias("rows"))
        if known is None:
            nothing = F.lit(None).cast("string").alias("state")
            waiting = rows.select("key", "rows", nothing, F.lit(False).alias("had"))
        else:
            both = rows.join(known.withColumnRenamed("key", "known"), F.col("key") == F.col("known"), "full")
            both = both.where(F.col("rows").isNotNull() | (F.col("due") <= watermark))
            key = F.coalesce("key", "known").alias("key")
            waiting = both.select(key, "rows", "state", F.col("due").isNotNull().alias("had"))
        # Plain rows, not Arrow: pyarrow is not needed.
        work = F.udf(Work(self._pattern), _WORKED, useArrow=False)
        return waiting.select("key", "had", work("state", "rows", F.lit(watermark)).alias("r"))

    def _encoded(self, spark: SparkSession) -> DataFrame:
        """The input's rows as text, with the text of what they are parted by."""
        from pyspark.sql import functions as F

        frame = spark.sql(self._pattern.input)
        types = list(enumerate(self._pattern.types))
        cells = [text(F.col(f"c{i}"), kind) for i, kind in types]
        time = F.unix_micros(F.col(ROWTIME)).cast("string")
        row = F.array(time, place(frame), *cells, F.hex(F.col(ROWKEY)))
        parts = [text(one_zero(F.col(f"c{i}"), kind), kind) for i, kind in types[: self._pattern.partitions]]
        key = F.to_json(F.array(*parts)) if parts else F.lit("[]")
        return frame.select(key.alias("key"), F.to_json(row).alias("row"))

    def _merged(self, store: SnapshotStore, files: tuple[File, ...], number: int) -> tuple[File, ...]:
        from pyspark.sql import functions as F

        if len(files) <= _MOST_FILES:
            return files
        view = self._pattern.view
        known = self._known(store, Manifest(number, {view: files}))
        if known is None:
            return files
        r = F.struct("state", "due", F.array().cast("array<string>").alias("out")).alias("r")
        batch = F.lit(number).cast("bigint").alias("batch")
        rows = known.select("key", batch, F.lit(False).alias("had"), r)
        return (store.write(f"{view}-{number:012d}-merged", rows.coalesce(1)),)

    def _tell(self, spark: SparkSession, changed: DataFrame, number: int) -> None:
        from pyspark.sql import functions as F

        opened = F.coalesce(
            F.sum(F.col("r.due").isNotNull().cast("int") - F.col("had").cast("int")), F.lit(0)
        )
        found = F.coalesce(F.sum(F.size("r.out")), F.lit(0))
        (counts,) = changed.agg(opened.alias("opened"), found.alias("found")).collect()
        self.state_rows += int(counts["opened"])
        if not counts["found"]:
            return
        emitted = changed.select(F.explode("r.out").alias("text"))
        values = emitted.select(F.from_json("text", "ARRAY<STRING>").alias("v"))
        results = enumerate(self._pattern.results.items())
        columns = [value(F.col("v")[i], kind).alias(name) for i, (name, kind) in results]
        count = len(columns)
        key = F.unhex(F.col("v")[count]).alias(ROWKEY)
        time = F.timestamp_micros(F.col("v")[count + 1].cast("bigint")).alias(ROWTIME)
        values.select(*columns, key, time).createOrReplaceTempView(self._pattern.view)
        self._sink.write(self._sink.shape(spark.sql(self._spec.sql)), number)


class Work:
    """The matcher as Spark's workers call it: state and new rows in, state and matches out."""

    def __init__(self, pattern: PatternSpec) -> None:
        self._document = pattern.model_dump_json()
        self._matcher: Matcher | None = None

    def __getstate__(self) -> str:
        return self._document

    def __setstate__(self, document: str) -> None:
        self._document = document
        self._matcher = None

    def __call__(
        self, state: str | None, rows: Sequence[str] | None, watermark: int
    ) -> tuple[str | None, int | None, list[str]]:
        """One partition of one batch."""
        if self._matcher is None:
            self._matcher = Matcher(pattern_of(PatternSpec.model_validate_json(self._document)))
        try:
            left, due, found = self._matcher.advance(State.read(state), list(map(Row, rows or ())), watermark)
        except PatternError as error:
            raise PatternError(f"{MARK} {error} {MARK}_END") from None
        return left.write(), due, [json.dumps(one, ensure_ascii=False) for one in found]


def pattern_of(spec: PatternSpec) -> Pattern:
    """What the matcher looks for; behind the results come row key and row time."""
    kinds = [kind_of(name) for name in spec.types]
    hidden: list[list[Any]] = [["cell", len(kinds), None, None], ["time"]]
    return Pattern(
        term=from_json(spec.term),
        kinds=[*kinds, "text"],
        define=spec.define,
        measures=[*spec.measures, *hidden],
        within=None if spec.within_ms is None else 1000 * spec.within_ms,
        to_next=spec.to_next,
        to_row=spec.to_row,
        to_variables=spec.to_variables,
        all_rows=spec.all_rows,
        memory=spec.memory,
    )


def _schema() -> Any:
    from pyspark.sql.types import StructType

    return StructType.fromDDL(_SCHEMA)
