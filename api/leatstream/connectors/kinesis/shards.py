"""Where a job is in a stream: shards, positions, offsets, and the walk that moves them on.

An offset is ``{"start": <start>, "made": <time>, <stream>: {<shard>: <position>}}``, all text. ``start`` is
TRIM_HORIZON or ``@<epoch milliseconds>``; ``made`` is when the stream was created; a position is the sequence
number of the last record taken ("" before the first), with ``!`` behind it once the shard has ended. A shard
that splits or merges is read to its end before its children come into the offset, so that records of one key
keep their order.

Kinesis cannot tell the newest sequence number of a shard; only reading finds it. So the walk reads the
records themselves and hands them on (``keep``), and nothing is read twice unless a batch is repeated.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

from leatstream.connectors.aws.errors import code_of, is_throttled

BEGINNING = "TRIM_HORIZON"
EXPIRED = "ExpiredIteratorException"
GET_LIMIT = 10_000  # records that one answer may hold
START, MADE = "start", "made"
_ENDED = "!"
_GAP = 0.2  # seconds between two looks at a shard: it may be asked five times a second
_BUDGET = 2.0  # seconds that one walk may take; what is left comes with the next batch
_LONGEST_WAIT = 5.0
_SKEW = 1.5  # seconds; the server tells its time to the second only

Keep = Callable[[str, str, str, Sequence[Sequence[Mapping[str, Any]]]], None]


class Gone(Exception):
    """The stream, a shard or records in it are not there any more."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard as Kinesis lists it."""

    parents: tuple[str, ...]
    open: bool


def is_ended(position: str) -> bool:
    """Whether the shard was read to its end."""
    return position.endswith(_ENDED)


def sequence(position: str) -> str:
    """The last record's sequence number; "" before the first."""
    return position.removesuffix(_ENDED)


def list_shards(client: Any, stream: str) -> tuple[dict[str, Shard], float | None]:
    """Every shard that still has records or may get some, and the server's time (epoch seconds)."""
    found: dict[str, Shard] = {}
    wanted: dict[str, Any] = {"StreamName": stream}
    while True:
        answer = client.list_shards(**wanted)
        for item in answer["Shards"]:
            parents = (item.get("ParentShardId"), item.get("AdjacentParentShardId"))
            ended = "EndingSequenceNumber" in item["SequenceNumberRange"]
            found[item["ShardId"]] = Shard(tuple(p for p in parents if p), not ended)
        if not answer.get("NextToken"):
            break
        wanted = {"NextToken": answer["NextToken"]}
    date = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    return found, parsedate_to_datetime(date).timestamp() if date else None


def present(server: float | None) -> float:
    """The time, epoch seconds: the server's, as ``list_shards`` gives it, where this machine's is another."""
    here = time.time()
    return here if server is None or abs(here - server) <= _SKEW else server


def creation(summary: Mapping[str, Any]) -> str:
    """When a stream was made (epoch milliseconds): what tells it from a later one of the same name."""
    return str(round(summary["StreamCreationTimestamp"].timestamp() * 1000))


