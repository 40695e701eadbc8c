"""The rows of a query as they go into files, by the files' format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leatstream.connectors.s3.options import FRACTIONS, read_options
from leatstream.connectors.s3.write import PARTITION
from leatstream.errors import JobError
from leatstream.formats import json_writing
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, SinkSpec
from leatstream_jobs.writing.sink_rows import in_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def file_rows(rows: DataFrame, sink: SinkSpec) -> DataFrame:
    """A frame of the files' columns, then ``__leat_part_<i>``, the texts that make the directories.

    JSON is one column ``value`` of whole objects; CSV has a text for each column; Parquet and Avro the
    values as Spark has them.

    Args:
        rows: what the compiled SQL gives.
        sink: its columns, format and options.

    Raises:
        JobError: job-rejected, when the SQL's columns are not the sink's.
    """
    numbered, values = in_columns(rows, sink)
    by_name = dict(
        zip((column.name for column in sink.columns), zip(sink.columns, values, strict=True), strict=True)
    )
    options = read_options(sink.options, sink.value_format)
    parts = [_text(*by_name[name]).alias(f"{PARTITION}{i}") for i, name in enumerate(options.partition_by)]
    return numbered.select(*_contents(sink, values, comma=options.decimal_comma), *parts)


def _contents(sink: SinkSpec, values: Sequence[Column], *, comma: bool) -> list[Column]:
    pairs = list(zip(sink.columns, values, strict=True))
    if sink.value_format == "json":
        return [json_writing.encode(sink.columns, values).alias("value")]
    if sink.value_format == "csv":
        return [_text(column, value, comma=comma).alias(column.name) for column, value in pairs]
    if sink.value_format in ("parquet", "avro"):
        return [value.alias(column.name) for column, value in pairs]
    raise JobError("job-rejected", f"Files cannot be written in {sink.value_format}.")


def _text(column: ColumnSpec, value: Column, *, comma: bool = False) -> Column:
    """A value as text, in the forms that JSON has for it; NULL stays NULL. ``comma``: in place of points."""
    from pyspark.sql import functions as F

    kind = parse_type(column.type)
    if kind.kind in ("ARRAY", "MAP", "STRUCT"):
        return json_writing.nested(column.name, kind, value)
    if kind.kind in ("BYTES", "VARBINARY"):
        return F.base64(value)
    text = value.cast("string")
    if comma and kind.kind in FRACTIONS:
        return F.translate(text, ".", ",")
    return F.concat(text, F.lit("Z")) if kind.kind == "TIMESTAMP_LTZ" else text
