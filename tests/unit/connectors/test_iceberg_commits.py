"""What a table says of a query, and what catalogs say, without a catalog."""

from __future__ import annotations

import sys
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import exceptions
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.types import LongType, NestedField, StringType

from leatstream.connectors.iceberg.commits import Progress, progress
from leatstream.connectors.iceberg.errors import store_error
from leatstream.connectors.iceberg.history import NOWHERE, advanced, appended, beginning, offset
from leatstream.connectors.iceberg.rows import arrow_schema, last_of_keys, without_keys
from leatstream.connectors.registry import open_connector
from leatstream.errors import StoreError
from leatstream.model.extras import install_extra


def test_progress_is_read_from_properties() -> None:
    assert progress({}, "q") == Progress(0, None, None)
    told = {"leatstream.q.attempt": "7", "leatstream.q.batch": "g1-0:42", "leatstream.p.attempt": "9"}
    found = progress(told, "q")
    assert (found.attempt, found.last("g1-0"), found.last("g2-0")) == (7, 42, None)
    assert progress({"leatstream.q.attempt": "x", "leatstream.q.batch": "y"}, "q") == Progress()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (exceptions.OAuthError("invalid_client: no"), "store-auth-failed"),
        (exceptions.ForbiddenError("no"), "store-auth-failed"),
        (exceptions.NoSuchTableError("t"), "entity-not-found"),
        (exceptions.CommitStateUnknownException("502"), "store-unreachable"),
        (exceptions.BadRequestError("odd"), "store-rejected"),
        (OSError("AWS Error ACCESS_DENIED during PutObject"), "store-auth-failed"),
        (OSError("AWS Error NETWORK_CONNECTION"), "store-unreachable"),
        (FileNotFoundError("s3://x"), "store-rejected"),
        (ValueError("value sesame"), "store-rejected"),
    ],
)
def test_errors_have_codes_and_no_values(error: Exception, code: str) -> None:
    found = store_error("lake", "writing", error, "https://host", 5, rows=True)
    assert found is not None
    assert found.code == code
    assert "sesame" not in str(found)


def test_programming_errors_pass() -> None:
    assert store_error("lake", "writing", ZeroDivisionError(), "https://host", 5) is None


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog", None)
    connector = open_connector("iceberg_rest", "lake", {"uri": "http://127.0.0.1:9"}, {})
    for call in (connector.test, connector.list_entities, lambda _: connector.find_entity("a.b")):
        with pytest.raises(StoreError, match="not installed") as caught:
            call(1.0)
        assert caught.value.faults[0].hint == install_extra("iceberg")


def test_a_column_that_was_renamed_is_named() -> None:
    table = Schema(NestedField(1, "id", LongType()), NestedField(2, "title", StringType()))
    assert arrow_schema(table, ["title", "id"]).names == ["title", "id"]
    with pytest.raises(StoreError, match="was altered: it has no column name") as caught:
        arrow_schema(table, ["id", "name"])
    assert caught.value.code == "store-rejected"


def test_the_last_row_of_a_key_counts() -> None:
    rows = pa.table({"k": [1, 2, 1, 3], "v": ["a", "b", "c", None]})
    assert last_of_keys(rows, ["k"]).to_pylist() == [
        {"k": 2, "v": "b"},
        {"k": 1, "v": "c"},
        {"k": 3, "v": None},
    ]
    assert without_keys(rows, pa.table({"k": [1, 9]}), ["k"]).column("k").to_pylist() == [2, 3]


class History:
    """A table of some snapshots: operation, milliseconds and rows of each."""

    def __init__(self, *made: tuple[Operation, int, int], first: int = 1) -> None:
        totals = accumulate(rows for _, _, rows in made)
        self.snapshots = [
            Snapshot(
                snapshot_id=i,
                parent_snapshot_id=i - 1 if i > 1 else None,
                sequence_number=i,
                timestamp_ms=moment,
                manifest_list="",
                summary=Summary(operation, **{"added-records": str(rows), "total-records": str(total)}),
            )
            for i, ((operation, moment, rows), total) in enumerate(zip(made, totals, strict=True), 1)
        ][first - 1 :]

    def current_snapshot(self) -> Snapshot | None:
        return self.snapshots[-1] if self.snapshots else None

    def snapshot_by_id(self, number: int) -> Snapshot | None:
        return next((one for one in self.snapshots if one.snapshot_id == number), None)


