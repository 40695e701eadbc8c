"""What a job registers of its sink before the first record, and how it then makes records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from leatstream.errors import JobError
from leatstream.formats import json_writing, primitive
from leatstream.formats.described import FORMATS, Description, subject_of
from leatstream.formats.registered_schema import schema_type
from leatstream.formats.registry_client import RegistryAddress, RegistryClient, Schema
from leatstream.plan.job_spec import ColumnSpec, SinkSpec, StoreRef, value_columns
from leatstream_jobs.reading import described_records

if TYPE_CHECKING:
    from pyspark.sql import Column


def registry_of(store: StoreRef, secrets: Mapping[str, str]) -> RegistryAddress | None:
    """The schema registry of a store, its password resolved; None where it has none."""
    found = store.registry
    if found is None:
        return None
    password = secrets[found.password] if found.password is not None else None
    return RegistryAddress.of(
        found.name, found.kind, found.uris, found.username, password, found.ca_certificate
    )


@dataclass(frozen=True, slots=True)
class RecordForm:
    """Ids of the schemas that a sink's records are written by, where its formats have some."""

    value_id: int | None = None
    key_id: int | None = None

    @classmethod
    def of(cls, sink: SinkSpec, secrets: Mapping[str, str]) -> Self:
        """Register the sink's schemas; an existing one keeps its id.

        Raises:
            StoreError: the registry cannot be asked, or refuses a schema.
            JobError: job-rejected, the sink's store has no registry.
        """
        wanted = {"value": sink.value_schema, "key": sink.key_schema}
        formats = {"value": sink.value_format, "key": sink.key_format}
        if not any(formats[part] in FORMATS for part in wanted):
            return cls()
        address = registry_of(sink.store, secrets)
        if address is None:
            raise JobError("job-rejected", f"Store {sink.store.name} names no schema registry.")
        client = RegistryClient(address)
        try:
            ids = {
                part: client.register(
                    subject_of(sink.entity, part), Schema(schema_type(str(formats[part])), text or "")
                )
                for part, text in wanted.items()
                if formats[part] in FORMATS and text is not None
            }
        finally:
            client.close()
        return cls(ids.get("value"), ids.get("key"))

    def value(self, sink: SinkSpec, values: Sequence[Column]) -> Column:
        """The BINARY value of a row, of whose columns ``values`` are all.

        Raises:
            JobError: job-rejected, for a type that the format has no form for.
        """
        columns = value_columns(sink)
        by_name = {c.name: v for c, v in zip(sink.columns, values, strict=True)}
        chosen = [by_name[column.name] for column in columns]
        if sink.value_format == "primitive":
            if len(chosen) != 1:
                raise JobError("job-rejected", "A primitive value is made of exactly one column.")
            return primitive.encode(chosen[0], columns[0].type)
        if self.value_id is None:
            return json_writing.encode(columns, chosen)
        form = _description(sink.value_format, columns, sink.value_schema)
        return described_records.encode(form, self.value_id, chosen)

    def key(self, sink: SinkSpec, columns: Sequence[ColumnSpec], values: Sequence[Column]) -> Column:
        """The BINARY key of a row, made of these columns.

        Raises:
            JobError: job-rejected, when nothing was registered for it.
        """
        if self.key_id is None:
            raise JobError("job-rejected", f"Keys of {sink.relation} have no schema.")
        form = _description(sink.key_format or "", columns, sink.key_schema)
        return described_records.encode(form, self.key_id, values)


def _description(format_: str, columns: Sequence[ColumnSpec], schema: str | None) -> Description:
    return Description(
        format_,
        tuple(c.name for c in columns),
        tuple(c.type for c in columns),
        tuple(c.not_null for c in columns),
        schema=schema if format_ == "protobuf" else None,
    )
