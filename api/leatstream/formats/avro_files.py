"""Avro's object container files: a schema, then blocks of records that were written with it.

``avro_reading`` and ``avro_writing`` say what the records' values are; here is what stands around them. A
file has no end mark, so one that is cut off exactly between two blocks looks the same as a shorter one.
"""

from __future__ import annotations

import bz2
import json
import lzma
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from leatstream.formats.avro_columns import column_type
from leatstream.formats.avro_reading import AvroReader
from leatstream.formats.avro_schema import AvroType, Parts, UnfitSchema, parse_schema, smallest
from leatstream.formats.avro_writing import Write, record_writer, write_bytes, write_long
from leatstream.formats.plain_values import Undecodable
from leatstream.formats.values import from_plain, json_record
from leatstream.model.objects import Column

MAGIC = b"Obj\x01"
_SYNC = 16  # bytes
_LARGEST = 64 * 1024 * 1024  # bytes: of a header's entry, and of a block, packed and unpacked
_MOST_ENTRIES = 1_000
_BLOCK = 64 * 1024  # bytes of the records that make a block, before they are packed


class UnreadableFile(ValueError):
    """A file that cannot be read on; its text says why and quotes nothing of its records."""


class NoRow(bytes):
    """Instead of a row's object: a sentence that says why it is none, and quotes nothing of it.

    Attributes:
        raw: the row as it stands, where it is a text.
    """

    raw: bytes | None = None

    @classmethod
    def of(cls, why: str, raw: bytes | None) -> NoRow:
        """Make one of a row of text."""
        made = cls(why.encode())
        made.raw = raw
        return made


# -- reading -------------------------------------------------------------------------------------------------


def json_rows(
    file: IO[bytes], columns: Sequence[Column], check: Callable[[Sequence[str]], None] = lambda _: None
) -> Iterator[bytes]:
    """The rows of a file as JSON objects of its columns; what is no row is a NoRow.

    Args:
        file: opened for reading; errors that are not about its content pass through.
        columns: in order, taken by their names; none = every field that a column type can hold.
        check: takes the names of the file's fields; raises UnreadableFile if they do not fit the columns.

    Raises:
        UnreadableFile: it is no Avro, damaged, packed by what is not known, or does not fit the columns;
            raised behind the rows before the damage.
    """
    source = _Source(file)
    header = _Header.read(source)
    try:
        schema = parse_schema(header.schema)
        if not smallest(schema):
            raise UnfitSchema("its records take no bytes")
        wanted = tuple(columns) or _columns_of(schema)
        if schema.kind == "record":
            check(schema.fields)
            wanted = tuple(column for column in wanted if column.name in schema.fields)
        reader = AvroReader.of(schema, [c.name for c in wanted], [c.type for c in wanted])
    except UnfitSchema as error:
        raise UnreadableFile(f"its schema cannot be used: {error}") from None
    for count, data in _blocks(source, header):
        try:
            for record in reader.each(data, count):
                yield _row(wanted, reader, record)
        except Undecodable as error:
            raise UnreadableFile(f"it is damaged: {error}") from None


def _row(columns: Sequence[Column], reader: AvroReader, record: Any) -> bytes:
    values = []
    try:
        for column, getter in zip(columns, reader.getters, strict=True):
            values.append(None if getter is None else from_plain(getter(record), column.type))
    except Undecodable as error:
        return NoRow(str(error).encode())
    return json_record(columns, values)


def _columns_of(schema: AvroType) -> tuple[Column, ...]:
    """What can be shown of records: the fields that have a column type."""
    found, parts = [], Parts()
    for name, part in zip(schema.fields, schema.parts, strict=True) if schema.kind == "record" else ():
        try:
            found.append(Column(name, column_type(part, parts)))
        except UnfitSchema:
            continue
    if not found:
        raise UnfitSchema("none of its fields can be a column")
    return tuple(found)