def iterator_arguments(start: str, after: str) -> dict[str, Any]:
    """Arguments of GetShardIterator for what comes after a sequence number, or from the start on."""
    if after:
        return {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": after}
    if start == BEGINNING:
        return {"ShardIteratorType": BEGINNING}
    return {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": int(start[1:]) / 1000}


@dataclass(slots=True)
class _Cursor:
    """What is remembered of a shard between two walks; all of it can be found again."""

    position: str | None = None
    iterator: str | None = None
    due: float = 0.0
    refusals: int = 0


@dataclass(slots=True)
class Walk:
    """Moves an offset on.

    Attributes:
        client: boto3 client.
        stream: its name.
        keep: takes the records between two positions of a shard.
        now, sleep: the clock.
    """

    client: Any
    stream: str
    keep: Keep
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _cursors: dict[str, _Cursor] = field(default_factory=dict)
    _shards: dict[str, Shard] | None = None

    def initial(self, starting_position: str, starting_ms: int | None) -> dict[str, Any]:
        """The first offset: ``earliest``, ``latest`` or ``timestamp`` (epoch milliseconds)."""
        shards, server = list_shards(self.client, self.stream)
        made = self._made()
        if starting_position == "earliest":
            return {START: BEGINNING, MADE: made, self.stream: _roots(shards)}
        if starting_position == "timestamp":
            return {START: f"@{starting_ms}", MADE: made, self.stream: _roots(shards)}
        # Replayable, which Kinesis's own LATEST is not. What closed before now has nothing to give.
        ended = {s: "" if shard.open else _ENDED for s, shard in shards.items()}
        return {START: f"@{int(present(server) * 1000)}", MADE: made, self.stream: ended}

    def advance(self, offset: Mapping[str, Any], most: int | None) -> dict[str, Any]:
        """The offset after the records that are there now, at most ``most`` of them.

        Raises:
            Gone: a shard of the offset is not there any more, or the stream is another one.
        """
        positions = dict(offset[self.stream])
        if self._shards is None:
            if self._made() != offset[MADE]:
                raise Gone(f"stream {self.stream} was deleted and created again")
            self._refresh(positions)
        self._admit(positions)
        active = [s for s, p in positions.items() if not is_ended(p)]
        if active:
            # Spark asks without a pause; so wait here rather than answer "nothing" a hundred times a second.
            first = min(self._cursor(s).due for s in active)
            self.sleep(max(0.0, min(first - self.now(), _GAP)))
            quota = None if most is None else max(1, most // len(active))
            with ThreadPoolExecutor(min(8, len(active)), "shard") as pool:
                moved = pool.map(lambda s: self._shard(offset[START], s, positions[s], quota), active)
                positions.update(zip(active, moved, strict=True))
            if any(is_ended(positions[s]) for s in active):
                self._refresh(positions)
                self._admit(positions)
        return {START: offset[START], MADE: offset[MADE], self.stream: positions}

    def _made(self) -> str:
        answer = self.client.describe_stream_summary(StreamName=self.stream)
        return creation(answer["StreamDescriptionSummary"])

    def _cursor(self, shard: str) -> _Cursor:
        return self._cursors.setdefault(shard, _Cursor())

    def _refresh(self, positions: dict[str, str]) -> None:
        """List the shards; forget those that have ended and expired."""
        self._shards, _ = list_shards(self.client, self.stream)
        for shard in [s for s in positions if s not in self._shards]:
            if not is_ended(positions[shard]):
                raise Gone(
                    f"shard {shard} of stream {self.stream} is not there any more: its records have expired, "
                    "or the stream was deleted and created again"
                )
            del positions[shard]
            self._cursors.pop(shard, None)

    def _admit(self, positions: dict[str, str]) -> None:
        """Take in the shards whose parents are read to their end, or are not kept any more."""
        for shard, found in (self._shards or {}).items():
            parents = [p for p in found.parents if p in (self._shards or {})]
            if shard not in positions and all(is_ended(positions.get(p, "")) for p in parents):
                positions[shard] = ""

    def _shard(self, start: str, shard: str, position: str, quota: int | None) -> str:
        """Read on in one shard; hands over what was read and returns the new position."""
        cursor, rows = self._cursor(shard), 0
        taken: list[Sequence[Mapping[str, Any]]] = []
        end, at = self.now() + _BUDGET, position
        while (quota is None or rows < quota) and self.now() < end:
            if cursor.due > self.now():
                if not taken or cursor.due >= end:
                    break
                self.sleep(cursor.due - self.now())
            answer = self._get(cursor, start, shard, at, GET_LIMIT if quota is None else quota - rows)
            if answer is None:
                continue
            records = answer["Records"]
            if records:
                taken.append(records)
                rows, at = rows + len(records), records[-1]["SequenceNumber"]
            cursor.iterator, cursor.position = answer.get("NextShardIterator"), at
            if not cursor.iterator:
                at += _ENDED
                break
            if len(records) < GET_LIMIT and not answer.get("MillisBehindLatest"):
                # Only the end of this walk: an answer with nothing may stand before more, the next one looks.
                break
        if at != position:
            self.keep(shard, position, at, taken)
        return at

    def _get(self, cursor: _Cursor, start: str, shard: str, at: str, most: int) -> Any:
        """One answer, or None where it must be tried again when the cursor is due."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            if cursor.iterator is None or cursor.position != at:
                place = iterator_arguments(start, at)
                found = self.client.get_shard_iterator(StreamName=self.stream, ShardId=shard, **place)
                cursor.iterator, cursor.position = found["ShardIterator"], at
            answer = self.client.get_records(ShardIterator=cursor.iterator, Limit=min(most, GET_LIMIT))
        except (BotoCoreError, ClientError) as error:
            if code_of(error) == EXPIRED:
                cursor.iterator = None
                return None
            if not is_throttled(error):
                raise
            cursor.refusals += 1
            cursor.due = self.now() + _pause(cursor.refusals)
            return None
        cursor.refusals, cursor.due = 0, self.now() + _GAP
        return answer


def reread(
    client: Any, stream: str, shard: str, start: str, before: str, after: str, patience: float = 60.0
) -> Iterator[Sequence[Mapping[str, Any]]]:
    """The records between two positions of a shard once more, the same ones as the first time.

    Raises:
        Gone: some of them are not there any more.
        botocore's own errors, when AWS refuses or stays away for ``patience`` seconds.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    last = sequence(after)
    if not last or last == sequence(before):
        return
    at, iterator, refusals, end = sequence(before), None, 0, time.monotonic() + patience
    while True:
        try:
            if iterator is None:
                place = iterator_arguments(start, at)
                found = client.get_shard_iterator(StreamName=stream, ShardId=shard, **place)
                iterator = found["ShardIterator"]
            answer = client.get_records(ShardIterator=iterator, Limit=GET_LIMIT)
        except (BotoCoreError, ClientError) as error:
            if code_of(error) != EXPIRED and (not is_throttled(error) or time.monotonic() >= end):
                raise
            refusals += 1
            iterator = None if code_of(error) == EXPIRED else iterator
            time.sleep(_pause(refusals))
            continue
        wanted = [r for r in answer["Records"] if int(r["SequenceNumber"]) <= int(last)]
        if wanted:
            at, end = wanted[-1]["SequenceNumber"], time.monotonic() + patience
            yield wanted
        if at == last:
            return
        iterator, refusals = answer.get("NextShardIterator"), 0
        beyond = len(wanted) < len(answer["Records"])
        if beyond or not iterator or (not wanted and time.monotonic() >= end):
            raise Gone(
                f"records of shard {shard} of stream {stream} up to {last} are not there any more: they have "
                "expired, or the stream was deleted and created again"
            )
        time.sleep(_GAP)


def _roots(shards: Mapping[str, Shard]) -> dict[str, str]:
    return {s: "" for s, found in shards.items() if not any(p in shards for p in found.parents)}


def _pause(refusals: int) -> float:
    """Seconds to wait after so many refusals on end."""
    return float(min(_LONGEST_WAIT, _GAP * 2 ** min(refusals, 8))) * random.uniform(0.5, 1.0)
