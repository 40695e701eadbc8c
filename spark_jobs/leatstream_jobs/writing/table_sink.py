"""The sink that is a table of a store: rows go to it by column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leatstream.connectors.writers import TableWriter
from leatstream.formats import json_writing
from leatstream.model.objects import DELETED
from leatstream.plan.job_spec import SinkSpec
from leatstream_jobs.writing.sink_rows import in_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def table_rows(rows: DataFrame, sink: SinkSpec, writer: TableWriter) -> DataFrame:
    """Rows of the compiled SQL as ``key`` and ``value``; see ``TableWriter.write``.

    Args:
        rows: what the compiled SQL gives.
        sink: of the job.
        writer: of the table.

    Raises:
        JobError: job-rejected, when the SQL's columns are not the sink's.
    """
    from pyspark.sql import functions as F

    numbered, values = in_columns(rows, sink)
    texts = [text.alias(f"c{i}") for i, text in enumerate(writer.texts(values, json_writing.nested))]
    keys = [texts[i] for i, column in enumerate(sink.columns) if column.name in sink.key_columns]
    value = F.struct(*texts)
    if sink.deletes:
        value = F.when(~F.col(DELETED), value)
    key = F.struct(*keys) if keys else F.lit(None).cast("struct<c0: string>")
    return numbered.select(key.alias("key"), value.alias("value")).select(F.col("key"), F.col("value"))
