"""Record keys of one plain value, as Kafka's own serializers write them: text as UTF-8, numbers big-endian.

SMALLINT 2 bytes, INTEGER 4, BIGINT 8 (two's complement), DOUBLE 8 (IEEE 754). Spark expressions only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from leatstream.errors import JobError
from leatstream.model.types import DataType, parse_type

if TYPE_CHECKING:
    from pyspark.sql import Column

WIDTHS = {"SMALLINT": 2, "INTEGER": 4, "BIGINT": 8}
KEY_TYPES = ("VARCHAR", *WIDTHS, "DOUBLE")


def check_key_type(text: str) -> DataType:
    """Read a key type.

    Raises:
        JobError: job-rejected, when a primitive key cannot have it.
    """
    kind = parse_type(text)
    if kind.kind not in KEY_TYPES:
        raise JobError("job-rejected", f"A primitive key is one of {', '.join(KEY_TYPES)}, not {kind}.")
    return kind


def encode(value: Column, kind_text: str) -> Column:
    """The BINARY form of a value of that type; NULL stays NULL."""
    from pyspark.sql import functions as F

    kind = check_key_type(kind_text)
    if kind.kind == "VARCHAR":
        return value.cast("string").cast("binary")
    if kind.kind == "DOUBLE":
        # Spark has no function for the bits of a double; Java's own is called. Its text form is a long.
        bits = F.reflect(F.lit("java.lang.Double"), F.lit("doubleToLongBits"), value.cast("double"))
        number = F.when(value.isNotNull(), bits.cast("bigint"))
        return _big_endian(number, 8)
    return _big_endian(value.cast("bigint"), WIDTHS[kind.kind])


def decode(key: Column, kind_text: str) -> Column:
    """The value of that type in a BINARY key; NULL where the bytes are not of the type's width."""
    from pyspark.sql import functions as F

    kind = check_key_type(kind_text)
    if kind.kind == "VARCHAR":
        return F.when(F.is_valid_utf8(key.cast("string")), key.cast("string"))
    width = WIDTHS.get(kind.kind, 8)
    # Base -10 reads 16 hex digits as a signed long; shorter ones are moved up, and back with their sign.
    raised = F.conv(F.rpad(F.hex(key), 16, "0"), 16, -10).cast("bigint")
    number = F.when(F.octet_length(key) == width, F.shiftright(raised, 64 - 8 * width))
    if kind.kind == "DOUBLE":
        text = F.reflect(F.lit("java.lang.Double"), F.lit("longBitsToDouble"), number)
        return F.when(number.isNotNull(), text.cast("double"))
    return number.cast(kind.spark())


def _big_endian(number: Column, width: int) -> Column:
    from pyspark.sql import functions as F

    digits = F.lpad(F.hex(number), 16, "0")
    return F.unhex(F.substring(digits, 17 - 2 * width, 2 * width))
