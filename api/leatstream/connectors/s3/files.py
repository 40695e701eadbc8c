"""What files hold, as records: JSON objects, one a row, whatever the file's format is.

All formats then pass through one decoder with one set of rules: what a type takes, what NOT NULL means, what
becomes of a record that does not fit. A file that cannot be read on is one undecodable record more, so that
the same property decides whether it fails the query or is skipped and counted.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO

from leatstream.connectors.s3.csv_rows import csv_values
from leatstream.connectors.s3.json_lines import json_values
from leatstream.connectors.s3.layout import Layout, Row
from leatstream.connectors.s3.matching import check_columns
from leatstream.connectors.s3.parquet_rows import parquet_values
from leatstream.connectors.s3.path_columns import path_members, with_members
from leatstream.formats.avro_files import NoRow, UnreadableFile, json_rows
from leatstream.model.objects import Column

MOST_ROWS, MOST_BYTES = 5_000, 4 * 1024 * 1024  # of one chunk
_BROKEN = (EOFError, OSError, zlib.error)
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_GZIP = b"\x1f\x8b"


def rows(path: str, file: IO[bytes], layout: Layout) -> Iterator[list[Row]]:
    """The rows of a file in chunks; the last one may be a fault.

    Args:
        path: of the file below its entity's directory; JSON and CSV that are packed with gzip are unpacked.
        file: opened for reading, can be read again; errors that are not about the content pass through.
        layout: its format.
    """
    return _chunks(_numbered(lambda: _values(path, file, layout)))


def _values(path: str, file: IO[bytes], layout: Layout) -> Iterator[bytes]:
    """The rows as JSON objects; UnreadableFile and the errors of unpacking where the file is damaged."""
    members = path_members(path, layout.columns)
    return with_members(_READERS[layout.format](path, file, layout, members), members)


def _json(path: str, file: IO[bytes], _: Layout, __: Mapping[str, str]) -> Iterator[bytes]:
    return json_values(_text(path, file))


def _csv(path: str, file: IO[bytes], layout: Layout, members: Mapping[str, str]) -> Iterator[bytes]:
    return csv_values(_text(path, file), layout, members)


def _text(path: str, file: IO[bytes]) -> IO[bytes]:
    """A file of text: unpacked, at its beginning, and not UTF-16."""
    packed = path.endswith(".gz") or file.read(2) == _GZIP
    file.seek(0)
    opened = io.BufferedReader(gzip.GzipFile(fileobj=file)) if packed else file
    if opened.read(2) in _UTF_16:
        raise UnreadableFile("it is UTF-16, and what is read is UTF-8: write it as UTF-8")
    opened.seek(0)
    return opened


def _parquet(_: str, file: IO[bytes], layout: Layout, members: Mapping[str, str]) -> Iterator[bytes]:
    return parquet_values(file, layout.columns, members)


def _avro(_: str, file: IO[bytes], layout: Layout, members: Mapping[str, str]) -> Iterator[bytes]:
    columns = [Column(name, kind) for name, kind in layout.columns.items()]
    return json_rows(file, columns, lambda names: check_columns(names, layout.columns, members))


_READERS = {"json": _json, "csv": _csv, "parquet": _parquet, "avro": _avro}


def _numbered(values: Callable[[], Iterator[bytes]]) -> Iterator[Row]:
    number = 0
    try:
        for value in values():
            if isinstance(value, NoRow):
                yield Row(number, value if value.raw is None else value.raw, None, value.decode())
            else:
                yield Row(number, value)
            number += 1
    except UnreadableFile as error:
        yield Row(number, str(error).encode(), str(error))
    except _BROKEN as error:
        fault = f"it is damaged ({type(error).__name__})"
        yield Row(number, fault.encode(), fault)


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
