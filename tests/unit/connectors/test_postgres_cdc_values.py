"""Rows of PostgreSQL as JSON values and record keys, and the positions that Spark keeps."""

from __future__ import annotations

import json
import math
import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from exact_json import NotExact, members, read_value
from hypothesis import given
from hypothesis import strategies as st
from value_cases import UNDECODABLE, alike

from leatstream.connectors.postgres.cdc_position import Mark, Position, read_offset
from leatstream.connectors.postgres.cdc_values import declared, key_writer, row_writer, writer
from leatstream.connectors.postgres.pgoutput import UNCHANGED
from leatstream.errors import StoreError
from leatstream.model.types import parse_type

JSONB, JSONBS, JSONS = 3802, 3807, 199


@pytest.mark.parametrize(
    ("kind", "oid", "value", "expected"),
    [
        ("BIGINT", 20, b"-9223372036854775808", -(2**63)),
        ("BOOLEAN", 16, b"t", True),
        ("BOOLEAN", 16, b"f", False),
        ("DOUBLE", 701, b"1e+300", 1e300),
        ("DOUBLE", 701, b"-Infinity", "-Infinity"),
        ("DECIMAL(20, 2)", 1700, b"NaN", "NaN"),
        ("VARCHAR", 25, 'a "ü" \n\\'.encode(), 'a "ü" \n\\'),
        ("VARCHAR", 23, b"5", "5"),
        ("VARCHAR", JSONB, b'{"a": 1}', '{"a": 1}'),
        ("STRUCT<a INTEGER>", JSONB, b'{"a": 1}', {"a": 1}),
        ("ARRAY<INTEGER>", JSONB, b"[1, null]", [1, None]),
        ("ARRAY<STRUCT<a INTEGER>>", JSONB, b'[{"a": 1}]', [{"a": 1}]),
        ("ARRAY<STRUCT<a INTEGER>>", JSONBS, rb'{"{\"a\": 1}",NULL,"null"}', [{"a": 1}, None, None]),
        ("ARRAY<MAP<VARCHAR, VARCHAR>>", JSONS, rb'{"{\"a\" : \"b\\\"\"}"}', [{"a": 'b"'}]),
        ("ARRAY<ARRAY<STRUCT<a INTEGER>>>", JSONBS, rb'{{"{\"a\": 1}"},{NULL}}', [[{"a": 1}], [None]]),
        ("ARRAY<VARCHAR>", JSONBS, rb'{"{\"a\": 1}",2}', ['{"a": 1}', "2"]),
        ("BYTES", 17, b"\\x00ff", "AP8="),
        ("TIMESTAMP_LTZ", 1184, b"2026-01-02 03:04:05.6+00", "2026-01-02 03:04:05.6Z"),
        ("TIMESTAMP", 1114, b"2026-01-02 03:04:05", "2026-01-02 03:04:05"),
        # Nothing that a reader could take for another date.
        ("DATE", 1082, b"2026-01-02", "2026-01-02"),
        ("DATE", 1082, b"0044-03-15", "0044-03-15"),
        ("DATE", 1082, b"0044-03-15 BC", "out of range: 0044-03-15 BC"),
        ("DATE", 1082, b"10000-01-01", "out of range: 10000-01-01"),
        ("DATE", 1082, b"infinity", "out of range: infinity"),
        ("ARRAY<DATE>", 1182, b"{-infinity,2026-01-02}", ["out of range: -infinity", "2026-01-02"]),
        ("TIMESTAMP", 1114, b"0044-03-15 10:00:00 BC", "out of range: 0044-03-15 10:00:00 BC"),
        ("TIMESTAMP", 1114, b"294276-12-31 23:59:59", "out of range: 294276-12-31 23:59:59"),
        ("TIMESTAMP_LTZ", 1184, b"0044-03-15 10:00:00+00 BC", "out of range: 0044-03-15 10:00:00+00 BC"),
        ("TIMESTAMP_LTZ", 1184, b"10000-01-01 00:00:00+00", "out of range: 10000-01-01 00:00:00Z"),
        ("TIMESTAMP_LTZ", 1184, b"-infinity", "out of range: -infinity"),
        ("VARCHAR", 1082, b"0044-03-15 BC", "0044-03-15 BC"),
        # The text of a column that is boolean no more.
        ("BOOLEAN", 25, b"true", "true"),
        ("ARRAY<INTEGER>", 1007, b"{1,NULL,3}", [1, None, 3]),
        ("ARRAY<VARCHAR>", 1009, rb'{"a \"b\"\\",NULL,"NULL",c,""}', ['a "b"\\', None, "NULL", "c", ""]),
        ("ARRAY<ARRAY<BOOLEAN>>", 1000, b"{{t,f},{NULL,t}}", [[True, False], [None, True]]),
        ("ARRAY<INTEGER>", 1007, b"[0:1]={1,2}", [1, 2]),
        ("ARRAY<INTEGER>", 1007, b"{}", []),
        ("ARRAY<BYTES>", 1001, rb'{"\\x00ff"}', ["AP8="]),
    ],
)
def test_values(kind: str, oid: int, value: bytes, expected: object) -> None:
    assert json.loads(writer(parse_type(kind), oid)(value)) == expected


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    """The reader finds the record undecodable; another character would be another value."""
    assert writer(parse_type("VARCHAR"), 25)(b'caf\xe9 "x"') == b'"caf\xe9 \\"x\\""'


