"""Materialized views that ClickHouse holds: a table of rows and a view with the user's names."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from clickhouse_server import PASSWORD, ClickHouseServer

from leatstream.connectors.clickhouse import arrow_rows
from leatstream.connectors.clickhouse.connector import ClickHouseConnector
from leatstream.connectors.clickhouse.sink import ClickHouseTableWriter, write_rows
from leatstream.connectors.entities import StoredView
from leatstream.connectors.registry import open_connector
from leatstream.errors import StoreError
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, JobSpec, Mode, SinkSpec, StoreRef

COLUMNS = (Column("user id", parse_type("BIGINT")), Column("n", parse_type("BIGINT")))
GREEN = "qry_019c00000000aaaaaaaaaaaa12345678"


def shown(view: str, **more: Any) -> StoredView:
    """The view as a query keeps it, with the rows under their usual name."""
    return StoredView(**({"entity": view, "columns": COLUMNS, "primary_key": ("user id",)} | more))


@pytest.fixture
def connector(clickhouse: ClickHouseServer) -> ClickHouseConnector:
    opened = open_connector("clickhouse", "s", clickhouse.config(), {"password": PASSWORD})
    assert isinstance(opened, ClickHouseConnector)
    return opened


@pytest.fixture
def view(connector: ClickHouseConnector) -> Iterator[str]:
    name = f"v_{uuid.uuid4().hex[:8]}"
    yield name
    connector.drop_view(name, ["", GREEN])


def opened(
    connector: ClickHouseConnector, view: str, checkpoint: str = "g1", attempt: int = 1, **more: Any
) -> Any:
    """The writer of a job whose sink is the view; ``more`` is of its ``SinkSpec``."""
    sink = SinkSpec(
        relation="demo.public.v",
        store=StoreRef(name="s", kind="clickhouse", config={}),
        entity=view,
        columns=[ColumnSpec(name=c.name, type=str(c.type)) for c in COLUMNS],
        value_format="",
        deletes=True,
        stored_view=True,
        **({"key_columns": ["user id"]} | more),
    )
    spec = JobSpec(
        query_id=view + sink.version,
        query_name="v",
        generation=1,
        attempt=attempt,
        fencing_token="t",
        sql="",
        sources=[],
        sink=sink,
        mode=Mode.MICRO_BATCH,
        mode_reason="",
        checkpoint=f"file:///q/{checkpoint}",
    )
    writer = connector.table_writer(spec)
    assert isinstance(writer, ClickHouseTableWriter)
    return writer


def write(writer: ClickHouseTableWriter, number: int, *rows: tuple[int | None, int | None]) -> None:
    """Write rows; one whose number is None takes its key back."""
    batch = pa.record_batch(
        {
            arrow_rows.DELETED: pa.array([n is None for _, n in rows]),
            "c0": pa.array([key for key, _ in rows], pa.int64()),
            "c1": pa.array([n for _, n in rows], pa.int64()),
        }
    )
    list(write_rows(writer.target, number, iter([batch])))


def test_a_view_shows_the_newest_rows_under_its_own_names(
    connector: ClickHouseConnector, view: str, clickhouse: ClickHouseServer
) -> None:
    for _ in range(2):
        connector.show_view(shown(view))
    writer = opened(connector, view)
    write(writer, 0, (1, 1), (2, 1), (None, 5))
    write(writer, 1, (1, 2), (2, None))
    write(writer, 0, (1, 1), (2, 1))
    assert clickhouse.rows(f"SELECT `user id`, n FROM shop.{view} ORDER BY n") == [["1", "2"], ["\\N", "5"]]
    assert clickhouse.rows(f"SELECT name FROM system.columns WHERE table = '{view}'") == [["user id"], ["n"]]
    # Created again, as at each start of the query, it keeps its rows.
    connector.show_view(shown(view))
    assert clickhouse.rows(f"SELECT count() FROM shop.{view}") == [["2"]]


def test_a_query_that_starts_over_empties_its_view(
    connector: ClickHouseConnector, view: str, clickhouse: ClickHouseServer
) -> None:
    connector.show_view(shown(view))
    write(opened(connector, view), 0, (1, 1), (2, 1))
    kept = opened(connector, view, attempt=2)
    assert kept.committed() == 0
    assert clickhouse.rows(f"SELECT count() FROM shop.{view}") == [["2"]]
    fresh = opened(connector, view, "g2", attempt=3)
    assert fresh.committed() is None
    assert clickhouse.rows(f"SELECT count() FROM shop.{view}") == [["0"]]
    write(fresh, 0, (1, 7))
    assert clickhouse.rows(f"SELECT * FROM shop.{view}") == [["1", "7"]]


def test_rows_are_seen_for_their_time(
    connector: ClickHouseConnector, view: str, clickhouse: ClickHouseServer
) -> None:
    connector.show_view(shown(view, retention_ms=1500))
    writer = opened(connector, view)
    write(writer, 0, (1, 1))
    assert clickhouse.rows(f"SELECT n FROM shop.{view}") == [["1"]]
    time.sleep(1.6)
    write(writer, 1, (2, 2))
    assert clickhouse.rows(f"SELECT n FROM shop.{view}") == [["2"]]
    (full,) = clickhouse.rows(f"SELECT engine_full FROM system.tables WHERE name = '{view}_rows'")
    assert "TTL toDateTime(_leat_time) + toIntervalSecond(2)" in full[0]


@pytest.mark.parametrize("retention", [60_000, None])
def test_a_view_of_all_rows(
    connector: ClickHouseConnector, view: str, clickhouse: ClickHouseServer, retention: int | None
) -> None:
    connector.show_view(shown(view, primary_key=(), retention_ms=retention))
    clickhouse.run(f"INSERT INTO shop.{view}_rows (`user id`, n) VALUES (1, 1), (1, 1)")
    assert clickhouse.rows(f"SELECT count() FROM shop.{view}") == [["2"]]


def test_what_is_no_view_of_leatstream_stays(
    connector: ClickHouseConnector, view: str, clickhouse: ClickHouseServer
) -> None:
    clickhouse.run(f"CREATE VIEW shop.{view} AS SELECT 1")
    with pytest.raises(StoreError) as caught:
        connector.show_view(shown(view))
    assert caught.value.code == "entity-conflict"
    connector.drop_view(view)
    assert clickhouse.rows(f"SELECT * FROM shop.{view}") == [["1"]]
    clickhouse.run(f"DROP VIEW shop.{view}")


def test_a_dropped_view_leaves_nothing(
    connector: ClickHouseConnector, view: str, clickhouse: ClickHouseServer
) -> None:
    connector.show_view(shown(view))
    for _ in range(2):
        connector.drop_view(view)
    assert clickhouse.rows(f"SELECT count() FROM system.tables WHERE name LIKE '{view}%'") == [["0"]]


def test_a_version_fills_rows_of_its_own_until_the_view_shows_them(
    connector: ClickHouseConnector, view: str, clickhouse: ClickHouseServer
) -> None:
    """Blue-green: other columns and another key, and the way back."""
    old, new = shown(view), shown(view, columns=COLUMNS[::-1], primary_key=("n",), version=GREEN)
    connector.show_view(old)
    before = opened(connector, view)
    write(before, 0, (1, 1), (2, 1))
    for _ in range(2):
        connector.create_view_rows(new)
    after = opened(connector, view, version=GREEN, key_columns=["n"])
    assert after.target.entity == connector.view_rows(view, GREEN) == f"{view}_rows_12345678"
    write(after, 0, (1, 7), (2, 7), (3, 8))
    everything = f"SELECT * FROM shop.{view} ORDER BY n, `user id`"
    assert clickhouse.rows(everything) == [["1", "1"], ["2", "1"]]
    for _ in range(2):
        connector.show_view(new)
    assert clickhouse.rows(everything) == [["7", "2"], ["8", "3"]], "n is the key, and its first column"
    # Each version's batches count for themselves, in one table of batches.
    write(before, 1, (5, 5))
    write(after, 0, (1, 7), (2, 7), (3, 8))
    write(after, 1, (4, 9))
    assert clickhouse.rows(f"SELECT count() FROM shop.{view}") == [["3"]]
    connector.show_view(old)
    assert clickhouse.rows(everything) == [["1", "1"], ["2", "1"], ["5", "5"]]
    connector.show_view(new)
    for _ in range(2):
        connector.drop_view_rows(view, "")
    assert clickhouse.rows(f"SELECT count() FROM shop.{view}") == [["3"]]
    names = f"SELECT name FROM system.tables WHERE name LIKE '{view}%' ORDER BY name"
    assert clickhouse.rows(names) == [[view], [f"{view}_rows_12345678"]]
    connector.drop_view(view, ["", GREEN])
    assert clickhouse.rows(names) == []


def test_readers_meet_one_version_or_the_other(
    connector: ClickHouseConnector, view: str, clickhouse: ClickHouseServer
) -> None:
    """The view is never missing, empty or of both while it changes over; in the end nothing is left over."""
    versions = [shown(view), shown(view, version=GREEN)]
    for n, version in enumerate(versions):
        connector.create_view_rows(version)
        write(opened(connector, view, version=version.version), 0, *((key, n) for key in range(50)))
    connector.show_view(versions[0])
    over, seen = threading.Event(), []

    def read() -> None:
        while not over.is_set():
            seen.append(clickhouse.rows(f"SELECT count(), min(n), max(n) FROM shop.{view}"))

    with ThreadPoolExecutor() as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for turn in range(20):
            connector.show_view(versions[turn % 2])
        over.set()
        for reader in readers:
            reader.result()
    assert sorted({tuple(row) for (row,) in seen}) == [("50", "0", "0"), ("50", "1", "1")]
    names = f"SELECT count() FROM system.tables WHERE database = 'shop' AND name LIKE '%{view}%'"
    assert clickhouse.rows(names) == [["3"]]


def test_indexes_skip_what_a_condition_excludes(
    connector: ClickHouseConnector, view: str, clickhouse: ClickHouseServer
) -> None:
    connector.add_view_index(view, "", "early", COLUMNS)
    connector.show_view(shown(view))
    writer = opened(connector, view)
    write(writer, 0, *((key, key % 3) for key in range(20_000)))
    write(writer, 1, (5, 7_000))
    for _ in range(2):
        connector.add_view_index(view, "", "by n", COLUMNS[1:])
    connector.add_view_index(view, "", "by n.1", COLUMNS[1:])
    clickhouse.run(f"OPTIMIZE TABLE shop.{view}_rows FINAL")
    names = f"SELECT name FROM system.data_skipping_indices WHERE table = '{view}_rows' ORDER BY name"
    assert clickhouse.rows(names) == [
        ["by n.0.bloom_filter"],
        ["by n.0.minmax"],
        ["by n.1.0.bloom_filter"],
        ["by n.1.0.minmax"],
    ]
    query = f"SELECT count() FROM shop.{view} WHERE n = 7000"
    plan = clickhouse.run(f"EXPLAIN indexes = 1 {query}")
    assert "Granules: 1/3" in plan[plan.index("Name: by n.0") :], plan
    assert clickhouse.rows(query) == [["1"]]
    connector.drop_view_index(view, "", "by n")
    assert clickhouse.rows(names) == [["by n.1.0.bloom_filter"], ["by n.1.0.minmax"]]
    connector.drop_view_index(view, "", "by n")
    connector.drop_view_index("nowhere", "", "by n")
