"""A few records of a relation, as rows."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from leatstream.connectors.entities import Record
from leatstream.rest.schemas.base import View
from leatstream.rest.streams import read_header
from leatstream.services.selects.samples import Sample, Sampling


class SampleColumn(View):
    """A column of the rows."""

    name: str
    type: str


class SampledRecord(View):
    """A record, and the row that it is."""

    partition: int | str | None = Field(None, description="Partition, shard or file; tables have none.")
    offset: int | str | None = Field(None, description="Position in it.")
    timestamp: int | None = Field(None, description="The record's own time, epoch milliseconds.")
    key: str | None = Field(None, description="The key as text, or in base64.")
    key_encoding: str | None = Field(None, description="`base64` where the key is no text.")
    outcome: Literal["row", "deletion", "passed_over", "undecodable"] = Field(
        description="What a query makes of it. A deletion takes back the row of its key; a record without "
        "value in a stream is passed over."
    )
    row: list[Any] | None = Field(
        None, description="A value for each column. DECIMAL is a text, so that no digit is lost."
    )
    reason: str | None = Field(None, description="Why it is no row.")

    @classmethod
    def from_domain(cls, item: Sampling) -> SampledRecord:
        """The answer for a record of a sample."""
        row = None if item.row is None else list(item.row)
        return cls(outcome=item.outcome.value, row=row, reason=item.reason, **_place(item.record))


class RelationSample(View):
    """A few records of a relation."""

    relation: str = Field(description="Full name.")
    columns: list[SampleColumn]
    records: list[SampledRecord]
    note: str | None = Field(None, description="Why there are no records, or others than those asked for.")

    @classmethod
    def from_domain(cls, item: Sample) -> RelationSample:
        """The answer for a sample."""
        return cls(
            relation=str(item.relation.fqn),
            columns=[SampleColumn(name=name, type=kind) for name, kind in item.columns],
            records=[SampledRecord.from_domain(one) for one in item.records],
            note=item.note,
        )


def _place(record: Record | None) -> dict[str, Any]:
    if record is None:
        return {}
    shown = read_header(record.key)
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": shown["value"],
        "key_encoding": shown.get("value_encoding"),
    }
