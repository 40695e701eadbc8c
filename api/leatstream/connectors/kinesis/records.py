"""Reading a stream's records for people: all shards in turn, children once their parents are read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from leatstream.connectors.aws.errors import code_of, is_throttled
from leatstream.connectors.entities import Record, RecordsFrom
from leatstream.connectors.kinesis.admin import KinesisAdmin
from leatstream.connectors.kinesis.aggregates import apart
from leatstream.connectors.kinesis.shards import BEGINNING, EXPIRED, iterator_arguments, list_shards, present
from leatstream.errors import StoreError
from leatstream.model.instants import milliseconds

_LATEST = "LATEST"
_PAUSE = 0.25  # seconds: a shard may be asked five times a second, by everybody together
_AT_ONCE = 1000  # records of one answer
_TIMEOUT = 5.0
# AWS refuses times that are still to come by its own clock. What is read too early is left out.
_SKEW_MS = 2_000


def records(
    admin: KinesisAdmin,
    stream: str,
    start: RecordsFrom,
    limit: int | None,
    idle_timeout: float | None,
    *,
    existing: bool = False,
) -> Iterator[Record | None]:
    """Records of all shards, or of one, as they come; None now and then while there are none.

    Silence counts towards ``idle_timeout`` from the last record on, and only while every shard has answered
    that it has nothing for now.

    Args:
        admin: of the store.
        stream: its name.
        start: where the reading begins.
        limit: end after so many records; None = no limit.
        idle_timeout: end after so many seconds of silence; None = never.
        existing: end in each shard at what is there now.

    Raises:
        StoreError: entity-not-found or store-auth-failed, also while reading.
    """
    reading = _Reading(admin, stream, start, existing)
    seen, quiet = 0, time.monotonic()
    while reading.places:
        outcomes = set()
        for shard in list(reading.places):
            found, outcome = reading.look(shard)
            outcomes.add(outcome)
            for record in found:
                if not start.holds(record):
                    yield None
                    continue
                yield record
                seen += 1
                if limit is not None and seen >= limit:
                    return
        now = time.monotonic()
        if outcomes != {_Outcome.NOTHING}:
            quiet = now
        elif idle_timeout is not None and now - quiet >= idle_timeout:
            return
        if _Outcome.MORE not in outcomes and reading.places:
            yield None
            time.sleep(_PAUSE)


def record_at(admin: KinesisAdmin, stream: str, shard: str, number: str, timeout: float) -> Record | None:
    """The record with a sequence number; of an aggregate the one at the place behind the point."""
    end = time.monotonic() + timeout
    at = {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": number.partition(".")[0]}
    iterator: str | None = _iterator(admin, stream, shard, at)
    while iterator and iterator != EXPIRED and time.monotonic() < end:
        answer = _get(admin, stream, iterator)
        if answer == EXPIRED:
            return None
        if answer is not None and answer["Records"]:
            found = (r for item in answer["Records"] for r in _records(shard, item))
            return next((record for record in found if record.offset == number), None)
        iterator = iterator if answer is None else answer.get("NextShardIterator")
        time.sleep(_PAUSE)
    return None


class _Outcome(Enum):
    """What a look at a shard has brought."""

    MORE = "more"  # records, or they are known to be behind
    NOTHING = "nothing"
    THROTTLED = "throttled"


@dataclass(slots=True)
class _Place:
    """Where the reading of a shard is.

    Attributes:
        origin: where it has begun, as ``shards.iterator_arguments`` takes it, or ``LATEST``.
        iterator: AWS's own, for the next records.
        last: sequence number of the last record; "" before the first.
    """

    origin: str
    iterator: str
    last: str = ""


@dataclass(slots=True)
class _Reading:
    """The places in all shards."""

    admin: KinesisAdmin
    stream: str
    start: RecordsFrom
    existing: bool
    begun: int = 0  # epoch milliseconds
    places: dict[str, _Place] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin in each shard that may have records that are wanted, the oldest shard first."""
        what = f"listing the shards of {self.stream}"
        shards, server = self.admin.call(what, _TIMEOUT, lambda c: list_shards(c, self.stream))
        self.begun = int(present(server) * 1000)
        one = self.start.partition
        if one is not None and one not in shards:
            hint = f"Its shards are {', '.join(sorted(shards)[:10])}." if shards else None
            raise StoreError("entity-not-found", f"Stream {self.stream} has no shard {one}.", hint=hint)
        origin = BEGINNING if self.start.reads_existing else _LATEST
        if self.start.since is not None:
            origin = f"@{min(self.start.since, self.begun - _SKEW_MS)}"
        # Closed shards too; a child may be read beside its parent: people sort by time.
        wanted = [s for s, shard in shards.items() if shard.open or origin != _LATEST]
        self.places = {s: self._place(s, origin) for s in wanted if one in (None, s)}
        self._known = set(self.places)

    def look(self, shard: str) -> tuple[list[Record], _Outcome]:
        """Take the next records of a shard; continue in it, or in its children where it has ended."""
        place = self.places[shard]
        answer = _get(self.admin, self.stream, place.iterator)
        if answer is None:
            return [], _Outcome.THROTTLED
        if answer == EXPIRED:
            # The reader has paused for minutes.
            origin = f"@{self.begun}" if place.origin == _LATEST else place.origin
            self.places[shard] = self._place(shard, origin, place.last)
            return [], _Outcome.MORE
        items, behind = answer["Records"], answer.get("MillisBehindLatest", 0) > 0
        if items:
            place.last = items[-1]["SequenceNumber"]
        self._advance(shard, answer, at_end=len(items) < _AT_ONCE and not behind)
        found = [record for item in items for record in _records(shard, item)]
        return found, _Outcome.MORE if items or behind else _Outcome.NOTHING

    def _advance(self, shard: str, answer: Any, *, at_end: bool) -> None:
        following = answer.get("NextShardIterator")
        if following and not (self.existing and at_end):
            self.places[shard].iterator = following
            return
        del self.places[shard]
        if self.start.partition is not None:
            return
        for child in answer.get("ChildShards") or []:
            name = str(child["ShardId"])
            if name not in self._known:
                self._known.add(name)
                self.places[name] = self._place(name, BEGINNING)

    def _place(self, shard: str, origin: str, last: str = "") -> _Place:
        latest = origin == _LATEST and not last
        wanted = {"ShardIteratorType": _LATEST} if latest else iterator_arguments(origin, last)
        return _Place(origin, _iterator(self.admin, self.stream, shard, wanted), last)


