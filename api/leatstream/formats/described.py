"""Records whose form a schema describes, in the wire format of Confluent's registry.

The formats are Avro, Protobuf and JSON Schema. A record is a zero byte, the schema's id (4 bytes, big-endian)
and what the format says; Protobuf has the message's place in its file in between. Protobuf records that a
descriptor source describes have no such head.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from leatstream.formats.avro_reading import AvroReader
from leatstream.formats.avro_schema import UnfitSchema
from leatstream.formats.avro_writing import record_writer
from leatstream.formats.json_object_writing import record_writer as json_writer
from leatstream.formats.json_objects import JsonReader
from leatstream.formats.plain_values import Undecodable
from leatstream.formats.protobuf_records import ProtobufReader, message_path
from leatstream.formats.protobuf_records import record_writer as protobuf_writer
from leatstream.formats.protobuf_schema import message_at, message_of, open_file
from leatstream.formats.registered_schema import parsed_avro, schema_type
from leatstream.formats.registry_client import RegistryAddress, RegistryClient, Schema
from leatstream.model.types import DataType, parse_type

FORMATS = ("avro", "protobuf", "json_schema")
_HEAD = 5
_ASK_AGAIN = 30.0  # seconds after which an id that the registry did not know is asked for again
_MOST_UNKNOWN = 10_000


@dataclass(frozen=True, slots=True)
class Description:
    """What is said of one relation's values or keys; plain data, so that it can be sent to Spark's workers.

    Attributes:
        format: ``avro``, ``protobuf`` or ``json_schema``.
        names, types: of the columns; types as SQL writes them.
        needed: whether a column is NOT NULL; read by writers only.
        schema: that records are written by; of Protobuf only, whose fields have numbers.
        files, message: compiled descriptor set and full name of bare Protobuf messages, which name no schema.
    """

    format: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    needed: tuple[bool, ...] = ()
    registry: RegistryAddress | None = None
    schema: str | None = None
    files: bytes | None = None
    message: str | None = None

    def data_types(self) -> list[DataType]:
        """The columns' types, read."""
        return [parse_type(text) for text in self.types]


class Reader(Protocol):
    """Reads records of one schema; ``getters`` as ``AvroReader``'s."""

    @property
    def getters(self) -> tuple[Callable[[Any], Any] | None, ...]:
        """What takes the columns' values out of a record."""

    def read(self, value: bytes, at: int) -> Any:
        """The record that begins at a byte; Undecodable."""


# What names the reader of a record, and where the record begins behind its head.
_Opened = Callable[[bytes], tuple[Reader, int]]


@dataclass(slots=True)
class Decoder:
    """Reads records, fetching schemas as their ids appear. Not for several threads.

    Args:
        description: of the records.
        client: of the registry.
    """

    description: Description
    client: RegistryClient | None
    _readers: dict[int, _Opened | str] = field(default_factory=dict)
    _unknown: dict[int, float] = field(default_factory=dict)
    _bare: Reader | None = None

    def columns(self, values: Sequence[bytes | None]) -> tuple[list[list[Any]], list[str | None]]:
        """Values by column, and for each record why it cannot be read, or None.

        A record that is null has nulls, and no reason.

        Raises:
            StoreError: the registry cannot be asked for a schema that is not known yet.
        """
        count = len(values)
        reasons: list[str | None] = [None] * count
        groups: dict[int, tuple[Reader, list[int], list[Any]]] = {}
        for index, value in enumerate(values):
            if value is None:
                continue
            try:
                reader, at = self._reader(value)
                record = reader.read(value, at)
            except Undecodable as error:
                reasons[index] = str(error)
                continue
            group = groups.get(id(reader))
            if group is None:
                group = groups[id(reader)] = (reader, [], [])
            group[1].append(index)
            group[2].append(record)
        columns: list[list[Any]] = [[None] * count for _ in self.description.names]
        for reader, indexes, records in groups.values():
            for column, getter in zip(columns, reader.getters, strict=True):
                if getter is not None:
                    _fill(column, getter, indexes, records, reasons)
        return columns, reasons

    def row(self, value: bytes) -> list[Any]:
        """The values of one record.

        Raises:
            Undecodable: it cannot be read.
            StoreError: the registry cannot be asked.
        """
        columns, reasons = self.columns([value])
        if reasons[0] is not None:
            raise Undecodable(reasons[0])
        return [column[0] for column in columns]

    def _reader(self, value: bytes) -> tuple[Reader, int]:
        if self.description.files is not None:
            return self._message(self.description.files), 0
        number = schema_id(value)
        opened = self._readers.get(number)
        if opened is None:
            opened = self._find(number)
        if isinstance(opened, str):
            raise Undecodable(opened)
        return opened(value)

    def _message(self, files: bytes) -> Reader:
        if self._bare is None:
            names, types = self.description.names, self.description.data_types()
            try:
                message = message_of(files, self.description.message or "")
                self._bare = ProtobufReader.of(message, names, types)
            except UnfitSchema as error:
                raise Undecodable(str(error)) from None
        return self._bare

    def _find(self, number: int) -> _Opened | str:
        if self._unknown.get(number, 0.0) > time.monotonic():
            raise Undecodable(f"the registry has no schema {number}")
        if self.client is None:
            raise Undecodable("no registry is known for its schema")
        schema = self.client.schema(number)
        if schema is None:
            if len(self._unknown) >= _MOST_UNKNOWN:
                self._unknown.clear()
            self._unknown[number] = time.monotonic() + _ASK_AGAIN
            raise Undecodable(f"the registry has no schema {number}")
        made: _Opened | str
        try:
            made = self._made(schema)
        except UnfitSchema as error:
            made = f"schema {number} does not fit the columns: {error}"
        self._readers[number] = made
        return made

    def _made(self, schema: Schema) -> _Opened:
        wanted = schema_type(self.description.format)
        if schema.type != wanted:
            raise UnfitSchema(f"it is of type {schema.type}, not {wanted}")
        names, types = self.description.names, self.description.data_types()
        if schema.type == "PROTOBUF":
            return _Messages(open_file(schema), names, types)
        reader: Reader
        if schema.type == "JSON":
            reader = JsonReader.of(names, types)
        else:
            reader = AvroReader.of(parsed_avro(schema), names, types)
        return lambda _value: (reader, _HEAD)