@pytest.mark.parametrize("broken", [b"", b"1", b"{1", b'{"a', b"{1}x", b"{{1}"])
def test_a_broken_array_is_no_array(broken: bytes) -> None:
    with pytest.raises(ValueError, match=r"array|element"):
        writer(parse_type("ARRAY<INTEGER>"), 1007)(broken)


@pytest.mark.parametrize("escaped", [b"abcdef", rb"\\x00", b""])
def test_bytes_that_are_not_in_hex_are_no_bytes(escaped: bytes) -> None:
    with pytest.raises(StoreError, match="another form than hex"):
        writer(parse_type("BYTES"), 17)(escaped)


@given(st.text().filter(lambda t: "\0" not in t))
def test_any_text_becomes_json(value: str) -> None:
    encoded = value.encode("utf-8", "surrogatepass")
    if value.encode("utf-8", "replace") == encoded:
        assert json.loads(writer(parse_type("VARCHAR"), 25)(encoded)) == value


WHOLE = {"SMALLINT": (21, 15), "INTEGER": (23, 31), "BIGINT": (20, 63)}
DAYS = st.dates().map(lambda day: (day.isoformat().encode(), day))
NO_DAYS = st.sampled_from([b"0044-03-15 BC", b"infinity", b"-infinity", b"10000-01-01", b"294276-12-31"])
TIMES = st.datetimes(min_value=datetime(1, 1, 1))


def moment(at: datetime) -> bytes:
    """As PostgreSQL writes it: no zeros behind the last digit of a second."""
    text = at.strftime(f"{at.year:04d}-%m-%d %H:%M:%S")
    return (text + (f".{at.microsecond:06d}".rstrip("0") if at.microsecond else "")).encode()


def number(value: float) -> bytes:
    """A double as PostgreSQL writes it."""
    words = {math.inf: "Infinity", -math.inf: "-Infinity"}
    return ("NaN" if math.isnan(value) else words.get(value) or repr(value)).encode()


def decimals(digits: int) -> st.SearchStrategy[Decimal]:
    bound = 10**digits - 1
    return st.integers(-bound, bound).map(lambda unscaled: Decimal(unscaled).scaleb(-3))


# Type, oid, PostgreSQL's text, and the value; UNDECODABLE where the column cannot have it.
SENT = st.one_of(
    *(
        st.integers(-(1 << bits), (1 << bits) - 1).map(lambda n, k=kind, o=oid: (k, o, b"%d" % n, n))
        for kind, (oid, bits) in WHOLE.items()
    ),
    st.integers(2**31, 2**63 - 1).map(lambda n: ("INTEGER", 20, b"%d" % n, UNDECODABLE)),
    st.booleans().map(lambda b: ("BOOLEAN", 16, b"t" if b else b"f", b)),
    st.floats().map(lambda f: ("DOUBLE", 701, number(f), f)),
    decimals(38).map(lambda d: ("DECIMAL(38, 3)", 1700, f"{d:f}".encode(), d)),
    decimals(12).map(
        lambda d: (
            "DECIMAL(12, 2)",
            1700,
            f"{d:f}".encode(),
            round(d, 2) if d == round(d, 2) else UNDECODABLE,
        )
    ),
    st.sampled_from([b"NaN", b"Infinity", b"-Infinity"]).map(
        lambda t: ("DECIMAL(9, 2)", 1700, t, UNDECODABLE)
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")).map(
        lambda t: ("VARCHAR", 25, t.encode(), t)
    ),
    st.binary().map(lambda b: ("BYTES", 17, b"\\x" + b.hex().encode(), b)),
    DAYS.map(lambda pair: ("DATE", 1082, *pair)),
    NO_DAYS.map(lambda text: ("DATE", 1082, text, UNDECODABLE)),
    TIMES.map(lambda at: ("TIMESTAMP", 1114, moment(at), at)),
    TIMES.map(lambda at: ("TIMESTAMP_LTZ", 1184, moment(at) + b"+00", at.replace(tzinfo=UTC))),
    st.tuples(NO_DAYS, st.sampled_from([("TIMESTAMP", 1114), ("TIMESTAMP_LTZ", 1184)])).map(
        lambda pair: (*pair[1], pair[0], UNDECODABLE)
    ),
    st.times().map(lambda t: ("TIME", 1083, t.isoformat().encode(), t.isoformat())),
)


