"""What files hold, as records."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leatstream.connectors.s3.files import Layout, Row, rows


def read(data: bytes, layout: Layout, name: str = "f") -> list[Row]:
    return [row for chunk in rows(name, io.BytesIO(data), layout) for row in chunk]


def csv(text: str | bytes, kinds: dict[str, str], **more: Any) -> list[Any]:
    data = text if isinstance(text, bytes) else text.encode()
    found = read(data, Layout("csv", kinds, **more))
    return [json.loads(row.value) if row.value.startswith(b"{") else row.value for row in found]


KINDS = {"id": "BIGINT", "name": "VARCHAR", "ok": "BOOLEAN", "at": "TIMESTAMP", "tags": "ARRAY"}


def test_csv_takes_columns_by_name() -> None:
    text = 'name,unknown,id,ok,at,tags\n"a,\nb",x,1,TRUE,2026-01-01 00:00:00,"[1, ""two""]"\n,,,,,\n""," ", 7 ,,,\n'
    assert csv(text, KINDS) == [
        {"id": 1, "name": "a,\nb", "ok": True, "at": "2026-01-01 00:00:00", "tags": [1, "two"]},
        {},
        {"id": 7, "name": ""},
    ]


def test_csv_without_header_and_with_another_delimiter() -> None:
    found = csv("1;x\n2;y\n", {"id": "BIGINT", "name": "VARCHAR"}, header=False, delimiter=";")
    assert found == [{"id": 1, "name": "x"}, {"id": 2, "name": "y"}]


def test_csv_of_which_nothing_is_known() -> None:
    assert csv("id,name,ok\n1,x,true\n2.5,,no\n", {}) == [
        {"id": 1, "name": "x", "ok": True},
        {"id": 2.5, "ok": "no"},
    ]
    assert csv("", {}) == []


def test_what_does_not_fit_stays_undecodable() -> None:
    found = csv(b"id,name\nfive,x\n1,\xff\n1\n3,z\n", {"id": "BIGINT", "name": "VARCHAR"})
    assert {"id": "five", "name": "x"} in found
    assert {"id": 3, "name": "z"} in found
    assert b"a value is not UTF-8" in found
    assert b"a row of 1 fields, not 2" in found


@pytest.mark.parametrize("text", ["", "id,name\n"])
def test_csv_files_without_rows(text: str) -> None:
    assert csv(text, {"id": "BIGINT", "name": "VARCHAR"}) == []


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1.50", "DECIMAL", 1.5),
        ("1e3", "DOUBLE", 1000.0),
        ("NaN", "DOUBLE", "NaN"),
        ("007", "BIGINT", "007"),
        ("+1", "BIGINT", "+1"),
        ("yes", "BOOLEAN", "yes"),
        ("1", "VARCHAR", "1"),
        ('"{""a"": 1}"', "STRUCT", {"a": 1}),
        ("{a", "MAP", "{a"),
    ],
)
def test_csv_values(text: str, kind: str, value: Any) -> None:
    assert csv(f"v\n{text}\n", {"v": kind}) == [{"v": value}]


def test_parquet_keeps_every_value() -> None:
    table = pa.table(
        {
            "n": pa.array([2**62, None]),
            "d": pa.array([Decimal("1.10"), None], pa.decimal128(20, 2)),
            "f": pa.array([float("nan"), 0.1]),
            "s": pa.array(["ä", ""]),
            "b": pa.array([b"\x00\xff", None]),
            "day": pa.array([date(2026, 1, 2), None]),
            "at": pa.array([datetime(2026, 1, 2, 3, 4, 5, 6), None], pa.timestamp("ns")),
            "when": pa.array([datetime(2026, 1, 2, tzinfo=UTC), None], pa.timestamp("us", "Europe/Berlin")),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
            "l": pa.array([[{"x": float("inf")}], None]),
        }
    )
    out = io.BytesIO()
    pq.write_table(table, out)
    one, two = (json.loads(row.value) for row in read(out.getvalue(), Layout("parquet")))
    assert one == {
        "n": 2**62,
        "d": "1.10",
        "f": "NaN",
        "s": "ä",
        "b": "AP8=",
        "day": "2026-01-02",
        "at": "2026-01-02 03:04:05.000006",
        "when": "2026-01-02 00:00:00Z",
        "m": {"k": 1},
        "l": [{"x": "Infinity"}],
    }
    assert two == dict.fromkeys(one) | {"f": 0.1, "s": ""}


@pytest.mark.parametrize(
    ("kind", "beyond"),
    [
        (pa.date32(), 2_932_897),
        (pa.date32(), -719_163),
        (pa.date64(), 253402300800_000),
        (pa.timestamp("us"), 253402300800_000000),
        (pa.timestamp("ms", "UTC"), 2**62),
        (pa.timestamp("us", "Europe/Berlin"), 253402300800_000000),
    ],
    ids=str,
)
@pytest.mark.parametrize("nested", [False, True])
def test_a_time_beyond_the_years_takes_its_row_alone(kind: pa.DataType, beyond: int, nested: bool) -> None:
    whole = pa.int32() if kind == pa.date32() else pa.int64()
    column = pa.array([0, None, beyond, 0], whole).cast(kind)
    if nested:
        column = pa.StructArray.from_arrays([column], ["x"])
    out = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2, 3, 4], "at": column}), out)
    found = read(out.getvalue(), Layout("parquet", {"id": "BIGINT", "at": "TIMESTAMP"}))
    assert [(row.number, row.fault) for row in found] == [(i, None) for i in range(4)]
    assert found[2].value == b"a value is beyond the years 1 to 9999"
    assert [json.loads(found[i].value)["id"] for i in (0, 1, 3)] == [1, 2, 4]


def test_the_last_hour_of_year_9999_is_not_beyond_it_in_another_zone() -> None:
    out = io.BytesIO()
    last = pa.array([253402300799_000000], pa.int64()).cast(pa.timestamp("us", "Europe/Berlin"))
    pq.write_table(pa.table({"at": last}), out)
    (row,) = read(out.getvalue(), Layout("parquet"))
    assert json.loads(row.value) == {"at": "9999-12-31 23:59:59Z"}


def test_parquet_gives_only_the_columns_asked_for() -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2], "other": ["x", "y"], "raw": [b"t", b"u"]}), out)
    layout = Layout("parquet", {"raw": "VARCHAR", "id": "BIGINT", "absent": "VARCHAR"})
    assert [json.loads(r.value) for r in read(out.getvalue(), layout)] == [
        {"raw": "t", "id": 1},
        {"raw": "u", "id": 2},
    ]
    absent = Layout("parquet", {"absent": "VARCHAR"})
    assert [r.value for r in read(out.getvalue(), absent)] == [b"{}", b"{}"]


@pytest.mark.parametrize("format_", ["json", "csv", "parquet", "avro"])
@pytest.mark.parametrize("data", [b"\x00\xff\x1f\x8b" * 50, b"PAR1", b"Obj\x01", b'"', b"{}\n\n"])
def test_garbage_is_no_exception(format_: str, data: bytes) -> None:
    for name in ("f", "f.gz"):
        for row in read(data, Layout(format_, {"id": "BIGINT"}), name):
            assert isinstance(row.value, bytes)


def test_rows_come_in_chunks_with_their_numbers() -> None:
    data = b"".join(b'{"i": %d}\n' % i for i in range(12_345))
    chunks = list(rows("f", io.BytesIO(data), Layout("json")))
    assert [len(chunk) for chunk in chunks] == [5000, 5000, 2345]
    assert [row.number for chunk in chunks for row in chunk] == list(range(12_345))
