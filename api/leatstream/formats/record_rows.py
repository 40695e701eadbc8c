"""Single records as rows of a relation, read without Spark, for people who look at a few of them.

The verdict is the job's (``leatstream_jobs.reading``): what makes a query fail is undecodable here too, for
the same reason in the same words.
"""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leatstream.formats.described import FORMATS as DESCRIBED
from leatstream.formats.described import Decoder, Description
from leatstream.formats.event_times import NO_TIME, time_fault
from leatstream.formats.json_faults import RecordFault, faults_of, in_words, key_faults_of, no_time
from leatstream.formats.json_objects import JsonReader
from leatstream.formats.plain_values import Undecodable
from leatstream.formats.primitive import WIDTHS, check_plain
from leatstream.formats.registry_client import RegistryClient
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, SourceSpec, value_columns

GZIP = b"\x1f\x8b"
PACKED = "its value is packed with gzip, which is not unpacked"
NO_ROW = "it does not fit the columns"
_FRACTIONS = {"FLOAT": ">f", "DOUBLE": ">d"}
Values = Mapping[str, Any]
Headers = Sequence[tuple[str, bytes | None]]
# A part of a record, read into its columns.
_Read = Callable[[bytes], list[Any]]


@dataclass(slots=True)
class RowReader:
    """Reads records of one relation. Not for several threads.

    Attributes:
        source: what a job would read.
        form: of the values as they come: rows of files and of tables come as JSON.
        registry: of formats whose records name a schema.
        shown: whether reasons may show short pieces of values.
    """

    source: SourceSpec
    form: str
    registry: RegistryClient | None
    shown: bool
    _parts: dict[str, _Read] = field(default_factory=dict)

    def row(
        self, key: bytes | None, value: bytes | None, headers: Headers, own_ms: int | None, now_ms: int
    ) -> Values:
        """The columns' values, plain (``formats.plain_values``), by name.

        Args:
            key: of the record.
            value: of the record; only of a changelog it may be None: then the row that its key names.
            headers: of the record.
            own_ms: the record's own time, epoch milliseconds.
            now_ms: the clock, epoch milliseconds.

        Raises:
            Undecodable: it is no row of the relation.
            StoreError: the registry cannot be asked.
        """
        source, found = self.source, dict[str, Any]()
        if value is not None:
            found |= self._value(value)
        named = source.key_only or (source.primary_key if value is None else ())
        if named:
            found |= self._key(key, [c for c in source.columns if c.name in named])
        column = next((c for c in source.columns if c.name == source.headers_column), None)
        if column is not None and value is not None:
            found[column.name] = _headers_value(column, headers)
        self._check_time(found, value, own_ms, now_ms)
        return found

    def _value(self, value: bytes) -> dict[str, Any]:
        columns = value_columns(self.source)
        if self.form == "json":
            faults = faults_of(columns, value)
            if faults and self.source.value_format == "json" and value.startswith(GZIP):
                raise Undecodable(PACKED)
            self._refuse(faults)
        return self._read("value", self.form, columns, value)

    def _key(self, key: bytes | None, columns: Sequence[ColumnSpec]) -> dict[str, Any]:
        if not self.source.key_only:
            columns = [c.model_copy(update={"not_null": False}) for c in columns]
        form = self.source.key_format or "primitive"
        if form == "json" and (key is not None or any(c.not_null for c in columns)):
            self._refuse(key_faults_of(columns, key or b""))
        if key is None:
            self._refuse_null(columns, dict.fromkeys(c.name for c in columns))
            return {}
        try:
            return self._read("key", form, columns, key)
        except Undecodable as error:
            raise Undecodable(f"its key cannot be read: {error}") from None

    def _read(self, part: str, form: str, columns: Sequence[ColumnSpec], raw: bytes) -> dict[str, Any]:
        if part not in self._parts:
            self._parts[part] = self._reader(part, form, columns)
        values = dict(zip((c.name for c in columns), self._parts[part](raw), strict=True))
        self._refuse_null(columns, values)
        return values

    def _reader(self, part: str, form: str, columns: Sequence[ColumnSpec]) -> _Read:
        names, types = tuple(c.name for c in columns), tuple(c.type for c in columns)
        if form == "primitive":
            return lambda raw: [plain_value(raw, types[0])]
        if form not in DESCRIBED:
            reader = JsonReader.of(names, [parse_type(text) for text in types])

            def read(raw: bytes) -> list[Any]:
                members = reader.read(raw, 0)
                return [get(members) for get in reader.getters]

            return read
        bare = self.source.descriptor if part == "value" else None
        files = b64decode(bare.files) if bare is not None else None
        message = bare.message if bare is not None else None
        return Decoder(Description(form, names, types, files=files, message=message), self.registry).row

    def _refuse(self, faults: Sequence[RecordFault]) -> None:
        if faults:
            raise Undecodable(in_words(faults, shown=self.shown))

    def _refuse_null(self, columns: Sequence[ColumnSpec], values: Values) -> None:
        why = "is NOT NULL, and is null in the record"
        self._refuse([RecordFault(c.name, why=why) for c in columns if c.not_null and values[c.name] is None])

    def _check_time(self, found: Values, value: bytes | None, own_ms: int | None, now_ms: int) -> None:
        source = self.source
        given = found.get(source.timestamp) if source.timestamp is not None else None
        why = time_fault(source, given, own_ms, now_ms)
        if why is None:
            return
        column = next((c for c in value_columns(source) if c.name == source.timestamp), None)
        if why == NO_TIME and self.form == "json" and column is not None and value is not None:
            self._refuse([no_time(column, value)])
        raise Undecodable(why)


def plain_value(raw: bytes, kind_text: str) -> Any:
    """The value of a key or value that is one plain value (``formats.primitive``).

    Raises:
        Undecodable: its bytes are not of the type.
    """
    kind = check_plain(kind_text).kind
    if kind in ("BYTES", "VARBINARY"):
        return raw
    if kind == "VARCHAR":
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise Undecodable("its bytes are no text in UTF-8") from None
    if kind == "BOOLEAN" and raw in (b"\0", b"\1"):
        return raw == b"\1"
    if kind in WIDTHS and len(raw) == WIDTHS[kind]:
        return int.from_bytes(raw, "big", signed=True)
    if kind in _FRACTIONS and len(raw) == struct.calcsize(_FRACTIONS[kind]):
        return struct.unpack(_FRACTIONS[kind], raw)[0]
    raise Undecodable(f"its bytes are no {parse_type(kind_text)}")


def _headers_value(column: ColumnSpec, headers: Headers) -> Any:
    if not headers and not column.not_null:
        return None
    if parse_type(column.type).arguments[1].kind != "VARCHAR":
        return dict(headers)
    try:
        return {name: None if raw is None else raw.decode() for name, raw in headers}
    except UnicodeDecodeError:
        raise Undecodable(f"a header, read as {column.name}, is no text in UTF-8") from None
