"""How the files of a relation are read, and the records that they give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from leatstream.model.types import DataType


@dataclass(frozen=True, slots=True)
class Layout:
    """How files are to be read.

    Attributes:
        format: ``json``, ``csv``, ``parquet`` or ``avro``.
        columns: the declared ones, in order; empty where nothing is known of them.
        header: whether the first line of a CSV file names its columns.
        delimiter: between the fields of a CSV file.
        decimal_comma: whether fractions in a CSV file have a comma and no point.
    """

    format: str
    columns: Mapping[str, DataType] = field(default_factory=dict)
    header: bool = True
    delimiter: str = ","
    decimal_comma: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A record.

    Attributes:
        number: of the row in its file, from 0.
        value: a JSON object, if all is well; of a text that is no row the text.
        fault: why the file cannot be read here.
        reason: why this row alone is none, where that is known.
    """

    number: int
    value: bytes
    fault: str | None = None
    reason: str | None = None
