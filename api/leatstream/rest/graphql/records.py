"""Records of stores, and which of them a subscription is for."""

from __future__ import annotations

from datetime import datetime
from enum import Enum

import strawberry

from leatstream.connectors.entities import Record as StoreRecord
from leatstream.errors import RequestError
from leatstream.rest.graphql.values import JSON, Long, raw_json
from leatstream.rest.streams import read_bytes, read_header
from leatstream.services.relations.record_streams import RecordsWanted, records_from

MOST = 1_000_000
_LONGEST_PARTITION, _LONGEST_TEXT, _FASTEST, _FARTHEST = 200, 1000, 10_000, 2**63 - 1


@strawberry.type(description="A header of a record.")
class Header:
    """A header of a record."""

    name: str
    value: str | None
    value_encoding: str | None = strawberry.field(description="base64 where the value is no text.")


@strawberry.type(description="A record as it lies in the store.")
class Record:
    """A record as it lies in the store."""

    key: JSON | None = strawberry.field(description="JSON if it parses, else text.")
    key_encoding: str | None = strawberry.field(description="base64 where the key is no text.")
    value: JSON | None = strawberry.field(description="JSON if it parses, else text; null = tombstone.")
    value_encoding: str | None = strawberry.field(description="base64 where the value is no text.")
    partition: str
    offset: str
    timestamp: Long | None = strawberry.field(description="Epoch milliseconds.")
    headers: list[Header]


@strawberry.enum(description="Where to begin.")
class Start(Enum):
    """Where to begin."""

    BEGINNING = "beginning"
    LATEST = "latest"


def record_of(record: StoreRecord) -> Record:
    """A record as clients see it."""
    key, key_encoding = read_bytes(record.key)
    value, value_encoding = read_bytes(record.value)
    headers = [(name, read_header(raw)) for name, raw in record.headers]
    return Record(
        key=None if key is None else raw_json(key),
        key_encoding=key_encoding,
        value=None if value is None else raw_json(value),
        value_encoding=value_encoding,
        partition=str(record.partition),
        offset=str(record.offset),
        timestamp=None if record.timestamp is None else Long(record.timestamp),
        headers=[
            Header(name=name, value=h["value"], value_encoding=h.get("value_encoding")) for name, h in headers
        ],
    )


def records_wanted(
    start: Start,
    since: datetime | None,
    partition: str | None,
    offset: int | None,
    q: str | None,
    rate: int | None,
    limit: int | None,
) -> RecordsWanted:
    """What the arguments of a subscription ask for, within the bounds that REST has.

    Args:
        start: where to begin.
        since: the first time wanted, in place of ``start``.
        partition: the only one wanted.
        offset: the first one of that partition.
        q: a part of key or value, in any case.
        rate: the most records a second.
        limit: end after so many.

    Raises:
        RequestError: validation, an argument is out of its bounds.
    """
    within("limit", limit, 1, MOST)
    within("rate", rate, 1, _FASTEST)
    within("offset", offset, 0, _FARTHEST)
    for name, text, longest in (("partition", partition, _LONGEST_PARTITION), ("q", q, _LONGEST_TEXT)):
        if text is not None and not 1 <= len(text) <= longest:
            raise RequestError("validation", f"{name} has 1 to {longest} characters.")
    place = records_from(start is Start.BEGINNING, since, partition, offset)
    return RecordsWanted(place, text=q, limit=limit, rate=rate)


def within(name: str, value: int | None, least: int, most: int) -> None:
    """Refuse a number out of its bounds.

    Args:
        name: of the argument.
        value: None = it is left out.
        least: the smallest allowed.
        most: the greatest allowed.
    """
    if value is not None and not least <= value <= most:
        raise RequestError("validation", f"The {name} must be between {least} and {most}, not {value}.")
