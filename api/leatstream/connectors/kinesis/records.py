"""Reading a stream's records for people: all shards in turn, children once their parents are read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from leatstream.connectors.aws.errors import code_of, is_throttled
from leatstream.connectors.entities import Record
from leatstream.connectors.kinesis.admin import KinesisAdmin
from leatstream.connectors.kinesis.aggregates import apart
from leatstream.connectors.kinesis.shards import BEGINNING, EXPIRED, list_shards
from leatstream.errors import StoreError

_PAUSE = 0.25  # seconds: a shard may be asked five times a second, by everybody together
_TIMEOUT = 5.0


def records(
    admin: KinesisAdmin, stream: str, from_beginning: bool, limit: int | None, idle_timeout: float | None
) -> Iterator[Record | None]:
    """Records of all shards as they come; None now and then while there are none.

    Silence counts towards ``idle_timeout`` from the last record on, and only while every shard has answered
    that it has nothing for now.

    Raises:
        StoreError: entity-not-found or store-auth-failed, also while reading.
    """
    iterators = _iterators(admin, stream, from_beginning)
    last: dict[str, str | None] = dict.fromkeys(iterators)
    seen, quiet = 0, time.monotonic()
    while True:
        got = False
        for shard in list(iterators):
            answer = _get(admin, stream, iterators[shard])
            if answer == EXPIRED:
                # The reader has paused for minutes.
                iterators[shard] = _iterator(admin, stream, shard, "AFTER_SEQUENCE_NUMBER", last[shard])
            if answer is None or answer == EXPIRED:
                continue
            for item in answer["Records"]:
                got, last[shard] = True, item["SequenceNumber"]
                for record in _records(shard, item):
                    yield record
                    seen += 1
                    if limit is not None and seen >= limit:
                        return
            behind = not answer["Records"] and answer.get("MillisBehindLatest", 0) > 0
            got = got or behind
            _advance(admin, stream, iterators, last, shard, answer)
        now = time.monotonic()
        if got:
            quiet = now
            continue
        if idle_timeout is not None and now - quiet >= idle_timeout:
            return
        yield None
        time.sleep(_PAUSE)


def record_at(admin: KinesisAdmin, stream: str, shard: str, number: str, timeout: float) -> Record | None:
    """The record with a sequence number; of an aggregate the one at the place behind the point."""
    end = time.monotonic() + timeout
    whole = number.partition(".")[0]
    iterator: str | None = _iterator(admin, stream, shard, "AT_SEQUENCE_NUMBER", whole)
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


def _iterators(admin: KinesisAdmin, stream: str, from_beginning: bool) -> dict[str, str]:
    shards = admin.call(f"listing the shards of {stream}", _TIMEOUT, lambda c: list_shards(c, stream)[0])
    if from_beginning:
        # Closed shards too, oldest first; a child may be read beside its parent: people sort by time.
        return {s: _iterator(admin, stream, s, BEGINNING) for s in shards}
    return {s: _iterator(admin, stream, s, "LATEST") for s, shard in shards.items() if shard.open}


def _iterator(admin: KinesisAdmin, stream: str, shard: str, kind: str, after: str | None = None) -> str:
    if kind == "AFTER_SEQUENCE_NUMBER" and after is None:
        kind = BEGINNING
    wanted = {"StreamName": stream, "ShardId": shard, "ShardIteratorType": kind}
    wanted |= {"StartingSequenceNumber": after} if after is not None else {}
    answer: Any = admin.call(f"reading stream {stream}", _TIMEOUT, lambda c: c.get_shard_iterator(**wanted))
    return str(answer["ShardIterator"])


def _get(admin: KinesisAdmin, stream: str, iterator: str) -> Any:
    """The next records of a shard; None where it must be asked again later, EXPIRED for an old iterator."""
    from botocore.exceptions import BotoCoreError, ClientError

    def run(client: Any) -> Any:
        try:
            return client.get_records(ShardIterator=iterator, Limit=1000)
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


def _advance(
    admin: KinesisAdmin,
    stream: str,
    iterators: dict[str, str],
    last: dict[str, str | None],
    shard: str,
    answer: Any,
) -> None:
    """Go on in the shard, or, where it has ended, in its children that are not read yet."""
    following = answer.get("NextShardIterator")
    if following:
        iterators[shard] = following
        return
    del iterators[shard]
    for child in answer.get("ChildShards") or []:
        if child["ShardId"] not in last:
            last[child["ShardId"]] = None
            iterators[child["ShardId"]] = _iterator(admin, stream, child["ShardId"], BEGINNING)


def _records(shard: str, item: Any) -> list[Record]:
    arrived = item.get("ApproximateArrivalTimestamp")
    timestamp = int(arrived.timestamp() * 1000) if arrived else None
    return [Record(key, value, shard, number, timestamp) for key, value, number in apart(item)]
