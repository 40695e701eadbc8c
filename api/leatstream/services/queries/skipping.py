"""Records that a query leaves out because a person has said so, one by one.

Only the record that a query has failed at can be skipped: a typing error cannot lose another one. It is
named by its place: a replay, a restart from anywhere and the query's next version leave out the same record.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from leatstream.errors import RequestError
from leatstream.model.names import quote
from leatstream.model.objects import Query, SkippedRecord
from leatstream.plan.record_place import RecordPlace

MOST = 100


def failed_at(query: Query) -> RecordPlace | None:
    """The record that the query has failed at; None where it has not failed, or not at a record."""
    found = (query.status.error or {}).get("record")
    return RecordPlace(**found) if found else None


def skipping(query: Query, text: str, by: str, now: datetime) -> Query:
    """The query, with one more record to skip; one that it skips already is no fault.

    Args:
        query: that failed.
        text: place of the record, as the error shows it.
        by: who asks.
        now: the time.

    Raises:
        RequestError: validation, if the text names no record, or not the one that the query has failed at.
    """
    place = RecordPlace.parse(text.strip())
    if place is None:
        raise _refused(
            "A record is written topic:partition:offset, such as orders:3:42.",
            "Take it from status.error.record of the query.",
        )
    if any(one.place == str(place) for one in query.skipped):
        return query
    failed = failed_at(query)
    if failed is None:
        raise _refused(
            f"Query {quote(query.name)} has not failed at a record, so there is none to skip.",
            "Only the record that a query has failed at can be skipped.",
        )
    if failed != place:
        raise _refused(
            f"Query {quote(query.name)} has failed at the record {failed}, not at {place}.",
            f"RESTART QUERY {quote(query.name)} SKIP RECORD '{failed}'",
        )
    if len(query.skipped) >= MOST:
        raise _refused(
            f"Query {quote(query.name)} skips {MOST} records already.",
            "'source.deserialization.error.handling'='IGNORE_AND_LOG' skips all, and keeps them in a topic",
        )
    return replace(query, skipped=(*query.skipped, SkippedRecord(str(place), now, by)))


def skipped_of(query: Query, entity: str) -> dict[str, list[str]]:
    """The records of a source that are skipped: partition to offsets."""
    found: dict[str, list[str]] = {}
    for one in query.skipped:
        place = RecordPlace.parse(one.place)
        if place is not None and place.entity == entity:
            found.setdefault(place.partition, []).append(place.offset)
    return found


def _refused(detail: str, hint: str) -> RequestError:
    return RequestError("validation", detail, pointer="#/skip_record", hint=hint)
