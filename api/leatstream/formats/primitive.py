"""Record keys and values of one plain value, as Kafka's own serializers write them.

VARCHAR is UTF-8, BYTES and VARBINARY are the bytes as they are, numbers are big-endian: TINYINT 1 byte,
SMALLINT 2, INTEGER 4, BIGINT 8 (two's complement), FLOAT 4, DOUBLE 8 (IEEE 754); BOOLEAN is the byte 0 or 1.
NULL has no bytes: it is a record without key or value. Spark expressions only: real-time mode runs them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from leatstream.errors import JobError
from leatstream.formats.json import VALUE, Decoder, Place
from leatstream.model.types import DataType, parse_type
from leatstream.plan.job_spec import ColumnSpec

if TYPE_CHECKING:
    from pyspark.sql import Column

WIDTHS = {"TINYINT": 1, "SMALLINT": 2, "INTEGER": 4, "BIGINT": 8}
# Java's class that knows the bits of such a number, and the type of these.
_BITS = {"FLOAT": ("java.lang.Float", "floatToIntBits", "intBitsToFloat", "int", 4)} | {
    "DOUBLE": ("java.lang.Double", "doubleToLongBits", "longBitsToDouble", "bigint", 8)
}
KEY_TYPES = ("VARCHAR", "SMALLINT", "INTEGER", "BIGINT", "DOUBLE")
VALUE_TYPES = (*KEY_TYPES, "TINYINT", "FLOAT", "BOOLEAN", "BYTES", "VARBINARY")


def check_plain(text: str, known: Collection[str] = VALUE_TYPES) -> DataType:
    """Read the type of a plain value.

    Raises:
        JobError: job-rejected, when a primitive record cannot hold it.
    """
    kind = parse_type(text)
    if kind.kind not in known:
        raise JobError("job-rejected", f"A primitive must be one of {', '.join(known)}, not {kind}.")
    return kind


def decoder(column: ColumnSpec, place: Place = VALUE) -> Decoder:
    """How records of one plain value are read: as ``formats.json.decoder`` says it for JSON.

    A record that is null is NULL; whether the column takes that is for the caller to see.

    Raises:
        JobError: job-rejected, for a type that is no plain value.
    """
    from pyspark.sql import functions as F

    kind = check_plain(column.type)
    raw, parsed = F.col(place.text).cast("binary"), F.col(place.parsed)
    field = parsed.getField(column.name)
    bad = F.col(place.text).isNotNull() & field.isNull()
    reason = F.lit("its bytes are no text in UTF-8" if kind.kind == "VARCHAR" else f"its bytes are no {kind}")
    read = F.struct(decode(raw, column.type).alias(column.name))
    return Decoder(read, (field.alias(column.name),), bad, F.when(bad, reason))


def encode(value: Column, kind_text: str) -> Column:
    """The BINARY form of a value of that type; NULL stays NULL."""
    from pyspark.sql import functions as F

    kind = check_plain(kind_text)
    if kind.kind == "VARCHAR":
        return value.cast("string").cast("binary")
    if kind.kind in ("BYTES", "VARBINARY"):
        return value.cast("binary")
    if kind.kind == "BOOLEAN":
        return F.when(value, F.unhex(F.lit("01"))).when(~value, F.unhex(F.lit("00")))
    if kind.kind in _BITS:
        # Spark has no function for the bits of such a number; Java's own gives them as text.
        java, to_bits, _, bits_type, width = _BITS[kind.kind]
        bits = F.reflect(F.lit(java), F.lit(to_bits), value.cast(kind.spark()))
        return _big_endian(F.when(value.isNotNull(), bits.cast(bits_type).cast("bigint")), width)
    return _big_endian(value.cast("bigint"), WIDTHS[kind.kind])


def decode(raw: Column, kind_text: str) -> Column:
    """The value of that type in a BINARY key or value; NULL where the bytes are none of the type."""
    from pyspark.sql import functions as F

    kind = check_plain(kind_text)
    if kind.kind == "VARCHAR":
        return F.when(F.is_valid_utf8(raw.cast("string")), raw.cast("string"))
    if kind.kind in ("BYTES", "VARBINARY"):
        return raw
    if kind.kind == "BOOLEAN":
        return F.when(F.hex(raw) == "01", F.lit(True)).when(F.hex(raw) == "00", F.lit(False))
    width = WIDTHS.get(kind.kind) or _BITS[kind.kind][4]
    # Base -10 reads 16 hex digits as a signed long; shorter ones are moved up, and back with their sign.
    raised = F.conv(F.rpad(F.hex(raw), 16, "0"), 16, -10).cast("bigint")
    number = F.when(F.octet_length(raw) == width, F.shiftright(raised, 64 - 8 * width))
    if kind.kind in _BITS:
        java, _, from_bits, bits_type, _ = _BITS[kind.kind]
        text = F.reflect(F.lit(java), F.lit(from_bits), number.cast(bits_type))
        return F.when(number.isNotNull(), text.cast(kind.spark()))
    return number.cast(kind.spark())


def _big_endian(number: Column, width: int) -> Column:
    from pyspark.sql import functions as F

    digits = F.lpad(F.hex(number), 16, "0")
    return F.unhex(F.substring(digits, 17 - 2 * width, 2 * width))
