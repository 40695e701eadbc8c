"""Records of a schema registry as JSON text, for people: every field that a column type can hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from leatstream.formats.avro_schema import UnfitSchema
from leatstream.formats.described import Decoder, Description, schema_id
from leatstream.formats.json_objects import object_text
from leatstream.formats.plain_values import Undecodable
from leatstream.formats.registered_schema import columns_of
from leatstream.formats.registry_client import RegistryClient
from leatstream.formats.values import from_plain, json_record
from leatstream.model.objects import Column


@dataclass(slots=True)
class RegisteredJson:
    """Reads records by the schemas they were written with."""

    client: RegistryClient
    _known: dict[int, tuple[tuple[Column, ...], Decoder] | None] = field(default_factory=dict)
    _plain: set[int] = field(default_factory=set)  # ids of JSON Schemas, whose records are JSON already

    def text(self, value: bytes) -> bytes:
        """The record as JSON.

        Raises:
            Undecodable: it names no schema of the registry, or is not of it.
            StoreError: the registry cannot be asked.
        """
        number = schema_id(value)
        if number in self._plain:
            return object_text(value[5:]).encode()
        if number not in self._known:
            self._known[number] = self._found(number)
        found = self._known[number]
        if number in self._plain:
            return self.text(value)
        if found is None:
            raise Undecodable("its schema cannot be shown")
        columns, decoder = found
        row = decoder.row(value)
        return json_record(columns, [from_plain(v, c.type) for v, c in zip(row, columns, strict=True)])

    def _found(self, number: int) -> tuple[tuple[Column, ...], Decoder] | None:
        schema = self.client.schema(number)
        if schema is None:
            return None
        if schema.type == "JSON":
            self._plain.add(number)
            return None
        try:
            columns = columns_of(schema)
        except UnfitSchema:
            return None
        names, types = tuple(c.name for c in columns), tuple(str(c.type) for c in columns)
        return columns, Decoder(Description(schema.type.lower(), names, types), self.client)
