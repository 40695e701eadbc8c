"""Single records as rows: the same verdict as the jobs', in the same words."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from leatstream.formats.event_times import time_fault
from leatstream.formats.plain_values import Undecodable
from leatstream.formats.record_rows import PACKED, RowReader, plain_value
from leatstream.formats.shown_values import shown
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, SourceSpec, StoreRef

NOW = 1_800_000_000_000


def source(*columns: tuple[str, str], **more: Any) -> SourceSpec:
    made = [
        ColumnSpec(name=name, type=kind.removesuffix("!"), not_null=kind[-1] == "!") for name, kind in columns
    ]
    store = StoreRef(name="k", kind="kafka", config={})
    kept = {"view": "v", "relation": "d.s.r", "entity": "t", "value_format": "json", **more}
    return SourceSpec(store=store, columns=made, **kept)


def row(spec: SourceSpec, value: bytes | None, key: bytes | None = None, headers: Any = ()) -> Any:
    return RowReader(spec, spec.value_format, None, True).row(key, value, headers, NOW, NOW)


def why(spec: SourceSpec, value: bytes | None, key: bytes | None = None, headers: Any = ()) -> str:
    with pytest.raises(Undecodable) as caught:
        row(spec, value, key, headers)
    return str(caught.value)


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        ("VARCHAR", "ü".encode(), "ü"),
        ("SMALLINT", b"\xff\xfe", -2),
        ("BIGINT", b"\x7f" + b"\xff" * 7, 2**63 - 1),
        ("FLOAT", b"\x3d\xcc\xcc\xcd", 0.10000000149011612),
        ("BOOLEAN", b"\1", True),
        ("BYTES", b"\0\xff", b"\0\xff"),
    ],
)
def test_plain_values(kind: str, raw: bytes, value: Any) -> None:
    assert plain_value(raw, kind) == value


@pytest.mark.parametrize(
    ("kind", "raw", "says"),
    [
        ("VARCHAR", b"\xff", "its bytes are no text in UTF-8"),
        ("INTEGER", b"\0\1", "its bytes are no INTEGER"),
        ("BOOLEAN", b"\2", "its bytes are no BOOLEAN"),
        ("DOUBLE", b"3.5", "its bytes are no DOUBLE"),
    ],
)
def test_bytes_that_are_none(kind: str, raw: bytes, says: str) -> None:
    with pytest.raises(Undecodable, match=says):
        plain_value(raw, kind)


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        (
            "INTEGER",
            b"2147483648",
            "column c is INTEGER, the record has the number 2147483648 (it is out of range)",
        ),
        ("DECIMAL(5, 2)", b'"19,90"', 'column c is DECIMAL(5, 2), the record has the string "19,90"'),
        ("VARCHAR!", b"null", "column c is NOT NULL, and is null in the record"),
        ("INTEGER", b"1.0", "column c is INTEGER, the record has the number 1.0 (it is no whole number)"),
    ],
)
def test_json_that_is_no_row(kind: str, value: bytes, says: str) -> None:
    assert why(source(("c", kind)), b'{"c":%s}' % value) == says


def test_what_is_packed_is_not_unpacked() -> None:
    assert why(source(("c", "VARCHAR")), b"\x1f\x8b\x08\0") == PACKED


def test_the_key_alone_holds_a_column() -> None:
    spec = source(("id", "INTEGER!"), ("n", "BIGINT"), key_format="json", key_only=["id"])
    assert row(spec, b'{"n":1}', b'{"id":7}') == {"n": 1, "id": 7}
    assert why(spec, b'{"n":1}', b"7") == "of its key, it is JSON, but not one object"
    assert why(spec, b'{"n":1}', None) == "of its key, it is empty"


def test_a_primitive_key_that_is_missing() -> None:
    spec = source(("id", "INTEGER!"), ("n", "BIGINT"), key_format="primitive", key_only=["id"])
    assert why(spec, b'{"n":1}') == "column id is NOT NULL, and is null in the record"


def test_headers_fill_their_column() -> None:
    spec = source(("n", "BIGINT"), ("h", "MAP<VARCHAR, VARCHAR>"), headers_column="h")
    assert row(spec, b'{"n":1}', headers=(("a", b"1"), ("a", b"2"), ("b", None)))["h"] == {
        "a": "2",
        "b": None,
    }
    assert row(spec, b'{"n":1}')["h"] is None
    assert why(spec, b'{"n":1}', headers=(("a", b"\xff"),)) == "a header, read as h, is no text in UTF-8"


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        ("BIGINT", NOW + 1, None),
        ("BIGINT", NOW // 1000, "looks like seconds"),
        ("BIGINT", NOW * 1000, "looks like microseconds or nanoseconds"),
        ("BIGINT", -(10**17), "it has no event time"),
        ("BIGINT", NOW + 86_400_001, "is more than 86400000 ms ahead"),
        ("TIMESTAMP", (NOW + 86_400_001) * 1000, "is more than 86400000 ms ahead"),
        ("DATE", 1, None),
        ("VARCHAR", "2026-01-31T13:05:00Z", None),
        ("VARCHAR", "yesterday", "it has no event time"),
        ("BIGINT", None, None),
    ],
)
def test_event_times_that_cannot_be_meant(kind: str, value: Any, says: str | None) -> None:
    spec = source(("ts", kind), timestamp="ts", max_ahead_ms=86_400_000)
    found = time_fault(spec, value, NOW, NOW)
    assert found is None if says is None else says in str(found)


def test_every_time_can_be_meant_without_a_bound() -> None:
    spec = source(("ts", "BIGINT"), timestamp="ts")
    assert time_fault(spec, 1, NOW, NOW) is None


def test_a_text_that_is_no_event_time_is_named() -> None:
    spec = source(("ts", "VARCHAR"), timestamp="ts")
    says = "(it is the event time of the relation, and holds none)"
    assert why(spec, b'{"ts":"soon"}') == f'column ts is VARCHAR, the record has the string "soon" {says}'


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("DECIMAL(38, 2)", Decimal("123456789012345678901234567890.5"), "123456789012345678901234567890.50"),
        ("FLOAT", 0.10000000149011612, 0.1),
        ("DOUBLE", float("-inf"), "-Infinity"),
        ("DOUBLE", float("nan"), "NaN"),
        ("BYTES", b"\0\1", "AAE="),
        ("DATE", 1, "1970-01-02"),
        ("TIMESTAMP", 1_500_000, "1970-01-01 00:00:01.5"),
        ("TIMESTAMP_LTZ", 0, "1970-01-01 00:00:00Z"),
        ("MAP<VARCHAR, DECIMAL(3, 1)>", [("a", Decimal(1))], {"a": "1.0"}),
        ("STRUCT<a DATE, b ARRAY<DOUBLE>>", {"a": None, "b": [1.5]}, {"a": None, "b": [1.5]}),
    ],
)
def test_values_are_shown_without_loss(kind: str, value: Any, text: Any) -> None:
    assert shown(value, parse_type(kind)) == text
