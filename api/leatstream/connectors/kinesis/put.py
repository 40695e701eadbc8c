"""Writing records: in large requests, each record until it is taken, in the order of its key."""

from __future__ import annotations

import hashlib
import random
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from leatstream.connectors.aws.errors import THROTTLED, code_of, is_throttled, said_of
from leatstream.errors import StoreError

MOST_RECORDS = 500
MOST_BYTES = 5 * 1024 * 1024
_LONGEST_KEY = 256  # UTF-16 units: where characters are counted, it is no more of them
_TOO_LARGE = re.compile(r"\.data' failed to satisfy constraint: [^;]*must have length")
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0  # seconds
_PATIENCE = 120.0  # seconds without one record taken
_LATER = THROTTLED | {"InternalFailure"}

Entry = dict[str, Any]


def partition_key(key: bytes | None) -> str:
    """Kinesis's key for a record's: the text itself where it can be one, else a digest of it.

    Records without a key are spread over the shards.
    """
    if not key:
        return uuid.uuid4().hex
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return hashlib.sha256(key).hexdigest()
    fits = len(text.encode("utf-16-le")) // 2 <= _LONGEST_KEY
    return text if fits else hashlib.sha256(key).hexdigest()


def check_kept(stream: str, key: bytes | None) -> None:
    """Refuse a key that Kinesis does not keep as it is, of a record that has nothing else.

    Raises:
        StoreError: store-rejected.
    """
    if key is None or partition_key(key).encode() != key:
        raise StoreError(
            "store-rejected",
            f"A row of stream {stream} cannot be taken back: an empty record tells which by its key, and "
            f"Kinesis keeps none that is empty, NULL or longer than {_LONGEST_KEY} characters.",
            hint="Give it a shorter key; with 'key.format' = 'json' it may be empty or NULL.",
        )


def requests(records: Iterable[tuple[bytes | None, bytes]]) -> Iterator[list[Entry]]:
    """Cut records (key, value) into lists that fit into one request."""
    entries: list[Entry] = []
    size = 0
    for key, value in records:
        name = partition_key(key)
        entry: Entry = {"PartitionKey": name, "Data": value}
        length = size_of(entry)
        if entries and (len(entries) == MOST_RECORDS or size + length > MOST_BYTES):
            yield entries
            entries, size = [], 0
        entries.append(entry)
        size += length
    if entries:
        yield entries


def size_of(entry: Entry) -> int:
    """Bytes that a record counts with: its key and value."""
    return len(entry["Data"]) + len(entry["PartitionKey"].encode())


def put(
    client: Any,
    stream: str,
    entries: Sequence[Entry],
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    patience: float = _PATIENCE,
) -> int:
    """Write one request's records; returns when Kinesis has taken all of them.

    A record that was not taken is sent again, together with the records of the same key that came after it
    and were taken: they then stand twice, but the key's last record is the last one. Nothing else repeats.

    Returns:
        How many records were sent, repetitions included.

    Raises:
        StoreError: store-rejected, for records that it never takes; store-unreachable, when it takes none for
            ``patience`` seconds.
        botocore's own errors, for what waiting does not cure.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    left, refusals, sent, end = list(entries), 0, 0, now() + patience
    while True:
        try:
            answer = client.put_records(StreamName=stream, Records=left)
        except (BotoCoreError, ClientError) as error:
            if _is_too_large(error):
                raise _too_large(stream, left) from None
            if not is_throttled(error) or now() >= end:
                raise
            results: list[Any] = []
        else:
            sent, results = sent + len(left), answer["Records"]
            codes = {r["ErrorCode"] for r in results if r.get("ErrorCode")}
            if not codes:
                return sent
            if codes - _LATER:
                raise StoreError(
                    "store-rejected", f"Kinesis refused records for stream {stream}: {min(codes - _LATER)}."
                )
            if any(not r.get("ErrorCode") for r in results):
                refusals, end = 0, now() + patience
            left = _again(left, results)
        if now() >= end:
            raise StoreError(
                "store-unreachable",
                f"Stream {stream} took no record for {patience:g} s: its shards are written to their limit.",
                hint="Give it more shards.",
            )
        refusals += 1
        wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** min(refusals - 1, 8))
        sleep(wait * random.uniform(0.5, 1.0))


def _is_too_large(error: Exception) -> bool:
    # "Value at 'records.1.member.data' failed to satisfy constraint: Member must have length less than …"
    return code_of(error) == "ValidationException" and _TOO_LARGE.search(said_of(error)) is not None


def _too_large(stream: str, entries: Sequence[Entry]) -> StoreError:
    largest = max(map(size_of, entries))
    return StoreError(
        "store-rejected",
        f"Stream {stream} does not take a record as large as {largest} bytes, key included.",
        hint="Kinesis takes 1 MiB, up to 10 MiB where the stream is told so; or write less into a record.",
    )


def _again(sent: Sequence[Entry], results: Sequence[Any]) -> list[Entry]:
    """Failed entries, and later ones of a failed entry's key, in their order."""
    behind: set[str] = set()
    left: list[Entry] = []
    for entry, result in zip(sent, results, strict=True):
        if result.get("ErrorCode") or entry["PartitionKey"] in behind:
            behind.add(entry["PartitionKey"])
            left.append(entry)
    return left
