"""Records of the Kinesis Producer Library, taken apart."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kinesis_aggregate import aggregate

from leatstream.connectors.kinesis.aggregates import apart
from leatstream.connectors.kinesis.source import batch_of

MAGIC = b"\xf3\x89\x9a\xc2"


def record(data: bytes, number: str = "4955", key: str = "outer") -> dict[str, Any]:
    return {"PartitionKey": key, "Data": data, "SequenceNumber": number}


@given(st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=200)), min_size=1, max_size=20))
def test_every_record_comes_with_its_key(records: list[tuple[str, bytes]]) -> None:
    wanted = [(key.encode(), data, f"4955.{i}") for i, (key, data) in enumerate(records)]
    assert apart(record(aggregate(records))) == wanted


def _signed(message: bytes) -> bytes:
    return MAGIC + message + hashlib.md5(message, usedforsecurity=False).digest()


WHOLE = aggregate([("k", b"one"), ("l", b"two")])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'{"id": 1}',
        MAGIC,
        MAGIC + b"x" * 16,
        MAGIC + b"x" * 40,
        WHOLE[:-1],
        WHOLE[:-1] + bytes([WHOLE[-1] ^ 1]),
        _signed(b"\x1a\x04\x08\x07\x1a\x00"),  # a key that is not in the table
        _signed(b"\x1a\x7f"),  # longer than the message
        _signed(b"\x18\x05"),  # a number for a record
        _signed(b"\x0a\x01k\x1a\x02\x08\x00"),  # without data
        _signed(b"\xff" * 30),
        _signed(b"\x0b"),  # a group
    ],
)
def test_what_is_no_aggregate_is_taken_as_it_is(data: bytes) -> None:
    assert apart(record(data)) == [(b"outer", data, "4955")]


@given(st.binary(max_size=60))
def test_other_messages_raise_nothing(message: bytes) -> None:
    apart(record(_signed(message)))


def test_a_batch_has_a_row_for_each() -> None:
    arrived = datetime(2026, 1, 2, tzinfo=UTC)
    whole = record(WHOLE) | {"ApproximateArrivalTimestamp": arrived}
    found = batch_of("shard", [whole, record(b"plain", "4956")]).to_pylist()
    assert [(r["key"], r["value"], r["sequence_number"], r["timestamp"]) for r in found] == [
        (b"k", b"one", "4955.0", arrived),
        (b"l", b"two", "4955.1", arrived),
        (b"outer", b"plain", "4956", None),
    ]
