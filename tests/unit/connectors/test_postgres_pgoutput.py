"""The replication protocol's messages, as PostgreSQL 15 sent them, and bytes that are none."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leatstream.connectors.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Change,
    Commit,
    MalformedMessage,
    RelationColumn,
    RelationShape,
    Truncate,
    decode,
    format_lsn,
    parse_lsn,
)

BEGIN = "420000000001927848000303cb068b53d5000002da"
TYPE = "59000040037075626c6963006d6f6f6400"
RELATION = (
    "52000040057075626c69630074006400040169640000000017ffffffff006e616d650000000019ffffffff"
    "006269670000000019ffffffff006d0000004003ffffffff"
)
COMMIT = "430000000000019278480000000001927878000303cb068b53d5"
TOASTED = "55000040054e00047400000001316e757400000003736164"
NEW_KEY = "55000040054b00047400000001316e6e6e4e00047400000001326e757400000003736164"
INSERT = "49000040054e00057400000001356e6e6e6e"
DELETE = "44000040054b00057400000001356e6e6e6e"
TRUNCATE = "54000000010000004005"
MESSAGE = "4d01000000000192a8f078000000000179"
TABLE = 16389


def of(text: str) -> object:
    return decode(bytes.fromhex(text))


def test_a_transaction() -> None:
    # The time is 2026-11-21 16:57:33.170645 UTC.
    assert of(BEGIN) == Begin(0x1927848, 1_795_280_253_170_645, 730)
    assert of(COMMIT) == Commit(0x1927848, 0x1927878, 1_795_280_253_170_645)
    columns = (("id", 23, True), ("name", 25, False), ("big", 25, False), ("m", 0x4003, False))
    expected = RelationShape(TABLE, "public", "t", "d", tuple(RelationColumn(*c) for c in columns))
    assert of(RELATION) == expected
    assert of(TYPE) is None
    assert of(MESSAGE) is None


def test_changes() -> None:
    assert of(INSERT) == Change("c", TABLE, None, None, [b"5", None, None, None, None])
    assert of(TOASTED) == Change("u", TABLE, None, None, [b"1", None, UNCHANGED, b"sad"])
    assert of(NEW_KEY) == Change("u", TABLE, [b"1", None, None, None], None, [b"2", None, UNCHANGED, b"sad"])
    assert of(DELETE) == Change("d", TABLE, [b"5", None, None, None, None], None, None)
    whole = bytes.fromhex(DELETE).replace(b"K", b"O", 1)
    assert decode(whole) == Change("d", TABLE, None, [b"5", None, None, None, None], None)
    assert of(TRUNCATE) == Truncate((TABLE,))


@pytest.mark.parametrize("text", [BEGIN, RELATION, COMMIT, TOASTED, NEW_KEY, INSERT, DELETE, TRUNCATE])
def test_a_message_that_ends_early_or_late_is_refused(text: str) -> None:
    whole = bytes.fromhex(text)
    for end in range(len(whole)):
        with pytest.raises(MalformedMessage):
            decode(whole[:end])
    with pytest.raises(MalformedMessage):
        decode(whole + b"\0")


@given(
    st.binary(max_size=80)
    | st.builds(bytes.__add__, st.sampled_from([b"I", b"U", b"D", b"R", b"T"]), st.binary())
)
def test_garbage_gives_one_kind_of_error(data: bytes) -> None:
    try:
        decode(data)
    except MalformedMessage as error:
        assert str(error)  # noqa: PT017 - it may be a message as well


def test_a_length_beyond_the_message_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="longer than its message"):
        decode(b"I" + struct.pack(">IcHcI", 1, b"N", 1, b"t", 2**31))


@given(st.integers(0, 2**64 - 1))
def test_places_in_the_log_are_read_back(lsn: int) -> None:
    assert parse_lsn(format_lsn(lsn)) == lsn


def test_a_place_as_postgresql_writes_it() -> None:
    assert format_lsn(0x16B374D848) == "16/B374D848"
    with pytest.raises(ValueError, match="no place"):
        parse_lsn("16")
