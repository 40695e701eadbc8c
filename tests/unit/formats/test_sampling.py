"""Columns told from sample records."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leatstream.formats.sampling import Sample, sample_columns


def look(*documents: Any) -> Sample:
    return sample_columns(d if isinstance(d, bytes) else json.dumps(d).encode() for d in documents)


def types(*documents: Any) -> dict[str, str]:
    return {c.name: str(c.type) for c in look(*documents).columns}


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([True], "BOOLEAN"),
        ([1, -(2**63)], "BIGINT"),
        ([1, 1.5], "DOUBLE"),
        ([1.5, 2], "DOUBLE"),
        (["x"], "VARCHAR"),
        ([None], "VARCHAR"),
        ([None, 1, None], "BIGINT"),
        ([2**63], "VARCHAR"),
        ([1, "x"], "VARCHAR"),
        ([True, 1], "VARCHAR"),
        ([[1], [1.5, None]], "ARRAY<DOUBLE>"),
        ([[]], "ARRAY<VARCHAR>"),
        ([[], [None], [2]], "ARRAY<BIGINT>"),
        ([[1, "x"]], "ARRAY<VARCHAR>"),
        ([[[1]], [[2.5]]], "ARRAY<ARRAY<DOUBLE>>"),
        ([[1], 1], "VARCHAR"),
        ([{}], "VARCHAR"),
        ([{}, {"a": 1}], "STRUCT<a BIGINT>"),
        ([{"a": 1}, {"a": None, "B c": "x"}], 'STRUCT<a BIGINT, "B c" VARCHAR>'),
        ([{"a": None}, {"a": {"b": [True]}}], "STRUCT<a STRUCT<b ARRAY<BOOLEAN>>>"),
        ([{"a": 1}, [1]], "VARCHAR"),
    ],
)
def test_types(values: list[Any], wanted: str) -> None:
    assert types(*({"v": v} for v in values)) == {"v": wanted}


def test_fields_are_gathered_in_the_order_they_are_seen() -> None:
    found = look({"b": 1, "a": None}, {"c": True, "b": 2}, b"no json", b"[1]", b"")
    assert [c.name for c in found.columns] == ["b", "a", "c"]
    assert (found.records, found.skipped) == (2, 3)
    assert found.nulls == {"b": 0, "a": 2, "c": 1}


def test_names_that_no_column_can_have_are_left_out() -> None:
    document = {"": 1, "__leat_x": 1, "a\nb": 1, "Id": 1, "id": 2, "ok ü": 1, "x" * 256: 1, "${x}": 1}
    assert list(types(document)) == ["Id", "ok ü"]


@pytest.mark.parametrize("value", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff", b"1" * 5_000, None])
def test_strange_records_are_skipped(value: bytes | None) -> None:
    found = sample_columns([value])
    assert (found.columns, found.skipped) == ((), 1)


def test_deep_values_are_text_below_a_depth() -> None:
    value: Any = 1
    for _ in range(100):
        value = [value]
    (column,) = look({"v": value}).columns
    assert str(column.type).count("ARRAY") == 15
