"""The rows that the compiled SQL gives, as the columns of the job's sink and as its records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leatstream.errors import JobError
from leatstream.formats import json_writing, primitive
from leatstream.formats.described import FORMATS as DESCRIBED
from leatstream.model.objects import DELETED, ROWKEY, ROWTIME
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, SinkSpec
from leatstream_jobs.reading.record_headers import HEADERS, written
from leatstream_jobs.reading.scans import Scan, undecodable
from leatstream_jobs.writing.described_sink import RecordForm

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def undoubled(rows: DataFrame, wanted: int) -> DataFrame:
    """Each row of the first ``wanted`` columns once, with the first one's hidden columns.

    The state is kept for ever.
    """
    hidden = rows.columns[wanted:]
    numbered = [f"__leat_c{i}" for i in range(wanted)]
    return rows.toDF(*numbered, *hidden).dropDuplicates(numbered)


def in_columns(rows: DataFrame, sink: SinkSpec) -> tuple[DataFrame, list[Column]]:
    """The rows with numbered columns, and the sink's columns over them, of their declared types.

    Raises:
        JobError: job-rejected, when the SQL's columns are not the sink's.
    """
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


def shaped(rows: DataFrame, sink: SinkSpec, form: RecordForm | None = None) -> DataFrame:
    """Rows of the compiled SQL as records: ``key`` and ``value``, both BINARY.

    And ``headers``, where the sink has a column of them; see ``record_headers.written``.

    Raises:
        JobError: job-rejected, when the SQL's columns are not the sink's.
    """
    from pyspark.sql import functions as F

    numbered, values = in_columns(rows, sink)
    form = form or RecordForm()
    key = _key(sink, values, form)
    value = form.value(sink, values)
    if sink.deletes:
        # No value behind a key: readers of the changelog forget the row.
        value = F.when(~F.col(DELETED), value)
    parts = {"key": key, "value": value}
    headers = written(sink, values)
    if headers is not None:
        parts[HEADERS] = headers
    return numbered.select(*(part.alias(name) for name, part in parts.items())).select(*map(F.col, parts))


def with_logs(frame: DataFrame, entity: str, opened: Sequence[Scan]) -> DataFrame:
    """The records and, in the same batch, those for the logs of undecodable ones, each with its ``topic``."""
    from pyspark.sql import functions as F

    logged = [scan for scan in opened if scan.source.log_entity is not None]
    if not logged:
        return frame
    frame = frame.withColumn("topic", F.lit(entity))
    for scan in logged:
        log = undecodable(scan).withColumn("topic", F.lit(scan.source.log_entity))
        # A log's records have no headers.
        frame = frame.unionByName(log, allowMissingColumns=True)
    return frame


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
        return json_writing.encode([c for c, _ in chosen], [v for _, v in chosen])
    if sink.key_format in DESCRIBED:
        return form.key(sink, [c for c, _ in chosen], [v for _, v in chosen])
    if sink.key_format not in (None, "primitive"):
        raise JobError("job-rejected", f"Keys are not written in {sink.key_format}; use primitive or json.")
    if len(chosen) != 1:
        raise JobError("job-rejected", "A primitive key is made of exactly one column.")
    column, value = chosen[0]
    return primitive.encode(value, sink.key_type or column.type)


def _plain(type_text: str) -> str:
    return type_text.lower().replace(" ", "").replace("`", "")
