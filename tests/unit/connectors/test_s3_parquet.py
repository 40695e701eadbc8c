"""What Parquet files hold, as records: whatever Arrow reads is a row, an undecodable one, or a fault of the file."""

from __future__ import annotations

import io
import json
import random
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from leatstream.connectors.s3.files import rows
from leatstream.connectors.s3.layout import Layout, Row
from leatstream.model.types import parse_type


def read(data: bytes, layout: Layout) -> list[Row]:
    return [row for chunk in rows("f", io.BytesIO(data), layout) for row in chunk]


def layout(format_: str, columns: dict[str, str] | None = None) -> Layout:
    return Layout(format_, {name: parse_type(kind) for name, kind in (columns or {}).items()})


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
    one, two = (json.loads(row.value) for row in read(out.getvalue(), layout("parquet")))
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
    found = read(out.getvalue(), layout("parquet", {"id": "BIGINT", "at": "TIMESTAMP"}))
    assert [(row.number, row.fault) for row in found] == [(i, None) for i in range(4)]
    assert found[2].value == b"column at: a value is beyond the years 1 to 9999"
    assert [json.loads(found[i].value)["id"] for i in (0, 1, 3)] == [1, 2, 4]


def test_the_last_hour_of_year_9999_is_not_beyond_it_in_another_zone() -> None:
    out = io.BytesIO()
    last = pa.array([253402300799_000000], pa.int64()).cast(pa.timestamp("us", "Europe/Berlin"))
    pq.write_table(pa.table({"at": last}), out)
    (row,) = read(out.getvalue(), layout("parquet"))
    assert json.loads(row.value) == {"at": "9999-12-31 23:59:59Z"}


def test_parquet_gives_only_the_columns_asked_for() -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2], "other": ["x", "y"], "raw": [b"t", b"u"]}), out)
    shape = layout("parquet", {"raw": "VARCHAR", "id": "BIGINT", "absent": "VARCHAR"})
    assert [json.loads(r.value) for r in read(out.getvalue(), shape)] == [
        {"raw": "t", "id": 1},
        {"raw": "u", "id": 2},
    ]


def parquet(**columns: pa.Array) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def values(data: bytes, columns: dict[str, str] | None = None) -> list[Any]:
    found = read(data, layout("parquet", columns))
    return [json.loads(row.value) if row.value.startswith(b"{") else row.value.decode() for row in found]


