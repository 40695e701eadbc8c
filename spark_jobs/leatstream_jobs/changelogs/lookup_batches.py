"""Batch by batch: rows of a stream or changelog joined with the present rows of tables.

Of each table only the rows are read whose keys the batch asks for, by Spark's own tasks. The join itself is
Spark's, over the batch and these rows, so that ON means here what it means everywhere. A join may give
rows in another order, so where they replace each other only the last one of each key is put into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leatstream.connectors.writers import TableReader
from leatstream.formats import json, json_writing
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import JobSpec, LookupSpec, SnapshotSpec
from leatstream_jobs.batches.common import Batches, BatchSink, keeping
from leatstream_jobs.changelogs.snapshot_rows import Shape, kept, newest, place
from leatstream_jobs.reading.merged_sources import rows_of
from leatstream_jobs.reading.scans import UNDECODABLE, Scan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class TableLookup:
    """A table made ready to be looked up in."""

    spec: LookupSpec
    reader: TableReader

    def rows(self, spark: SparkSession) -> DataFrame:
        """The table's rows that the views left of it ask for, as the relation's columns."""
        from pyspark.sql import functions as F

        spec = self.spec
        kinds = {column.name: parse_type(column.type).spark() for column in spec.columns}
        wanted = ", ".join(f"{value} AS k{i}" for i, value in enumerate(spec.values))
        values = spark.sql(f"SELECT {wanted} FROM {spec.left}")  # noqa: S608 - our compiler's
        # A value that the column cannot have is no key of a row.
        wanted_as = [kinds[name] for name in spec.keys]
        typed = [_plain(F.col(f"k{i}").try_cast(kind), kind) for i, kind in enumerate(wanted_as)]
        texts = self.reader.texts(typed, json_writing.nested)
        keys = values.select(*(text.alias(f"k{i}") for i, text in enumerate(texts))).dropna().distinct()
        return self._read(self.reader.rows(keys))

    def _read(self, rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        decoder = json.decoder(self.spec.columns)
        mark = F.lit(f'{UNDECODABLE} {self.spec.view} {{"table": true}} {UNDECODABLE}_END')
        good = F.when(decoder.undecodable, F.raise_error(mark)).otherwise(F.lit(True))
        parsed = decoder.over(rows.select(F.col("value").alias(json.TEXT)))
        return parsed.where(good).select(*decoder.fields)


def _plain(value: Column, kind: str) -> Column:
    """The one form of equal values: minus zero is zero, and its rows are read once."""
    from pyspark.sql import functions as F

    return (value + F.lit(0.0)).cast(kind) if kind in ("FLOAT", "DOUBLE") else value


class LookupBatches(Batches):
    """Joins each batch with the rows that its tables have then.

    Args:
        spec: of the job.
        scans: its sources.
        lookups: its tables, in the order of the joins.
        sink: of the job.
    """

    def __init__(
        self,
        spec: JobSpec,
        scans: Sequence[Scan],
        lookups: Sequence[TableLookup],
        sink: BatchSink,
    ) -> None:
        super().__init__()
        self._spec = spec
        self._scans = scans
        self._lookups = lookups
        self._sink = sink

    def _run(self, batch: DataFrame, number: int) -> None:
        spark = batch.sparkSession
        # Its rows are read for the keys and for the join.
        with keeping(batch):
            for i, scan in enumerate(self._scans):
                self._counting(scan, rows_of(batch, i)).createOrReplaceTempView(scan.source.view)
            for lookup in self._lookups:
                # A table's rows are to be the same wherever they are used.
                kept(lookup.rows(spark)).hint("shuffle_hash").createOrReplaceTempView(lookup.spec.view)
            self._sink.write(self._sink.shape(spark.sql(self._spec.sql)), number)

    def _counting(self, scan: Scan, rows: DataFrame) -> DataFrame:
        """A changelog's last rows in the order of its topic, where the sink's rows replace each other."""
        keys = scan.source.primary_key
        if not keys or not self._spec.sink.deletes:
            return rows
        shape = Shape.of(scan.source, SnapshotSpec(view=scan.source.view, keys=keys), scan.frame)
        return shape.named(newest(shape.numbered(rows), shape.keys, place(rows)))
