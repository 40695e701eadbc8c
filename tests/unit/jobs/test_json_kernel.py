"""What the kernel reads is what exact Python reads; what it is not sure of it leaves alone."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from exact_json import NotExact, read_record
from hypothesis import given
from hypothesis import strategies as st
from value_cases import CASES, RECORDS

from leatstream.model.objects import ROWMETA
from leatstream.plan.job_spec import ColumnSpec, Isolation, JobSpec, Mode, SinkSpec, SourceSpec, StoreRef
from leatstream_jobs.reading.json_kernel import Reader, kernel_of, kernels

LEFT = "left to the expressions"


def kernel(columns: Sequence[tuple[str, str]], sql: str = "SELECT *", **more: Any) -> Any:
    specs = [
        ColumnSpec(name=n, type=t.removesuffix(" NOT NULL"), not_null=t.endswith(" NOT NULL"))
        for n, t in columns
    ]
    store = StoreRef(name="s", kind="kafka", config={})
    fields = {"view": "v", "relation": "r", "entity": "t", "value_format": "json", **more}
    return kernel_of(SourceSpec(store=store, columns=specs, **fields), sql)


def rows(columns: Sequence[tuple[str, str]], records: Sequence[bytes]) -> list[Any]:
    """For each record the row that was read, or LEFT."""
    found = Reader(kernel(columns)).batch(pa.record_batch({"value": pa.array(records, pa.binary())}))
    values = [found.column(f"__leat_k{i}").to_pylist() for i in range(len(columns))]
    read = [dict(zip((n for n, _ in columns), row, strict=True)) for row in zip(*values, strict=True)]
    kept = found.column("value").to_pylist()
    assert all(one is None or one == record for one, record in zip(kept, records, strict=True))
    return [row if one is None else LEFT for row, one in zip(read, kept, strict=True)]


def exact(columns: Sequence[tuple[str, str]], record: bytes) -> Any:
    try:
        return read_record(columns, record)
    except NotExact:
        return LEFT


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, float) and isinstance(other, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return type(one) is type(other) and bool(one == other)


def test_no_case_of_the_table_is_read_as_another_value() -> None:
    seen = 0
    for case in CASES:
        columns = [("v", case.type)]
        if kernel(columns) is not None:
            (row,) = rows(columns, [b'{"v":' + case.text.encode() + b"}"])
            assert row is LEFT or same(row, exact(columns, b'{"v":' + case.text.encode() + b"}")), case
            seen += 1
    for record in RECORDS:
        if kernel(record.columns) is not None:
            (row,) = rows(record.columns, [record.record])
            assert row is LEFT or same(row, exact(record.columns, record.record)), record
            seen += 1
    assert seen > 300


ORDINARY = (
    ("BOOLEAN", "true"),
    ("TINYINT", "-128"),
    ("SMALLINT", "5"),
    ("INTEGER", "-2147483648"),
    ("BIGINT", "9223372036854775807"),
    ("DOUBLE", "1.5"),
    ("DOUBLE", "3"),
    ("DECIMAL(10, 2)", "12.34"),
    ("DECIMAL(38, 2)", "-7"),
    ("VARCHAR", '"\\u00e9\\ud83d\\ude00 a"'),
    ("TIME", '"12:30:00.5"'),
    ("DATE", '"2026-01-05"'),
    ("TIMESTAMP", '"2026-01-05 12:30:00.123"'),
    ("TIMESTAMP_LTZ", '"2026-01-05T12:30:00Z"'),
)


@pytest.mark.parametrize(("kind", "text"), ORDINARY)
def test_ordinary_values_are_read(kind: str, text: str) -> None:
    columns = [("v", kind), ("w", kind)]
    record = b'{"x":[{"v":1}],"v":' + text.encode() + b"}"
    (row,) = rows(columns, [record])
    assert same(row, exact(columns, record))
    (row,) = rows([("v", f"{kind} NOT NULL")], [record])
    assert row is not LEFT


def test_one_bad_record_leaves_its_neighbours_alone() -> None:
    columns = [("i", "BIGINT"), ("d", "DECIMAL(10, 2)"), ("at", "DATE")]
    good = b'{"i":1,"d":1.50,"at":"2026-01-05"}'
    bad = [b'{"i":"1"}', b'{"d":"12,34"}', b'{"at":"20260105"}', b'{"x":"\xff"}', b"", b'{"i":1}{"i":2}']
    bad.append(b'{"x":' + b"[" * 70 + b"]" * 70 + b"}")
    records = [one for wrong in bad for one in (good, wrong)]
    found = rows(columns, records)
    assert found[1::2] == [LEFT] * len(bad)
    assert found[0::2] == [exact(columns, good)] * len(bad)


def test_not_null_is_checked() -> None:
    for kind, text in ORDINARY:
        columns = [("v", f"{kind} NOT NULL")]
        assert rows(columns, [b"{}", b'{"v":null}', b'{"v":' + text.encode() + b',"v":null}']) == [LEFT] * 3


def test_columns_that_are_not_used_are_checked_all_the_same() -> None:
    found = kernel([("i", "BIGINT"), ("at", "DATE"), ("n", "TINYINT")], "SELECT `i` FROM v")
    records = [b'{"i":1,"at":"2026-01-05"}', b'{"i":2,"at":"20260105"}', b'{"i":3,"n":128}']
    batch = Reader(found).batch(pa.record_batch({"value": pa.array(records, pa.binary())}))
    assert batch.schema.names == ["value", "__leat_k0"]
    assert batch.column("value").to_pylist() == [None, *records[1:]]


def test_the_position_is_kept_where_it_is_asked_for() -> None:
    columns = [("i", "BIGINT")]
    place = pa.array([{"topic": "t", "offset": n} for n in (1, 2)])
    batch = pa.record_batch({"value": pa.array([b'{"i":1}', b"no"], pa.binary()), ROWMETA: place})
    without = Reader(kernel(columns, "SELECT `i` FROM v")).batch(batch).column(ROWMETA).to_pylist()
    assert without == [None, {"topic": "t", "offset": 2}]
    asked = Reader(kernel(columns, f"SELECT `{ROWMETA}` FROM v")).batch(batch)
    assert asked.column(ROWMETA).to_pylist() == place.to_pylist()


def test_shapes_that_the_expressions_keep() -> None:
    assert kernel([("v", "BIGINT")]) is not None
    assert kernel([("v", "BIGINT"), ("l", "ARRAY<BIGINT>")]) is None
    assert kernel([("v", "FLOAT")]) is None
    assert kernel([(chr(34), "BIGINT")]) is None
    assert kernel([("v", "BIGINT")], primary_key=["v"]) is None
    assert kernel([("v", "BIGINT"), ("k", "BIGINT")], key_only=["k"]) is None
    assert kernel([("v", "BIGINT")], value_format="avro") is None
    assert kernel([("v", "BIGINT")], headers=True) is None


def job(**more: Any) -> JobSpec:
    store = StoreRef(name="s", kind="kafka", config={})
    columns = [ColumnSpec(name="v", type="BIGINT")]
    common = {"relation": "r", "store": store, "entity": "t", "columns": columns, "value_format": "json"}
    fields: dict[str, Any] = {
        **dict.fromkeys(("query_id", "query_name", "fencing_token", "mode_reason"), ""),
        **{"generation": 1, "attempt": 1, "sql": "SELECT `v` FROM leat_src_0", "checkpoint": "file:///c"},
        **{"mode": Mode.MICRO_BATCH, "sources": [SourceSpec(view="leat_src_0", **common)]},
        "sink": SinkSpec(**common),
    }
    return JobSpec(**(fields | more))


def test_which_jobs_have_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernels(job()) == {}
    assert list(kernels(job(json_reader="workers"))) == ["leat_src_0"]
    monkeypatch.setenv("LEATSTREAM_JSON_WORKERS", "1")
    assert list(kernels(job())) == ["leat_src_0"]
    assert kernels(job(json_reader="expressions")) == {}
    assert kernels(job(mode=Mode.REALTIME)) == {}
    assert kernels(job(driver=Isolation.SHARED)) == {}
    monkeypatch.setenv("LEATSTREAM_JSON_WORKERS", "0")
    assert kernels(job()) == {}


KINDS = st.sampled_from(
    (
        *("BOOLEAN", "TINYINT", "INTEGER", "BIGINT", "DOUBLE", "DECIMAL(5, 2)", "DECIMAL(38, 0)", "VARCHAR"),
        *("TIME", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "BIGINT NOT NULL", "VARCHAR NOT NULL"),
    )
)
DIGITS = st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,6})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
MOMENTS = st.one_of(
    st.datetimes().map(str),
    st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat),
    st.dates().map(str),
    st.times().map(str),
    st.from_regex(
        r"[0-9]{4}-[01][0-9]-[0-3][0-9]([T ][0-2][0-9]:[0-5][0-9](:[0-6][0-9])?Z?)?", fullmatch=True
    ),
)
SCALARS = st.one_of(
    st.none().map(json.dumps),
    st.booleans().map(json.dumps),
    st.integers(-(2**64), 2**64).map(json.dumps),
    st.floats(allow_nan=False, allow_infinity=False).map(json.dumps),
    DIGITS,
    DIGITS.map(json.dumps),
    MOMENTS.map(json.dumps),
    st.text().map(json.dumps),
    st.text(max_size=4).map(lambda text: json.dumps(text, ensure_ascii=False)),
)
TEXTS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: "[" + ", ".join(parts) + "]"),
        st.lists(inner, max_size=2).map(
            lambda parts: "{" + ",".join(f'"{i}":{part}' for i, part in enumerate(parts)) + "}"
        ),
    ),
    max_leaves=5,
)
MEMBERS = st.lists(st.tuples(st.sampled_from("abcA"), TEXTS), max_size=5)
CUTS = st.one_of(st.none(), st.tuples(st.integers(0, 200), st.sampled_from((b"", b"}", b"\xff", b"{", b'"'))))


@given(st.lists(KINDS, min_size=3, max_size=3), st.lists(st.tuples(MEMBERS, CUTS), min_size=1, max_size=6))
def test_generated_records_are_read_exactly_or_left(kinds: list[str], made: list[Any]) -> None:
    columns = list(zip("abc", kinds, strict=True))
    records = []
    for members, cut in made:
        text = "{" + ",".join(f'"{name}":{value}' for name, value in members) + "}"
        record = text.encode("utf-8", "surrogatepass")
        if cut is not None:  # a byte more or less, or others behind it
            record = record[: cut[0]] + cut[1] + record[cut[0] :][cut[0] % 2 :]
        records.append(record)
    for record, row in zip(records, rows(columns, records), strict=True):
        assert row is LEFT or same(row, exact(columns, record)), record