def _end(table: Any, start: Any, *, skip: bool = False, most: int = 100) -> Any:
    return advanced(table, "t", start, skip=skip, most=most)


def test_where_a_query_begins() -> None:
    table: Any = History((Operation.APPEND, 100, 1), (Operation.APPEND, 200, 1))
    assert beginning(table, "t", "earliest", None, None) == offset(NOWHERE, whole=True)
    assert beginning(table, "t", "latest", None, None) == offset("2", "2")
    assert beginning(table, "t", "timestamp", 150, None) == offset("1", "1")
    assert beginning(table, "t", "timestamp", 50, None) == offset(NOWHERE)
    assert beginning(table, "t", "latest", None, "1") == offset("1", "1")
    empty: Any = History()
    assert beginning(empty, "t", "latest", None, None) == offset(NOWHERE)
    cut: Any = History((Operation.APPEND, 100, 1), (Operation.APPEND, 200, 1), first=2)
    for position, moment, start in (("timestamp", 150, None), ("latest", None, "1")):
        with pytest.raises(StoreError):
            beginning(cut, "t", position, moment, start)


def test_a_first_snapshot_without_rows_is_no_change() -> None:
    """Tables of ours have one. It may be expired before a query has read any row, and nothing is lost."""
    new: Any = History((Operation.APPEND, 100, 0))
    begun = beginning(new, "t", "earliest", None, None)
    latest = beginning(new, "t", "latest", None, None)
    since = beginning(new, "t", "timestamp", 150, None)
    assert latest == since == offset(NOWHERE)
    for start in (begun, latest, offset("1", "1")):
        assert _end(new, start) is start
    for first in (1, 2):
        table: Any = History(
            (Operation.APPEND, 100, 0), (Operation.APPEND, 200, 2), (Operation.APPEND, 300, 1), first=first
        )
        assert _end(table, begun) == offset("3", whole=True)
        assert _end(table, latest) == offset("3")
        assert beginning(table, "t", "timestamp", 150, None) == offset(NOWHERE)
        assert [one.snapshot_id for one in appended(table, "t", offset("3"))][-2:] == [2, 3]
    full: Any = History((Operation.APPEND, 100, 1), (Operation.APPEND, 200, 2), first=2)
    with pytest.raises(StoreError, match="they were expired"):
        beginning(full, "t", "timestamp", 50, None)


def test_batches_end_with_snapshots() -> None:
    table: Any = History(
        (Operation.APPEND, 1, 60),
        (Operation.REPLACE, 2, 60),
        (Operation.APPEND, 3, 60),
        (Operation.APPEND, 4, 1),
    )
    assert _end(table, offset(NOWHERE, whole=True)) == offset("4", whole=True)
    assert _end(table, offset("1", "1")) == offset("3", "1")
    assert _end(table, offset("3", "1")) == offset("4", "3")
    last = offset("4", "3")
    assert _end(table, last) is last


def test_changed_rows_and_lost_positions_stop_a_query() -> None:
    table: Any = History((Operation.APPEND, 1, 1), (Operation.OVERWRITE, 2, 1), (Operation.DELETE, 3, 0))
    with pytest.raises(StoreError, match="Snapshot 2 of table t changes rows") as caught:
        _end(table, offset("1", "1"))
    assert "iceberg.skip.overwrites" in str(caught.value.faults[0].hint)
    assert _end(table, offset("1", "1"), skip=True) == offset("3", "1")
    cut: Any = History((Operation.APPEND, 1, 1), (Operation.APPEND, 2, 1), (Operation.APPEND, 3, 1), first=3)
    with pytest.raises(StoreError, match="no longer has the snapshot"):
        _end(cut, offset("1", "1"))