@given(st.lists(SENT, min_size=1, max_size=8))
def test_what_a_table_sends_is_what_the_columns_have(sent: list[tuple[str, int, bytes, Any]]) -> None:
    """By the exact reading that every reader of JSON is held to."""
    columns = [(f"c{i}", kind) for i, (kind, *_) in enumerate(sent)]
    write = row_writer(declared(columns), [(f"c{i}", oid) for i, (_, oid, *_) in enumerate(sent)])
    raw = dict(members(write([text for *_, text, _ in sent]).decode()))
    for i, (kind, _, text, value) in enumerate(sent):
        try:
            found: Any = read_value(parse_type(kind), raw[f"c{i}"])
        except NotExact:
            found = UNDECODABLE
        assert alike(found, value), (kind, text)


def test_a_row_has_the_declared_columns_that_the_table_has() -> None:
    columns = declared([("b", "VARCHAR"), ("gone", "BIGINT"), ("a", "BIGINT"), ("c", "BIGINT")])
    write = row_writer(columns, [("a", 20), ("new", 25), ("b", 25), ("c", 20)])
    assert json.loads(write([b"1", b"x", b"y", UNCHANGED])) == {"b": "y", "a": 1, "c": None}


def test_keys() -> None:
    shape = [("a", 20), ("b", 25), ("d", 701)]
    assert key_writer(declared([("a", "BIGINT")]), shape, True)([b"-2", b"x", b"0"]) == struct.pack(">q", -2)
    assert key_writer(declared([("b", "VARCHAR")]), shape, True)([b"1", b"x", b"0"]) == b"x"
    assert key_writer(declared([("d", "DOUBLE")]), shape, True)([b"1", b"x", b"1.5"]) == struct.pack(
        ">d", 1.5
    )
    both = key_writer(declared([("b", "VARCHAR"), ("a", "BIGINT")]), shape, False)
    assert both([b"1", b"x", b"0"]) == b'{"b":"x","a":1}'
    with pytest.raises(ValueError, match="no value"):
        key_writer(declared([("a", "BIGINT")]), shape, True)([None, b"x", b"0"])


def test_a_mark_sees_what_was_over() -> None:
    mark = Mark("700:710:702,705", 100)
    assert [xid for xid in range(698, 713) if mark.sees(xid)] == [
        698,
        699,
        700,
        701,
        703,
        704,
        706,
        707,
        708,
        709,
    ]
    # The log has the lower 32 bits of a number only, which go round.
    turned = Mark(f"{2**32 - 2}:{2**32 + 3}:{2**32 + 1}", 100)
    assert [xid for xid in (2**32 - 3, 2**32 - 1, 0, 1, 2, 3, 4) if turned.sees(xid)] == [
        2**32 - 3,
        2**32 - 1,
        0,
        2,
    ]


def test_positions_are_read_back_and_forget_marks_that_are_passed() -> None:
    start = Position(50, complete=False)
    first = start.with_rows(2, ("b", "2"), Mark("7:7:", 60), complete=False)
    again = first.with_rows(2, ("d", "4"), Mark("7:7:", 60), complete=False)
    assert again.marks == (Mark("7:7:", 60, ("d", "4")),)
    assert again.rows == 4
    restarted = again.with_rows(0, None, Mark("9:9:", 80), complete=True)
    assert restarted.marks == (Mark("7:7:", 60, ("d", "4")), Mark("9:9:", 80, None))
    assert restarted.settled == 80
    for position in (start, first, again, restarted):
        offset = json.loads(json.dumps(position.as_offset("public.t")))
        assert read_offset(offset, "public.t") == position
    assert restarted.moved(80).marks
    assert restarted.moved(81) == Position(81, rows=4)
    assert restarted.moved(81).as_offset("t") == {"t": {"lsn": "0/51", "rows": 4}}