def of(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(values, kind)


KEYS = [
    (pa.date32(), date(2026, 1, 2), "2026-01-02"),
    (pa.binary(), b"key", "key"),
    (pa.decimal128(9, 2), Decimal("1.10"), "1.10"),
    (pa.int16(), -7, "-7"),
    (pa.float64(), 0.1, "0.1"),
    (pa.bool_(), True, "true"),
    (pa.timestamp("ms", "UTC"), datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02 00:00:00Z"),
    (pa.time32("s"), 3723, "01:02:03"),
    (pa.struct([("a", pa.int8())]), {"a": 1}, '{"a":1}'),
]


@pytest.mark.parametrize(("kind", "key", "text"), KEYS, ids=lambda given: str(given)[:20])
def test_keys_of_maps_are_texts(kind: pa.DataType, key: Any, text: str) -> None:
    column = of([[(key, 1)], None, [], [(key, None)]], pa.map_(kind, pa.int64()))
    wanted = [{"m": {text: 1}}, {"m": None}, {"m": {}}, {"m": {text: None}}]
    assert values(parquet(m=column), {"m": "MAP<VARCHAR, BIGINT>"}) == wanted
    nested = pa.ListArray.from_arrays(pa.array([0, 2, 4]), column)
    found = values(parquet(m=nested), {"m": "ARRAY<MAP<VARCHAR, BIGINT>>"})
    assert [row for value in found for row in value["m"]] == [one["m"] for one in wanted]


def test_a_key_that_is_no_text_takes_its_row_alone() -> None:
    column = of([[(b"\xff", 1)], [(b"k", 2)]], pa.map_(pa.binary(), pa.int64()))
    assert values(parquet(m=column), {"m": "MAP<VARCHAR, BIGINT>"}) == [
        "column m: a value is not UTF-8",
        {"m": {"k": 2}},
    ]


def test_a_struct_with_two_fields_of_one_name() -> None:
    twice = pa.StructArray.from_arrays(
        [of([1], pa.int64()), of([2], pa.int64()), of([3], pa.int64())], ["a", "a", "b"]
    )
    data = parquet(id=of([1], pa.int64()), s=twice)
    (row,) = read(data, layout("parquet", {"id": "BIGINT", "s": "STRUCT<a BIGINT>"}))
    assert row.fault == "column s: it has the column a twice"
    # What is not asked for does no harm.
    assert values(data, {"id": "BIGINT", "s": "STRUCT<b BIGINT>"}) == [{"id": 1, "s": {"b": 3}}]
    assert values(data, {"id": "BIGINT"}) == [{"id": 1}]


def test_a_file_without_the_columns_gives_no_rows_of_nulls() -> None:
    data = parquet(ID=of([1], pa.int64()), other=of([2], pa.int64()))
    for columns, said in (
        ({"absent": "BIGINT"}, "none of the declared columns (absent), but 2 other columns (ID, other)"),
        ({"id": "BIGINT", "other": "BIGINT"}, 'declare the column as "ID"'),
    ):
        (row,) = read(data, layout("parquet", columns))
        assert row.fault is not None
        assert said in row.fault
    inner = parquet(s=of([{"B": 1}], pa.struct([("B", pa.int64())])))
    (row,) = read(inner, layout("parquet", {"s": "STRUCT<b BIGINT>"}))
    assert str(row.fault).startswith('column s: it has "B"')


def test_two_columns_of_one_name() -> None:
    out = io.BytesIO()
    pq.write_table(
        pa.Table.from_arrays(
            [of([1], pa.int64()), of([2], pa.int64()), of([3], pa.int64())], ["a", "a", "b"]
        ),
        out,
    )
    (row,) = read(out.getvalue(), layout("parquet", {"a": "BIGINT"}))
    assert row.fault == "it has the column a twice"
    assert values(out.getvalue(), {"b": "BIGINT"}) == [{"b": 3}]
    assert read(out.getvalue(), layout("parquet"))[0].value == b'{"a":1,"a":2,"b":3}'


def avro(fields: dict[str, Any], *records: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    schema = {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in fields.items()]}
    fastavro.writer(out, schema, records)
    return out.getvalue()


PLACED = [
    ("parquet", parquet(id=of([1], pa.int64())), parquet(id=of([1], pa.int64()), n=of([None], pa.int64()))),
    (
        "avro",
        avro({"id": "long"}, {"id": 1}),
        avro({"id": "long", "n": ["null", "long"]}, {"id": 1, "n": None}),
    ),
]


@pytest.mark.parametrize(("form", "without", "having"), PLACED, ids=["parquet", "avro"])
def test_directories_give_columns_that_the_file_has_not(form: str, without: bytes, having: bytes) -> None:
    path = "dt=2026-01-01/n=7/f"

    def found(data: bytes, columns: dict[str, str]) -> list[Any]:
        chunks = rows(path, io.BytesIO(data), layout(form, columns))
        return [row.fault or json.loads(row.value) for chunk in chunks for row in chunk]

    columns = {"id": "BIGINT", "n": "BIGINT", "dt": "DATE"}
    assert found(without, columns) == [{"id": 1, "n": 7, "dt": "2026-01-01"}]
    assert found(having, columns) == [{"id": 1, "n": None, "dt": "2026-01-01"}]
    assert found(without, {"dt": "DATE"}) == [{"dt": "2026-01-01"}]
    assert found(without, {"x": "BIGINT", "dt": "DATE"}) == [
        "it has none of the declared columns (x), but 1 other column (id)"
    ]
    assert found(without, {"ID": "BIGINT"}) == [
        "it has id where the declared column is ID; names are compared exactly, so declare the column as id"
    ]


EXACT = [
    # Without an offset of a nanosecond; the sixth digit is the last, also before 1970.
    (pa.timestamp("ns"), -1, "TIMESTAMP", '"1969-12-31 23:59:59.999999"'),
    (pa.timestamp("ns"), 1_999, "TIMESTAMP", '"1970-01-01 00:00:00.000001"'),
    (pa.time64("ns"), 1, "TIME", '"00:00:00.000000001"'),
    (pa.time64("us"), 86_399_999_999, "TIME", '"23:59:59.999999"'),
    (pa.int64(), 2**63 - 1, "VARCHAR", f'"{2**63 - 1}"'),
    (pa.uint64(), 2**64 - 1, "BIGINT", str(2**64 - 1)),
    (pa.float64(), 1e16, "VARCHAR", '"1e+16"'),
    (pa.float32(), 0.1, "VARCHAR", '"0.1"'),
    (pa.float32(), 0.1, "DOUBLE", "0.10000000149011612"),
    (pa.float16(), 1.5, "FLOAT", "1.5"),
    (pa.float64(), float("nan"), "VARCHAR", '"NaN"'),
    (pa.float64(), float("-inf"), "DOUBLE", '"-Infinity"'),
    (pa.decimal128(38, 0), Decimal(10**37), "BIGINT", str(10**37)),
    (pa.decimal128(5, 0), Decimal(5), "BIGINT", "5"),
    (pa.decimal128(5, 2), Decimal("5.00"), "VARCHAR", '"5.00"'),
    (pa.decimal256(76, 2), Decimal("123456789012345678901234567890123456789.01"), "DECIMAL(38,2)",
     '"123456789012345678901234567890123456789.01"'),
    (pa.string(), "12,34", "DECIMAL(10,2)", '"12,34"'),
    (pa.string_view(), "20260105", "DATE", '"20260105"'),
    (pa.large_string(), "12:30:00", "TIMESTAMP_LTZ", '"12:30:00"'),
    (pa.binary_view(), b"\xff", "BYTES", '"/w=="'),
    (pa.binary(5), b"12345", "VARCHAR", '"12345"'),
    (pa.null(), None, "BIGINT", "null"),
    (pa.list_(pa.binary()), [b"a", None], "ARRAY<VARCHAR>", '["a",null]'),
    (pa.list_(pa.timestamp("ns")), [1], "ARRAY<TIMESTAMP>", '["1970-01-01 00:00:00"]'),
    (pa.list_(pa.int64(), 2), [1, None], "ARRAY<BIGINT>", "[1,null]"),
    (pa.list_view(pa.int64()), [1], "ARRAY<BIGINT>", "[1]"),
    (pa.large_list(pa.int64()), [], "ARRAY<BIGINT>", "[]"),
    (pa.dictionary(pa.int8(), pa.string()), "x", "VARCHAR", '"x"'),
    (pa.struct([("a", pa.struct([("b", pa.date32())]))]), {"a": {"b": 0}}, "STRUCT<a STRUCT<b DATE>>",
     '{"a":{"b":"1970-01-01"}}'),
    (pa.duration("s"), 5, "BIGINT", "5"),
    (pa.json_(), '{"a": 1}', "VARCHAR", '"{\\"a\\": 1}"'),
    (pa.uuid(), UUID(int=1).bytes, "VARCHAR", '"00000000-0000-0000-0000-000000000001"'),
    (pa.uuid(), UUID(int=1).bytes, "BYTES", '"AAAAAAAAAAAAAAAAAAAAAQ=="'),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "value", "kind", "text"), EXACT, ids=lambda given: str(given)[:25])
def test_a_value_is_what_it_is(shape: pa.DataType, value: Any, kind: str, text: str) -> None:
    data = parquet(v=of([value, None], shape))
    assert [row.value.decode() for row in read(data, layout("parquet", {"v": kind}))] == [
        f'{{"v":{text}}}',
        '{"v":null}',
    ]


def test_times_that_nanoseconds_cannot_count() -> None:
    """INT96, as Spark wrote until 3.0: pyarrow would wrap them around without a word."""
    out = io.BytesIO()
    old = of([datetime(1000, 1, 1), datetime(9999, 1, 1)], pa.timestamp("us"))
    pq.write_table(pa.table({"t": old}), out, use_deprecated_int96_timestamps=True)
    assert values(out.getvalue(), {"t": "TIMESTAMP"}) == [
        {"t": "1000-01-01 00:00:00"},
        {"t": "9999-01-01 00:00:00"},
    ]


@pytest.mark.parametrize("shape", [pa.binary(), pa.list_(pa.binary())])
def test_one_value_that_is_no_text_does_not_turn_the_others_into_base64(shape: pa.DataType) -> None:
    wrap = (lambda value: [value]) if pa.types.is_list(shape) else (lambda value: value)
    column = of([wrap(b"abcd"), wrap(b"\xff"), wrap(b"efgh")], shape)
    kind = "ARRAY<VARCHAR>" if pa.types.is_list(shape) else "VARCHAR"
    assert values(parquet(v=column), {"v": kind}) == [
        {"v": wrap("abcd")},
        "column v: a value is not UTF-8",
        {"v": wrap("efgh")},
    ]


def test_a_text_that_is_no_text_takes_its_row_alone() -> None:
    broken = pa.StringArray.from_buffers(
        3, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0"), pa.py_buffer(b"a\xffb")
    )
    assert values(parquet(v=broken), {"v": "VARCHAR"}) == [
        {"v": "a"},
        "column v: a value is not UTF-8",
        {"v": "b"},
    ]


_LEAVES = [
    pa.null(), pa.bool_(), pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.string(), pa.binary(),
    pa.large_string(), pa.string_view(), pa.binary_view(), pa.binary(3), pa.date32(), pa.date64(), pa.timestamp("ns"),
    pa.timestamp("s", "Asia/Kolkata"), pa.time32("ms"), pa.time64("ns"), pa.decimal128(38, 10), pa.decimal256(76, 0),
    pa.duration("us"), pa.dictionary(pa.int16(), pa.string()),
]  # fmt: skip


def _shapes() -> st.SearchStrategy[pa.DataType]:
    return st.recursive(
        st.sampled_from(_LEAVES),
        lambda inner: st.one_of(
            inner.map(pa.list_),
            inner.map(pa.large_list),
            inner.map(lambda kind: pa.list_(kind, 2)),
            st.tuples(st.sampled_from(_LEAVES[1:]), inner).map(lambda pair: pa.map_(*pair)),
            st.lists(inner, min_size=1, max_size=3).map(
                lambda parts: pa.struct([("ab"[i % 2], kind) for i, kind in enumerate(parts)])
            ),
        ),
        max_leaves=5,
    )


KINDS = [
    "BIGINT",
    "VARCHAR",
    "DATE",
    "DECIMAL(5,2)",
    "BYTES",
    "ARRAY<VARCHAR>",
    "MAP<VARCHAR, BYTES>",
    "STRUCT<a INTEGER>",
]


@settings(max_examples=200)
@given(shape=_shapes(), kind=st.sampled_from([None, *KINDS]), seed=st.integers(0, 2**32))
def test_whatever_a_file_holds_is_no_exception(shape: pa.DataType, kind: str | None, seed: int) -> None:
    """Arrays of any bytes under any type: rows, or one sentence that says why there are none."""
    column = _any_array(shape, 4, random.Random(seed))
    try:
        data = parquet(v=column)
    except (pa.ArrowException, ValueError):  # Parquet has no form for it
        assume(False)
    found = read(data, layout("parquet", {"v": kind} if kind else None))
    assert len(found) == 4 or found[-1].fault is not None
    assert all("cannot be read (" not in (row.fault or "") for row in found), found[-1].fault
    for row in found:
        if row.value.startswith(b"{"):
            json.loads(row.value)


def _any_array(shape: pa.DataType, length: int, chance: random.Random, nulls: bool = True) -> pa.Array:
    """Any bytes as values of a type, some of them NULL; of what has a length, mostly one element each."""
    is_ = pa.types
    valid = pa.py_buffer(chance.randbytes(length // 8 + 1)) if nulls else None
    ends = [0, 1, None, *range(3, length + 1)]
    if is_.is_null(shape):
        return pa.nulls(length)
    if is_.is_dictionary(shape):
        return of(["x"] * length, pa.string()).dictionary_encode().cast(shape)
    if is_.is_struct(shape):
        children = [_any_array(field.type, length, chance) for field in shape]
        return pa.StructArray.from_buffers(shape, length, [valid], children=children)
    if is_.is_map(shape):
        keys = _any_array(shape.key_type, length, chance, nulls=False)
        items = _any_array(shape.item_type, length, chance)
        return pa.MapArray.from_arrays(pa.array([0, 0, *range(2, length + 1)], pa.int32()), keys, items)
    if is_.is_fixed_size_list(shape):
        return pa.FixedSizeListArray.from_arrays(_any_array(shape.value_type, 2 * length, chance), 2)
    if is_.is_list(shape):
        return pa.ListArray.from_arrays(
            pa.array(ends, pa.int32()), _any_array(shape.value_type, length, chance)
        )
    if is_.is_large_list(shape):
        return pa.LargeListArray.from_arrays(
            pa.array(ends, pa.int64()), _any_array(shape.value_type, length, chance)
        )
    texts = [chance.randbytes(3) if chance.random() < 0.5 else b"abc" for _ in range(length)]
    if is_.is_large_string(shape) or is_.is_string(shape) or is_.is_string_view(shape):
        offsets = pa.py_buffer(struct.pack(f"<{length + 1}i", *range(0, 3 * length + 1, 3)))
        found = pa.StringArray.from_buffers(length, offsets, pa.py_buffer(b"".join(texts)), valid)
        return found.cast(shape, safe=False)
    if "binary" in str(shape):
        return of(texts, pa.binary()).cast(shape)
    data = pa.py_buffer(chance.randbytes(length * shape.bit_width // 8 + 1))
    return pa.Array.from_buffers(shape, length, [valid, data])
