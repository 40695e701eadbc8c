"""Rows of CSV files as JSON objects.

pyarrow parses the rows. What it passes over in silence is looked for here: a header with none of the columns,
a column that stands in it twice, a quoted field that never ends.
"""

from __future__ import annotations

import csv as text_csv
import io
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from leatstream.connectors.s3.csv_fields import RowWriter, row_writer
from leatstream.connectors.s3.json_lines import LONGEST
from leatstream.connectors.s3.layout import Layout
from leatstream.connectors.s3.matching import check_header
from leatstream.formats.avro_files import NoRow, UnreadableFile

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCKS = (8 * 1024 * 1024, 32 * 1024 * 1024, 2 * LONGEST)  # bytes: a row may be as long as half a block
_BOM = "\ufeff".encode()
_SLICE = 5_000  # rows


def csv_values(file: IO[bytes], layout: Layout, path: Mapping[str, str]) -> Iterator[bytes]:
    """The rows of a file as JSON objects; one that is none is a NoRow.

    Args:
        file: can be read again from its beginning.
        layout: the columns, and how they are written.
        path: members that the file's place gives to its rows; those of the file come before.

    Raises:
        UnreadableFile: its header has none of the columns, or it cannot be read on.
    """
    import pyarrow as pa

    names, header = _names(file, layout, path)
    if not names:
        return
    done = 0
    for block in _BLOCKS:
        file.seek(0)
        reading = _Reading(_Latin(file), layout, names, header, block, path)
        try:
            for number, value in enumerate(_values(reading)):
                if number >= done:
                    done += 1
                    yield value
        except pa.ArrowInvalid as error:
            reading.file.stop()
            if "straddling" in str(error):
                continue
            raise UnreadableFile(f"it is damaged ({type(error).__name__})") from None
        return
    raise UnreadableFile("it has a row of more than 64 MiB, or a quoted field that does not end")


def _names(file: IO[bytes], layout: Layout, path: Mapping[str, str]) -> tuple[list[str], bool]:
    """The columns of a file in their order, and whether its first row is to be passed over."""
    first = _first_row(file, layout.delimiter)
    if not first:
        return [], False
    if not layout.columns:
        return first, True
    if layout.header:
        check_header(first, layout, path)
        return first, True
    # The columns that make the directories stand in the file too, or do not.
    inside = [name for name in layout.columns if name not in path]
    return (inside if len(first) == len(inside) else list(layout.columns)), False


def _first_row(file: IO[bytes], delimiter: str) -> list[str]:
    text_csv.field_size_limit(LONGEST)
    lines = io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="")
    try:
        return next((row for row in text_csv.reader(lines, delimiter=delimiter) if row), [])
    except text_csv.Error:
        raise UnreadableFile("its first row cannot be read") from None
    finally:
        lines.detach()


@dataclass(slots=True)
class _Reading:
    """One way through a file.

    Attributes:
        bad: numbers of the rows that have too few or too many fields, with what to say of them.
        end: a text behind the last row: where it is part of a field, that field was not closed.
        closed: whether it was found to stand alone.
    """

    file: _Latin
    layout: Layout
    names: Sequence[str]
    header: bool
    block: int
    path: Mapping[str, str]
    bad: list[tuple[int, bytes]] = field(default_factory=list)
    end: bytes = field(default_factory=lambda: secrets.token_hex(16).encode())
    closed: bool = False

    def batches(self) -> Iterator[pa.RecordBatch]:
        """What pyarrow reads, as bytes: one value that is no UTF-8 must not take others along."""
        import pyarrow as pa
        from pyarrow import csv

        # A row that has one field too many cannot be taken for one of the file's.
        self.file.end = self.layout.delimiter.encode().join([self.end] * (len(self.names) + 1))
        wanted = [n for n in self.layout.columns if n in self.names] or list(self.names)
        named = [str(i) for i in range(len(self.names))]
        places = {name: named[self.names.index(name)] for name in wanted}
        found = csv.open_csv(
            pa.PythonFile(self.file, mode="r"),
            csv.ReadOptions(use_threads=False, block_size=self.block, column_names=named),
            csv.ParseOptions(
                delimiter=self.layout.delimiter,
                newlines_in_values=True,
                # Of a file of one column they are rows: an empty field is NULL.
                ignore_empty_lines=len(self.names) > 1,
                invalid_row_handler=self._wrong,
            ),
            csv.ConvertOptions(
                column_types=dict.fromkeys(named, pa.binary()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                include_columns=list(places.values()),
            ),
        )
        for batch in found:
            yield batch.rename_columns(list(places))

    def _wrong(self, row: Any) -> str:
        if self.end.decode() in row.text:
            self.closed = row.text.startswith(self.end.decode())
        else:
            told = f"a row of {row.actual_columns} fields, not {row.expected_columns}"
            self.bad.append((row.number, NoRow.of(told, row.text.encode("latin-1", "replace"))))
        return "skip"


class _Latin:
    """A file's bytes as if they were Latin-1, in UTF-8, with a line behind its last one.

    pyarrow ends the file at a row of too many fields that is not UTF-8, and would take a byte-order mark for
    a part of the first field then. It reads ahead in a thread of its own.

    Attributes:
        end: the line.
    """

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._reading = threading.Lock()
        self.end = b""
        self._begun = False
        self._last = b"\n"

    def read(self, count: int) -> bytes:
        """The next bytes: at most ``count``, as a byte may become two."""
        with self._reading:
            data = b"" if self.closed else self._file.read(count // 2)
        if not self._begun:
            self._begun, data = True, data.removeprefix(_BOM)
        if data:
            self._last = data[-1:]
        else:
            line = self.end if self._last in b"\r\n" or not self.end else b"\n" + self.end
            data, self.end = line, b""
        return data if data.isascii() else data.decode("latin-1").encode()

    def stop(self) -> None:
        """Read no more, so that the file can be read again."""
        with self._reading:
            self.closed = True


def _values(reading: _Reading) -> Iterator[bytes]:
    """The rows in their order; UnreadableFile where a quoted field takes in the rest of the file."""
    number, heading = 1, reading.header  # the number as pyarrow counts the file's rows
    written: RowWriter | None = None
    for batch in reading.batches():
        written = written or row_writer(batch.schema.names, reading.layout, reading.path)
        # It is the last row that takes in what follows.
        count = batch.num_rows - (1 if _swallows(batch, reading.end) else 0)
        for start in range(0, count, _SLICE):
            some = batch.slice(start, min(_SLICE, count - start))
            columns = [some.column(i).to_pylist() for i in range(some.num_columns)]
            for fields in zip(*columns, strict=True):
                while reading.bad and reading.bad[0][0] <= number:
                    number += 1
                    yield reading.bad.pop(0)[1]
                number += 1
                if heading:
                    heading = all(value is None for value in fields)
                else:
                    yield written(fields)
    yield from (told for _, told in reading.bad)
    if not reading.closed:
        raise UnreadableFile("a quoted field does not end")


def _swallows(batch: pa.RecordBatch, end: bytes) -> bool:
    last = [column[-1].as_py() for column in batch.columns] if batch.num_rows else []
    return any(value is not None and value.endswith(end) for value in last)
