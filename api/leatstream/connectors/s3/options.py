"""Properties of relations in S3: what ``s3.…`` may say in a WITH clause."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leatstream.connectors.entities import OptionFault

HEADER, DELIMITER, DECIMAL_COMMA = "s3.csv.header", "s3.csv.delimiter", "s3.csv.decimal.comma"
PARTITION_BY, MAX_BYTES, INTERVAL = "s3.partition.by", "s3.file.max.bytes", "s3.interval.millis"
COMPRESSION = "s3.compression"
LATE, BATCH_FILES, BATCH_BYTES = "s3.late.files.millis", "s3.batch.max.files", "s3.batch.max.bytes"
FRACTIONS = frozenset({"FLOAT", "DOUBLE", "DECIMAL"})  # types that a decimal comma is for
VALUE_FORMATS = ("json", "csv", "parquet", "avro")
_COMPRESSIONS = {
    "json": ("none", "gzip"),
    "csv": ("none", "gzip"),
    "parquet": ("snappy", "zstd", "none"),
    "avro": ("deflate", "none"),
}
_MIB = 1024 * 1024
_WHOLE = re.compile(r"[0-9]{1,13}\Z")


@dataclass(frozen=True, slots=True)
class Options:
    """The properties, typed, with their defaults.

    Attributes:
        decimal_comma: whether fractions in CSV have a comma and no point.
        partition_by: columns that make directories ``column=value``.
        file_bytes: a file that has grown to this is closed, and another begun.
        interval_ms: how often files are written.
        late_ms: how much older than the newest file read a file may be that appears only now.
        batch_files, batch_bytes: bounds of one micro-batch.
    """

    header: bool
    delimiter: str
    decimal_comma: bool
    partition_by: tuple[str, ...]
    compression: str
    file_bytes: int
    interval_ms: int
    late_ms: int
    batch_files: int
    batch_bytes: int


def read_options(given: Mapping[str, str], value_format: str) -> Options:
    """Options from checked properties."""
    return Options(
        header=given.get(HEADER, "true") == "true",
        delimiter=given.get(DELIMITER, ","),
        decimal_comma=given.get(DECIMAL_COMMA) == "true",
        partition_by=tuple(given[PARTITION_BY].split("\n")) if PARTITION_BY in given else (),
        compression=given.get(COMPRESSION, _COMPRESSIONS[value_format][0]),
        file_bytes=int(given.get(MAX_BYTES, 128 * _MIB)),
        interval_ms=int(given.get(INTERVAL, 10_000)),
        late_ms=int(given.get(LATE, 3_600_000)),
        batch_files=int(given.get(BATCH_FILES, 1_000)),
        batch_bytes=int(given.get(BATCH_BYTES, 256 * _MIB)),
    )


def check_options(
    given: Mapping[str, Any], columns: Sequence[str], value_format: str
) -> tuple[dict[str, str], list[OptionFault]]:
    """Check the properties of one relation.

    Args:
        given: those of ``NAMES`` that it has, as written.
        columns: the relation's.
        value_format: of its files.

    Returns:
        canonical texts for ``read_options``, and what is wrong.
    """
    found: dict[str, str] = {}
    faults: list[OptionFault] = []
    for name, value in given.items():
        try:
            found[name] = _READERS[name](value, columns, value_format)
        except ValueError as error:
            faults.append(OptionFault(name, f"{name} {error}."))
    return found, faults


def _flag(value: Any, _: Sequence[str], value_format: str) -> str:
    _only_csv(value_format)
    word = str(value).lower()
    if word not in ("true", "false"):
        raise ValueError("is TRUE or FALSE")
    return word


def _delimiter(value: Any, _: Sequence[str], value_format: str) -> str:
    _only_csv(value_format)
    text = "\t" if value == "\\t" else str(value)
    if len(text) != 1 or not text.isascii() or text in '"\r\n' or text.isalnum():
        raise ValueError("is one character such as ';', or '\\t'")
    return text


def _only_csv(value_format: str) -> None:
    if value_format != "csv":
        raise ValueError(f"is for CSV, and the files are {value_format}")


def _columns(value: Any, columns: Sequence[str], _: str) -> str:
    names = [part.strip() for part in str(value).split(",")]
    for name in names:
        if name not in columns and name.lower() not in columns:
            raise ValueError(f"names {name!r}, which is not a column")
    chosen = [name if name in columns else name.lower() for name in names]
    if len(set(chosen)) != len(chosen):
        raise ValueError("names a column twice")
    return "\n".join(chosen)


def _compression(value: Any, _: Sequence[str], value_format: str) -> str:
    known = _COMPRESSIONS[value_format]
    word = str(value).lower()
    if word not in known:
        raise ValueError(f"is {', '.join(known[:-1])} or {known[-1]} for {value_format}")
    return word


def _number(least: int, most: int) -> Callable[[Any, Sequence[str], str], str]:
    def read(value: Any, _: Sequence[str], __: str) -> str:
        text = str(value)
        if isinstance(value, bool | float) or not _WHOLE.match(text) or not least <= int(text) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return str(int(text))

    return read


_READERS: dict[str, Callable[[Any, Sequence[str], str], str]] = {
    HEADER: _flag,
    DELIMITER: _delimiter,
    DECIMAL_COMMA: _flag,
    PARTITION_BY: _columns,
    COMPRESSION: _compression,
    MAX_BYTES: _number(_MIB, 4096 * _MIB),
    INTERVAL: _number(0, 86_400_000),
    LATE: _number(0, 7 * 86_400_000),
    BATCH_FILES: _number(1, 100_000),
    BATCH_BYTES: _number(1, 64 * 1024 * _MIB),
}
NAMES = tuple(_READERS)
