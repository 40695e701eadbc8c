"""What files hold, as records: JSON objects, one a row, whatever the file's format is.

All formats then pass through one decoder with one set of rules: what a type takes, what NOT NULL means, what
becomes of a record that does not fit. A file that cannot be read on is one undecodable record more, so that
the same property tells whether it fails the query or is skipped and counted.
"""

from __future__ import annotations

import csv as text_csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from leatstream.connectors.s3.parquet_rows import objects
from leatstream.formats.avro_files import UnreadableFile, json_rows
from leatstream.model.objects import Column

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS, MOST_BYTES = 5_000, 4 * 1024 * 1024  # of one chunk
_LONGEST_LINE = 64 * 1024 * 1024
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")
_NUMBERS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"})
_NESTED = frozenset({"ARRAY", "MAP", "STRUCT"})
_BROKEN = (EOFError, OSError, zlib.error)


@dataclass(frozen=True, slots=True)
class Layout:
    """How files are to be read.

    Attributes:
        format: ``json``, ``csv``, ``parquet`` or ``avro``.
        columns: name to kind of type (``BIGINT``), in order; empty where nothing is known of them.
        declared: the same with their whole types, for Avro.
        header: whether the first line of a CSV file names its columns.
    """

    format: str
    columns: Mapping[str, str] = field(default_factory=dict)
    header: bool = True
    delimiter: str = ","
    declared: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A record.

    Attributes:
        number: of the row in its file, from 0.
        value: a JSON object, if all is well.
        fault: why the file cannot be read here.
    """

    number: int
    value: bytes
    fault: str | None = None


def rows(name: str, file: IO[bytes], layout: Layout) -> Iterator[list[Row]]:
    """The rows of a file in chunks; the last one may be a fault.

    Args:
        name: its key; ``….gz`` is unpacked.
        file: opened for reading; errors that are not about the content pass through.
        layout: its format.
    """
    read = {"json": _json, "csv": _csv, "parquet": _parquet, "avro": _avro}[layout.format]
    if layout.format in ("json", "csv") and name.endswith(".gz"):
        file = io.BufferedReader(gzip.GzipFile(fileobj=file))
    return _chunks(read(file, layout))


def _chunks(found: Iterator[Row]) -> Iterator[list[Row]]:
    chunk: list[Row] = []
    size = 0
    for row in found:
        chunk.append(row)
        size += len(row.value)
        if len(chunk) == MOST_ROWS or size >= MOST_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _fault(number: int, text: str) -> Row:
    return Row(number, text.encode(), text)


# -- Avro ----------------------------------------------------------------------------------------------------


def _avro(file: IO[bytes], layout: Layout) -> Iterator[Row]:
    number = 0
    try:
        for value in json_rows(file, layout.declared):
            yield Row(number, value)
            number += 1
    except UnreadableFile as error:
        yield _fault(number, str(error))


# -- JSON lines ----------------------------------------------------------------------------------------------


def _json(file: IO[bytes], _: Layout) -> Iterator[Row]:
    number = 0
    while True:
        try:
            line = file.readline(_LONGEST_LINE)
        except _BROKEN as error:
            yield _fault(number, f"it is damaged ({type(error).__name__})")
            return
        if not line:
            return
        if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
            yield _fault(number, "it has a line of more than 64 MiB")
            return
        if line := line.strip():
            yield Row(number, line)
            number += 1


# -- CSV -----------------------------------------------------------------------------------------------------


def _csv(file: IO[bytes], layout: Layout) -> Iterator[Row]:
    """Rows of a CSV file; one with too few or too many fields is undecodable."""
    import pyarrow as pa

    bad: list[Row] = []
    number = 0
    try:
        for batch in _csv_batches(file, layout, bad):
            columns = [batch.column(i).to_pylist() for i in range(batch.num_columns)]
            names = batch.schema.names
            for fields in zip(*columns, strict=True):
                yield Row(number, _csv_object(names, fields, layout.columns))
                number += 1
            while bad:
                yield bad.pop(0)
    except (*_BROKEN, pa.ArrowInvalid) as error:
        yield from bad
        if "Empty CSV" not in str(error):
            yield _fault(number, f"it is damaged ({type(error).__name__})")
        return
    yield from bad


def _csv_batches(file: IO[bytes], layout: Layout, bad: list[Row]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    from pyarrow import csv

    def wrong(row: Any) -> str:
        text = f"a row of {row.actual_columns} fields, not {row.expected_columns}"
        bad.append(Row(row.number or 0, text.encode()))
        return "skip"

    names, header = list(layout.columns), layout.header
    if not names:
        # Nothing is declared: the first line names what there is.
        names, header = next(text_csv.reader([file.readline().decode(errors="replace")]), []), False
        if not names:
            return iter(())
    # Bytes and not texts: one value that is no UTF-8 must not take its whole block along.
    types = dict.fromkeys(names, pa.binary())
    return iter(
        csv.open_csv(
            pa.PythonFile(file, mode="r"),
            csv.ReadOptions(use_threads=False, column_names=None if header else names),
            csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=True, invalid_row_handler=wrong),
            csv.ConvertOptions(
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                include_columns=names,
                include_missing_columns=True,
            ),
        )
    )


def _csv_object(names: Sequence[str], fields: Sequence[Any], kinds: Mapping[str, str]) -> bytes:
    """A row as a JSON object; an empty field is NULL, an empty text in quotes is a text."""
    found: list[str] = []
    for name, given in zip(names, fields, strict=True):
        if given is None:
            continue
        try:
            text = given.decode() if isinstance(given, bytes) else str(given)
        except UnicodeDecodeError:
            return b"a value is not UTF-8"
        # Where nothing is declared, what looks like a number or a truth value is shown as one.
        kind = kinds.get(name) or ("DOUBLE" if _NUMBER.match(text) else "BOOLEAN")
        found.append(f"{json.dumps(name)}:{_csv_value(text, kind)}")
    return ("{" + ",".join(found) + "}").encode()


def _csv_value(text: str, kind: str) -> str:
    bare = text.strip()
    if kind in _NUMBERS and _NUMBER.match(bare):
        return bare
    if kind == "BOOLEAN" and bare.lower() in ("true", "false"):
        return bare.lower()
    if kind in _NESTED:
        try:
            json.loads(bare)
        except (ValueError, RecursionError):
            return json.dumps(text)
        return bare
    return json.dumps(text)


# -- Parquet -------------------------------------------------------------------------------------------------


def _parquet(file: IO[bytes], layout: Layout) -> Iterator[Row]:
    import pyarrow as pa
    from pyarrow import parquet

    number = 0
    try:
        opened = parquet.ParquetFile(pa.PythonFile(file, mode="r"))
        present = opened.schema_arrow.names
        names = [name for name in layout.columns if name in present] if layout.columns else present
        if not names:
            yield from (Row(i, b"{}") for i in range(opened.metadata.num_rows))
            return
        for batch in opened.iter_batches(batch_size=MOST_ROWS, columns=names):
            for value in objects(batch.select(names), layout.columns):
                yield Row(number, value)
                number += 1
    except (pa.ArrowException, OSError, EOFError) as error:
        yield _fault(number, f"it is no Parquet, or damaged ({type(error).__name__})")
