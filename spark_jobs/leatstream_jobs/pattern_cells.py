"""Values of rows as text on their way to the matcher and back: nothing is lost, NULL stays NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leatstream.model.objects import ROWMETA
from leatstream.model.types import from_spark, parse_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_KINDS = {"FLOAT": "double", "DOUBLE": "double", "DECIMAL": "decimal", "BOOLEAN": "boolean"}
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ")


def kind_of(spark: str) -> str:
    """The matcher's kind of a Spark type; of those that are ``text`` it compares the text."""
    if spark == "void":
        return "text"
    kind = from_spark(spark).kind
    return "integer" if kind in _WHOLE else _KINDS.get(kind, "text")


def text(value: Column, spark: str) -> Column:
    """A value of a Spark type as text."""
    from pyspark.sql import functions as F

    if spark == "date":
        value = F.unix_date(value)
    elif spark == "timestamp":
        value = F.unix_micros(value)
    elif spark == "timestamp_ntz":
        value = F.unix_micros(value.cast("timestamp"))
    elif spark == "float":
        value = value.cast("double")
    elif spark == "binary":
        value = F.hex(value)
    return value.cast("string")


def value(text: Column, kind: str) -> Column:
    """The value of a type (in the product's words) that ``text`` wrote."""
    from pyspark.sql import functions as F

    spark = parse_type(kind).spark()
    if spark == "DATE":
        return F.date_from_unix_date(text.cast("int"))
    if spark in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        return F.timestamp_micros(text.cast("bigint")).cast(spark)
    if spark == "BINARY":
        return F.unhex(text)
    return text.cast("double").cast("float") if spark == "FLOAT" else text.cast(spark)


def one_zero(value: Column, spark: str) -> Column:
    """The value with 0 for -0, which is the same partition."""
    from pyspark.sql import functions as F

    return value + F.lit(0.0) if spark in ("float", "double") else value


def place(frame: DataFrame) -> Column:
    """What orders rows of one time: their place in the source, where that is one relation."""
    from pyspark.sql import functions as F

    fields = getattr(frame.schema[ROWMETA].dataType, "names", [])
    meta = F.col(ROWMETA)
    if "sequence_number" in fields:
        return F.concat(meta["shard_id"], F.lpad(meta["sequence_number"], 64, "0"))
    if "offset" in fields:
        numbers = ((meta["partition"], 10), (meta["offset"], 20))
        return F.concat(*(F.lpad(number.cast("string"), width, "0") for number, width in numbers))
    return F.lit(None).cast("string")