class _Source:
    """A file from which a number of bytes is there or the file is cut off."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def some(self, count: int) -> bytes:
        """As many bytes as are left, at most ``count``."""
        return self._file.read(count)

    def take(self, count: int) -> bytes:
        """So many bytes."""
        if not 0 <= count <= _LARGEST:
            raise UnreadableFile("it is damaged: it speaks of a block of more than 64 MiB")
        data = self._file.read(count)
        if len(data) < count:
            raise UnreadableFile("it is cut off")
        return data

    def number(self, first: bytes = b"") -> int:
        """A long in zigzag form, of which a byte may have been read."""
        value, shift, byte = 0, 0, first or self.take(1)
        while True:
            value |= (byte[0] & 0x7F) << shift
            if byte[0] < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:
                raise UnreadableFile("it is damaged: a number is too long")
            byte = self.take(1)


@dataclass(frozen=True, slots=True)
class _Header:
    """What stands before the blocks: the schema's JSON, the codec's name, and what ends each block."""

    schema: str
    codec: str
    sync: bytes

    @classmethod
    def read(cls, source: _Source) -> _Header:
        if source.some(len(MAGIC)) != MAGIC:
            raise UnreadableFile("it is no Avro")
        entries: dict[bytes, bytes] = {}
        while count := source.number():
            if count < 0:
                count = -count
                source.number()  # the size of the entries, for readers that pass over them
            if count + len(entries) > _MOST_ENTRIES:
                raise UnreadableFile("it is damaged: its header has no end")
            for _ in range(count):
                key = source.take(source.number())
                entries[key] = source.take(source.number())
        codec = entries.get(b"avro.codec", b"null").decode(errors="replace")
        if codec not in _UNPACKED:
            known = ", ".join(sorted(_UNPACKED))
            raise UnreadableFile(f"its blocks are packed with {codec[:30]!r}, and what is read is {known}")
        schema = entries.get(b"avro.schema", b"").decode(errors="replace")
        return cls(schema, codec, source.take(_SYNC))


def _blocks(source: _Source, header: _Header) -> Iterator[tuple[int, bytes]]:
    """Number of records and bytes, unpacked, of each block."""
    import pyarrow as pa

    while first := source.some(1):
        count, size = source.number(first), source.number()
        data = source.take(size)
        if source.take(_SYNC) != header.sync:
            raise UnreadableFile("it is damaged: a block does not end where it says")
        try:
            data = _UNPACKED[header.codec](data)
        except (zlib.error, lzma.LZMAError, pa.ArrowException, OSError, EOFError, ValueError) as error:
            if isinstance(error, UnreadableFile):
                raise
            raise UnreadableFile(f"it is damaged ({type(error).__name__})") from None
        if not 0 <= count <= len(data):
            raise UnreadableFile("it is damaged: a block has fewer records than it says")
        yield count, data


def _plain(data: bytes) -> bytes:
    return data


def _whole(make: Callable[[], Any]) -> Callable[[bytes], bytes]:
    """Unpack with one of the standard library's decompressors, up to a bound."""

    def unpacked(data: bytes) -> bytes:
        packer = make()
        found: bytes = packer.decompress(data, _LARGEST)
        if not packer.eof:
            raise UnreadableFile("it is damaged: a block is cut off, or unpacks to more than 64 MiB")
        return found

    return unpacked


def _snappy(data: bytes) -> bytes:
    import pyarrow as pa

    size, shift = 0, 0
    for byte in data[:5]:  # snappy begins with the size that it unpacks to
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > _LARGEST:
        raise UnreadableFile("it is damaged: a block unpacks to more than 64 MiB")
    found: bytes = pa.Codec("snappy").decompress(data[:-4], size, asbytes=True)
    if zlib.crc32(found).to_bytes(4, "big") != data[-4:]:
        raise UnreadableFile("it is damaged: a block has another checksum than it says")
    return found


def _zstandard(data: bytes) -> bytes:
    import pyarrow as pa

    found: bytes = pa.CompressedInputStream(pa.BufferReader(data), "zstd").read(_LARGEST + 1)
    if len(found) > _LARGEST:
        raise UnreadableFile("it is damaged: a block unpacks to more than 64 MiB")
    return found


_UNPACKED: dict[str, Callable[[bytes], bytes]] = {
    "null": _plain,
    "deflate": _whole(lambda: zlib.decompressobj(-15)),
    "bzip2": _whole(bz2.BZ2Decompressor),
    "xz": _whole(lzma.LZMADecompressor),
    "snappy": _snappy,
    "zstandard": _zstandard,
}


# -- writing -------------------------------------------------------------------------------------------------


class AvroFileWriter:
    """Writes one file.

    Args:
        send: takes the file's bytes, in order.
        schema: what ``avro_columns.schema_text`` made of the columns.
        columns: in order.
        codec: ``deflate`` or ``null``.
    """

    def __init__(
        self, send: Callable[[bytes], Any], schema: str, columns: Sequence[Column], codec: str
    ) -> None:
        self._send = send
        self._record: Write = record_writer([c.type for c in columns], [c.not_null for c in columns])
        self._packed = codec == "deflate"
        self._sync = os.urandom(_SYNC)
        self._waiting, self._count = bytearray(), 0
        head = bytearray(MAGIC)
        write_long(head, 2)
        # One form of the schema's text, whatever its author wrote.
        text = json.dumps(json.loads(schema), separators=(",", ":")).encode()
        for part in (b"avro.schema", text, b"avro.codec", codec.encode()):
            write_bytes(head, part)
        send(bytes(head + b"\x00" + self._sync))

    def write(self, row: Any) -> None:
        """Add a row, a value per column as ``record_writer`` takes them.

        Raises:
            Unencodable: a value has no form in Avro.
        """
        self._record(self._waiting, row)
        self._count += 1
        if len(self._waiting) >= _BLOCK:
            self._block()

    def close(self) -> None:
        """Send what waits."""
        if self._count:
            self._block()

    def _block(self) -> None:
        data = bytes(self._waiting)
        if self._packed:
            packer = zlib.compressobj(wbits=-15)
            data = packer.compress(data) + packer.flush()
        block = bytearray()
        write_long(block, self._count)
        write_bytes(block, data)
        self._send(bytes(block + self._sync))
        self._waiting, self._count = bytearray(), 0
