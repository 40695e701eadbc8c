"""Cutting a batch into inserts: what a token stands for is the same in each replay."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from leatstream.connectors.clickhouse import inserts
from leatstream.connectors.clickhouse.inserts import HASH, cut_alike, in_order

Row = tuple[int, str | None]


def given(rows: list[Row], *cuts: int) -> Iterator[pa.RecordBatch]:
    """The rows in batches that end at these places; equal rows have equal hashes."""
    for begin, end in pairwise((0, *cuts, len(rows))):
        part = rows[begin:end]
        columns: dict[str, Any] = {"n": pa.array([n for n, _ in part], pa.int64())}
        columns["text"] = pa.array([text for _, text in part], pa.string())
        columns[HASH] = pa.array([hash(row) for row in part], pa.int64())
        yield pa.record_batch(columns)


def shuffled(rows: list[Row], seed: int) -> list[Row]:
    return random.Random(seed).sample(rows, len(rows))


def cut(rows: list[Row], *cuts: int) -> dict[str, list[Row]]:
    """The rows of each insert, as a set with doubles."""
    found = {}
    for name, table in cut_alike(given(rows, *cuts)):
        assert table.schema.names == ["n", "text"]
        found[name] = sorted(zip(*table.to_pydict().values(), strict=True), key=str)
    return found


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inserts, "_ROWS", 10)


@pytest.mark.usefixtures("small")
def test_rows_in_another_order_are_cut_into_the_same_inserts() -> None:
    rows: list[Row] = [(n, f"v{n}" if n % 3 else None) for n in range(20)] + [(7, "twice")] * 13
    whole = cut(rows)
    assert sorted(map(len, whole.values())) == [8, 8, 8, 9]
    assert sorted((row for part in whole.values() for row in part), key=str) == sorted(rows, key=str)
    for seed in range(20):
        assert cut(shuffled(rows, seed), 1, 2, 19) == whole == cut(shuffled(rows, seed), 30)
    assert list(whole) == ["0/4", "1/4", "2/4", "3/4"], "an insert of another number of them is another one"


@pytest.mark.usefixtures("small")
def test_what_fits_into_one_insert_is_one() -> None:
    rows: list[Row] = [(n, "x") for n in range(10)]
    assert cut(rows, 3) == cut(shuffled(rows, 1), 1, 7) == {"0": rows}
    assert list(cut([*rows, (10, "x")], 3)) == ["0/2", "1/2"]
    assert cut([]) == {"0": []}
    assert list(cut_alike(iter([]))) == []


def test_bytes_count_whatever_batches_they_come_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row's weight does not depend on the others: else a batch might be one insert, and two in a replay."""
    kinds: list[tuple[pa.DataType, list[Any]]] = [
        (pa.bool_(), [True, None, False]),
        (pa.int32(), [1, None, 3]),
        (pa.decimal128(20, 2), [1, None, 3]),
        (pa.timestamp("us"), [datetime(2026, 1, 1), None, None]),
        (pa.string(), ["a", None, "ccc"]),
        (pa.binary(), [b"", b"bb", None]),
        (pa.list_(pa.string()), [["a", None], None, []]),
        (pa.map_(pa.string(), pa.int32()), [[("a", 1)], None, [("b", None), ("c", 2)]]),
    ]
    columns = [pa.array(values, kind) for kind, values in kinds]
    batch = pa.record_batch([*columns, pa.array([1, 2, 3])], [*"abcdefgh", HASH])
    weights = [inserts._weight(batch.slice(at, 1)) for at in range(3)]
    assert sum(weights) == inserts._weight(batch) == inserts._weight(batch.take(pa.array([2, 0, 1])))
    assert min(weights) > 50
    for limit, number in ((sum(weights), 1), (sum(weights) - 1, 2)):
        monkeypatch.setattr(inserts, "_SIZE", limit)
        for order in ([0, 1, 2], [2, 1, 0]):
            parts = list(cut_alike(batch.take(pa.array([i])) for i in order))
            assert (len(parts), sum(table.num_rows for _, table in parts)) == (number, 3)


def test_rows_with_a_key_stay_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inserts, "_ROWS", 6)
    whole = pa.record_batch({"a": list(range(20))})

    def lengths(*cuts: int) -> list[int]:
        parts = [whole.slice(a, b - a) for a, b in pairwise((0, *cuts, 20))]
        tables = list(in_order(iter(parts)))
        assert [n for table in tables for n in table.column(0).to_pylist()] == list(range(20))
        return [table.num_rows for table in tables]

    assert lengths() == [6, 6, 6, 2]
    assert lengths(1, 2, 8, 19) == [2, 6, 6, 6]
    monkeypatch.setattr(inserts, "_SIZE", 8 * 4)
    assert lengths(4, 8, 12, 16) == [4] * 5