def _iterator(admin: KinesisAdmin, stream: str, shard: str, place: dict[str, Any]) -> str:
    wanted = {"StreamName": stream, "ShardId": shard, **place}
    answer: Any = admin.call(f"reading stream {stream}", _TIMEOUT, lambda c: c.get_shard_iterator(**wanted))
    return str(answer["ShardIterator"])


def _get(admin: KinesisAdmin, stream: str, iterator: str) -> Any:
    """The next records of a shard; None where it must be asked again later, EXPIRED for an old iterator."""
    from botocore.exceptions import BotoCoreError, ClientError

    def run(client: Any) -> Any:
        try:
            return client.get_records(ShardIterator=iterator, Limit=_AT_ONCE)
        except (BotoCoreError, ClientError) as error:
            if is_throttled(error):
                return None
            if code_of(error) == EXPIRED:
                return EXPIRED
            raise

    try:
        return admin.call(f"reading stream {stream}", _TIMEOUT, run)
    except StoreError as error:
        if error.code != "entity-not-found":
            raise
        raise StoreError(
            "entity-not-found", f"Stream {stream} of store {admin.store} does not exist any more."
        ) from None


def _records(shard: str, item: Any) -> list[Record]:
    arrived = item.get("ApproximateArrivalTimestamp")
    timestamp = milliseconds(arrived) if arrived else None
    return [Record(key, value, shard, number, timestamp) for key, value, number in apart(item)]
