"""Values of rows as text on their way to the matcher and back: nothing is lost, NULL stays NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leatstream.model.objects import ROWMETA
from leatstream.model.types import DataType, from_spark, parse_type
from leatstream_jobs.changelogs.snapshot_rows import by_sequence

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_KINDS = {"FLOAT": "double", "DOUBLE": "double", "DECIMAL": "decimal", "BOOLEAN": "boolean"}
_NESTED = ("array<", "map<", "struct<")
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

    if spark.startswith(_NESTED):
        # A field of its own around it: NULL stays apart from what holds nothing but NULL.
        whole = F.struct(_texts(value, from_spark(spark)).alias("v"))
        return F.when(value.isNotNull(), F.to_json(whole, {"ignoreNullFields": "false"}))
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

    known = parse_type(kind)
    if known.arguments:
        return _values(F.from_json(text, f"v {_texts_type(known)}")["v"], known)
    spark = known.spark()
    if spark == "DATE":
        return F.date_from_unix_date(text.cast("int"))
    if spark in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        return F.timestamp_micros(text.cast("bigint")).cast(spark)
    if spark == "BINARY":
        return F.unhex(text)
    return text.cast("double").cast("float") if spark == "FLOAT" else text.cast(spark)


def _texts(value: Column, kind: DataType) -> Column:
    """A nested value with a text in place of each simple one; fields by number, maps as their entries."""
    from pyspark.sql import functions as F

    if kind.kind == "ARRAY":
        return F.transform(value, lambda element: _texts(element, kind.arguments[0]))
    if kind.kind == "MAP":
        entry = DataType("STRUCT", arguments=kind.arguments, fields=("key", "value"))
        return F.transform(F.map_entries(value), lambda each: _texts(each, entry))
    if kind.kind == "STRUCT":
        pairs = enumerate(zip(kind.fields, kind.arguments, strict=True))
        parts = [_texts(value.getField(name), part).alias(f"f{i}") for i, (name, part) in pairs]
        return F.when(value.isNotNull(), F.struct(*parts))
    return text(value, kind.spark().lower())


def _texts_type(kind: DataType) -> str:
    """The Spark type of what ``_texts`` gives."""
    if kind.kind == "ARRAY":
        return f"ARRAY<{_texts_type(kind.arguments[0])}>"
    if kind.kind in ("MAP", "STRUCT"):
        fields = ", ".join(f"f{i}: {_texts_type(part)}" for i, part in enumerate(kind.arguments))
        return f"ARRAY<STRUCT<{fields}>>" if kind.kind == "MAP" else f"STRUCT<{fields}>"
    return "STRING"


def _values(texts: Column, kind: DataType) -> Column:
    """The value that ``_texts`` took apart."""
    from pyspark.sql import functions as F

    if kind.kind == "ARRAY":
        return F.transform(texts, lambda element: _values(element, kind.arguments[0]))
    if kind.kind == "MAP":
        entry = DataType("STRUCT", arguments=kind.arguments, fields=("key", "value"))
        return F.map_from_entries(F.transform(texts, lambda each: _values(each, entry)))
    if kind.kind == "STRUCT":
        pairs = enumerate(zip(kind.fields, kind.arguments, strict=True))
        parts = [_values(texts.getField(f"f{i}"), part).alias(name) for i, (name, part) in pairs]
        return F.when(texts.isNotNull(), F.struct(*parts))
    return value(texts, str(kind))


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
        return F.concat(meta["shard"], by_sequence(meta["sequence_number"]))
    if "file" in fields:
        return F.concat(meta["file"], F.lpad(meta["offset"].cast("string"), 20, "0"))
    if "offset" in fields:
        numbers = ((meta["partition"], 10), (meta["offset"], 20))
        return F.concat(*(F.lpad(number.cast("string"), width, "0") for number, width in numbers))
    return F.lit(None).cast("string")
