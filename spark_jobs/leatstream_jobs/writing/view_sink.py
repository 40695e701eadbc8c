"""The sink of a materialized view: each micro-batch is one transaction of the driver's own process."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from leatstream.connectors.store_marks import marked
from leatstream.connectors.writers import Written
from leatstream.errors import StoreError
from leatstream.formats import json_writing
from leatstream.model.names import quote
from leatstream.model.objects import DELETED, ROWKEY, ROWTIME
from leatstream.model.types import DataType, parse_type
from leatstream.model.view_values import FLOATS, MOMENTS, NAN, NESTED, encode_decimal
from leatstream.plan.job_spec import JobSpec, SinkSpec
from leatstream.views.base import MICROSECOND, TIME, Batch, ViewWriter
from leatstream.views.opening import view_writer
from leatstream_jobs.writing.checkpoint_age import keeps_up
from leatstream_jobs.writing.sink_rows import in_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

_LOG = logging.getLogger("leatstream_jobs")


def opened_view(spark: SparkSession, spec: JobSpec, secrets: Mapping[str, str]) -> ViewWriter:
    """The table of the job's view, made if it is not there.

    Raises:
        StoreError: its database does not answer.
        JobError: checkpoint-damaged, the view holds a batch that the checkpoint does not know.
    """
    view = spec.sink.view
    reference = view.database.secret if view is not None and view.database is not None else None
    writer = view_writer(spec, secrets[reference] if reference else None)
    writer.open()
    keeps_up(spark, spec, writer.committed())
    return writer


def view_rows(rows: DataFrame, sink: SinkSpec) -> DataFrame:
    """The rows as they are fetched: ``c0``, ``c1``, …, ``leat_time`` and ``__leat_deleted`` if needed."""
    from pyspark.sql import functions as F

    numbered, values = in_columns(rows, sink)
    chosen = [
        _fetched(value, parse_type(column.type), column.name).alias(f"c{i}")
        for i, (column, value) in enumerate(zip(sink.columns, values, strict=True))
    ]
    if sink.view is not None and sink.view.retention_ms is not None:
        chosen.append(F.unix_micros(F.col(ROWTIME)).alias(TIME))
    if sink.deletes:
        chosen.append(F.col(DELETED))
    return numbered.drop(ROWKEY).select(*chosen)


def keyed_view_rows(rows: DataFrame, sink: SinkSpec) -> DataFrame:
    """The same as ``key`` and ``value``, structs of the key columns and of all; no value of a deleted row.

    That is the form in which the rows before a batch and after it are compared.
    """
    from pyspark.sql import functions as F

    fetched = view_rows(rows, sink)
    keys = [f"c{i}" for i, column in enumerate(sink.columns) if column.name in sink.key_columns]
    value = F.struct(*(name for name in fetched.columns if name != DELETED))
    if sink.deletes:
        value = F.when(~F.col(DELETED), value)
    return fetched.select(F.struct(*keys).alias("key"), value.alias("value"))


def view_changes(records: DataFrame) -> DataFrame:
    """Rows of ``keyed_view_rows`` as ``view_rows`` gives them, with ``__leat_deleted``."""
    from pyspark.sql import functions as F

    keys = records.schema["key"].dataType.fieldNames()  # type: ignore[attr-defined]
    names = records.schema["value"].dataType.fieldNames()  # type: ignore[attr-defined]
    columns = [F.col(f"{'key' if name in keys else 'value'}.{name}").alias(name) for name in names]
    return records.select(*columns, F.col("value").isNull().alias(DELETED))


def _fetched(value: Column, kind: DataType, name: str) -> Column:
    if kind.kind not in NESTED:
        return value
    return json_writing.nested(name, kind, value)


class Applier:
    """Takes Spark's micro-batches."""

    def __init__(self, spec: JobSpec, writer: ViewWriter) -> None:
        self._spec = spec
        self._writer = writer
        # Spark calls in threads that serve every query of the process.
        self._log = logging.LoggerAdapter(_LOG, {"query_id": spec.query_id})
        self._columns = [(column.name, parse_type(column.type)) for column in spec.sink.columns]
        places = {column.name: i for i, column in enumerate(spec.sink.columns)}
        self._keys = [places[name] for name in spec.sink.key_columns]

    def apply(self, frame: DataFrame, number: int) -> Written:
        """Write one micro-batch; what the database says is marked, so that the failure can be identified.

        Returns:
            The rows that the view got and lost, and the bytes of all of the batch's in memory; nothing for a
            replay.
        """
        table = frame.toArrow()
        try:
            batch = Batch(
                number=number,
                **self._parts(table),
                time=int(time.time() * MICROSECOND),
                watermark=_watermark(frame, self._spec),
            )
            if self._writer.apply(batch):
                return Written(len(batch.rows) + len(batch.gone), table.nbytes)
        except StoreError as error:
            raise RuntimeError(marked("sink", error)) from None
        self._log.info("batch %d is in the view already", number)
        return Written()

    def _parts(self, table: pa.Table) -> dict[str, Any]:
        """The batch's rows and the keys of those that go."""
        columns = [
            _taken(table.column(i), name, kind, native=self._writer.native)
            for i, (name, kind) in enumerate(self._columns)
        ]
        extra = [table.column(i).to_pylist() for i in range(len(columns), table.num_columns)]
        deleted = extra.pop() if DELETED in table.column_names else None
        rows = list(zip(*columns, *extra, strict=True))
        if not self._keys:
            return {"rows": rows, "gone": []}
        # A key may come more than once, when a changelog is read: its last row counts.
        last = {tuple(row[k] for k in self._keys): i for i, row in enumerate(rows)}
        if deleted is None:
            return {"rows": rows if len(last) == len(rows) else [rows[i] for i in last.values()], "gone": []}
        kept = [rows[i] for i in last.values() if not deleted[i]]
        return {"rows": kept, "gone": [key for key, i in last.items() if deleted[i]]}