class _Messages:
    """The messages of one Protobuf file; each record says which one it is."""

    def __init__(self, file: Any, names: Sequence[str], types: Sequence[DataType]) -> None:
        self._file, self._names, self._types = file, names, types
        self._readers: dict[tuple[int, ...], Reader | str] = {}

    def __call__(self, value: bytes) -> tuple[Reader, int]:
        path, at = message_path(value, _HEAD)
        reader = self._readers.get(path)
        if reader is None:
            reader = self._readers[path] = self._made(path)
        if isinstance(reader, str):
            raise Undecodable(reader)
        return reader, at

    def _made(self, path: tuple[int, ...]) -> Reader | str:
        try:
            return ProtobufReader.of(message_at(self._file, path), self._names, self._types)
        except UnfitSchema as error:
            return f"its message does not fit the columns: {error}"


def _fill(
    column: list[Any],
    getter: Callable[[Any], Any],
    indexes: Sequence[int],
    records: Sequence[Any],
    reasons: list[str | None],
) -> None:
    if len(indexes) == len(column):
        try:
            column[:] = [getter(record) for record in records]
            return
        except Undecodable:  # one by one, then
            pass
    for index, record in zip(indexes, records, strict=True):
        try:
            column[index] = getter(record)
        except Undecodable as error:
            column[index] = None
            reasons[index] = str(error)


def schema_id(value: bytes) -> int:
    """The id in a record's head.

    Raises:
        Undecodable: the record has none.
    """
    if len(value) < _HEAD or value[0] != 0:
        raise Undecodable("it does not begin with a schema's id, as records of a schema registry do")
    return int.from_bytes(value[1:_HEAD], "big")


@dataclass(slots=True)
class Encoder:
    """Writes records.

    Args:
        description: of the records; its columns are all written.
        schema: id of the schema that ``avro_columns`` made of the same columns.
    """

    description: Description
    schema: int
    _write: Callable[[bytearray, Any], None] | None = None

    def record(self, row: Sequence[Any]) -> bytes:
        """The bytes of one row.

        Raises:
            Unencodable: a value has no form there.
        """
        if self._write is None:
            self._write = self._writer()
        out = bytearray(b"\x00")
        out += self.schema.to_bytes(4, "big")
        self._write(out, row)
        return bytes(out)

    def _writer(self) -> Callable[[bytearray, Any], None]:
        types = self.description.data_types()
        if self.description.format == "protobuf":
            file = open_file(Schema("PROTOBUF", self.description.schema or ""))
            return protobuf_writer(message_at(file, (0,)), self.description.names, types)
        if self.description.format == "json_schema":
            return json_writer(self.description.names, types)
        return record_writer(types, self.description.needed or (False,) * len(types))


def open_decoder(description: Description) -> Decoder:
    """A decoder with a client of its own."""
    client = None if description.registry is None else RegistryClient(description.registry)
    return Decoder(description, client)


def subject_of(entity: str, part: str) -> str:
    """The subject of an entity's ``key`` or ``value``: the topic-name strategy."""
    return f"{entity}-{part}"
