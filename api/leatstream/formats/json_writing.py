"""JSON record values made of columns' values, as Spark expressions.

Every column is written, NULL as null. TIMESTAMP is ``yyyy-MM-dd HH:mm:ss[.f]``, TIMESTAMP_LTZ the same in UTC
with ``Z``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from leatstream.errors import JobError
from leatstream.formats.json_values import has
from leatstream.model.types import DataType, parse_type
from leatstream.plan.job_spec import ColumnSpec

if TYPE_CHECKING:
    from pyspark.sql import Column

_WRITE_OPTIONS = {"ignoreNullFields": "false"}


def encode(columns: Sequence[ColumnSpec], values: Sequence[Column]) -> Column:
    """The BINARY value made of these columns' values.

    Args:
        columns: names and types of the sink, in order.
        values: one expression per column, already of the column's type.

    Raises:
        JobError: job-rejected, for a type that JSON cannot carry.
    """
    from pyspark.sql import functions as F

    written: list[Column] = []
    for column, value in zip(columns, values, strict=True):
        kind = parse_type(column.type)
        check_type(column.name, kind)
        written.append(_written(value, kind).alias(column.name))
    return F.to_json(F.struct(*written), _WRITE_OPTIONS).cast("binary")


def nested(name: str, kind: DataType, value: Column) -> Column:
    """The JSON text of one ARRAY, MAP or STRUCT; NULL stays NULL.

    Raises:
        JobError: job-rejected, for a type that JSON cannot carry.
    """
    from pyspark.sql import functions as F

    check_type(name, kind)
    return F.to_json(_written(value, kind), _WRITE_OPTIONS)


def check_type(name: str, kind: DataType) -> None:
    """Refuse a type that JSON has no form for.

    Raises:
        JobError: job-rejected, naming the column.
    """
    if kind.kind == "MAP" and kind.arguments[0].kind != "VARCHAR":
        raise JobError(
            "job-rejected", f"Column {name}: a map in JSON has VARCHAR keys, not {kind.arguments[0]}."
        )
    for part in kind.arguments:
        check_type(name, part)


def _written(value: Column, kind: DataType) -> Column:
    from pyspark.sql import functions as F

    if kind.kind == "TIMESTAMP":
        return value.cast("string")
    if kind.kind == "TIMESTAMP_LTZ":
        return F.concat(value.cast("string"), F.lit("Z"))
    if not has(kind, ("TIMESTAMP", "TIMESTAMP_LTZ")):
        return value
    if kind.kind == "ARRAY":
        return F.transform(value, _inner(kind.arguments[0]))
    if kind.kind == "MAP":
        inner = _inner(kind.arguments[1])
        return F.transform_values(value, lambda _key, item: inner(item))
    parts = [
        _written(value.getField(name), part).alias(name)
        for name, part in zip(kind.fields, kind.arguments, strict=True)
    ]
    return F.when(value.isNotNull(), F.struct(*parts))


def _inner(kind: DataType) -> Callable[[Column], Column]:
    return lambda item: _written(item, kind)