def _taken(column: Any, name: str, kind: DataType, *, native: bool) -> list[Any]:
    """A column's values; StoreError for a time that Python, and so the way into PostgreSQL, does not know."""
    try:
        return _encoded(column, kind, native=native)
    except OverflowError:
        raise StoreError(
            "store-rejected",
            f"The view does not take a value of column {quote(name)}: it is beyond the years 1 to 9999.",
            hint="Often milliseconds were read as seconds. Mend it in the query, or leave such rows out with"
            " WHERE.",
        ) from None


def _encoded(column: Any, kind: DataType, *, native: bool) -> list[Any]:
    """A column's values, in the encoding of ``model.view_values`` unless ``native``."""
    import pyarrow as pa

    if native:
        return list(column.to_pylist())
    if kind.kind == "DATE":
        column = column.cast(pa.int32())
    elif kind.kind in MOMENTS:
        column = column.cast(pa.int64())
    values = column.to_pylist()
    if kind.kind == "DECIMAL":
        return [None if v is None else encode_decimal(v) for v in values]
    if kind.kind in FLOATS:
        return [NAN if v is not None and v != v else v for v in values]
    return list(values)


def _watermark(frame: DataFrame, spec: JobSpec) -> int | None:
    """The watermark that this batch runs with; for people only, so an error here changes nothing."""
    if all(source.watermark_delay_ms is None for source in spec.sources):
        return None
    try:
        active: Any = next(q for q in frame.sparkSession.streams.active if q.name == f"leat_{spec.query_id}")
        execution = active._jsq.streamingQuery().lastExecution()
        millis = int(execution.offsetSeqMetadata().batchWatermarkMs())
    except Exception as error:
        _LOG.debug("the watermark could not be read: %s", type(error).__name__)
        return None
    return millis * 1000 if millis > 0 else None
