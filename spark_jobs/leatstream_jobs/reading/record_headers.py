"""The column of a relation that is the headers of its records: how it is read, and how it is written.

Kafka cannot tell no headers from an empty list of them: both are read as NULL, or as an empty map where the
column is NOT NULL. A record that takes a row of a changelog back is read and written without headers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leatstream.model.objects import DELETED, ROWHEADERS
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, SinkSpec, SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import Column

HEADERS = "headers"
"""What Spark's Kafka sink calls the column that holds a record's headers."""


def headers_spec(spec: SourceSpec | SinkSpec) -> ColumnSpec | None:
    """The column that is the headers; None where the relation has none."""
    return next((column for column in spec.columns if column.name == spec.headers_column), None)


def filled(source: SourceSpec, column: ColumnSpec) -> tuple[Column, Column | None]:
    """The column over records that have ``__leat_rowheaders``, named, and whether a record's are misfits.

    The second is true or false, never NULL, and None where all headers fit: bytes do.
    """
    from pyspark.sql import functions as F

    given = F.col(ROWHEADERS)
    kept = F.when(~F.col(DELETED), given) if source.primary_key else given
    if column.not_null:
        empty = F.map_from_arrays(F.array().cast("array<string>"), F.array().cast("array<binary>"))
        kept = F.coalesce(kept, empty)
    if not _are_texts(column):
        return kept.alias(column.name), None
    misfit = F.exists(F.map_values(kept), lambda value: ~F.is_valid_utf8(value.cast("string")))
    texts = F.transform_values(kept, lambda _, value: value.cast("string"))
    return texts.alias(column.name), F.coalesce(misfit, F.lit(False))


def written(sink: SinkSpec, values: Sequence[Column]) -> Column | None:
    """The headers of a row, of whose columns ``values`` are all: ARRAY<STRUCT<key STRING, value BINARY>>.

    None where the sink has no such column; NULL for a record without headers.
    """
    from pyspark.sql import functions as F

    column = headers_spec(sink)
    if column is None:
        return None
    value = values[sink.columns.index(column)]
    kept = F.when(~F.col(DELETED), value) if sink.deletes else value
    return F.transform(
        F.map_entries(kept),
        lambda one: F.struct(
            one.getField("key").alias("key"), one.getField("value").cast("binary").alias("value")
        ),
    )


def _are_texts(column: ColumnSpec) -> bool:
    return parse_type(column.type).arguments[1].kind == "VARCHAR"
