"""Batches into tables, as a task writes them: what repeats, breaks off or races doubles nothing."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from clickhouse_connect.driver.httpclient import HttpClient
from clickhouse_server import PASSWORD, ClickHouseServer

from leatstream.connectors.clickhouse import arrow_rows, batches, inserts, sink
from leatstream.connectors.clickhouse.connector import ClickHouseConnector
from leatstream.connectors.clickhouse.sink import Target, write_rows
from leatstream.connectors.clickhouse.values import Taker
from leatstream.connectors.registry import open_connector
from leatstream.model.objects import Column
from leatstream.model.types import parse_type

COLUMNS = [Column("k", parse_type("BIGINT"), not_null=True), Column("v", parse_type("VARCHAR"))]


class Table:
    """A table with a query that writes it."""

    def __init__(self, server: ClickHouseServer, *, keyed: bool) -> None:
        opened = open_connector("clickhouse", "s", server.config(), {"password": PASSWORD})
        assert isinstance(opened, ClickHouseConnector)
        self.connector, self.server, self.keyed = opened, server, keyed
        self.name = f"t_{uuid.uuid4().hex[:8]}"
        opened.create_table(self.name, COLUMNS, ["k"] if keyed else [])
        self.target = Target(
            store="s",
            config=opened.settings,
            entity=self.name,
            takers=(Taker("k", "Int64", not_null=True), Taker("v", "String", not_null=False)),
            keyed=keyed,
            version="_leat_version",
            deleted="_leat_deleted",
            query=self.name,
            checkpoint="g1",
            attempt=1,
        )
        self.begin()

    def begin(self, **of_progress: Any) -> None:
        """Note an attempt, as ``ClickHouseTableWriter`` does."""
        with self.connector.admin.client("a test", 5) as client:
            batches.make(client, "shop")
            found = batches.read(client, "shop", self.name)
            mine = found or batches.Progress(self.name, "g1", 1)
            batches.note(client, "shop", replace(mine, attempt=self.target.attempt, **of_progress))

    def write(self, number: int, rows: list[tuple[Any, ...]], target: Target | None = None) -> int:
        """Write a batch of (k, v), or (k, v, deleted); gives how many rows were sent."""
        keys = pa.array([row[0] for row in rows], pa.int64())
        texts = pa.array([row[1] for row in rows], pa.string())
        columns = {"c0": keys, "c1": texts}
        if self.keyed:
            columns = {arrow_rows.DELETED: pa.array([len(row) > 2 for row in rows])} | columns
        else:
            columns[inserts.HASH] = pa.array([hash(row) for row in rows], pa.int64())
        whole = pa.record_batch(columns)
        # Spark's own batches have any length.
        parts = [whole.slice(0, 7), whole.slice(7)]
        (told,) = write_rows(target or self.target, number, iter(parts))
        return int(told.column(0)[0].as_py())

    def rows(self) -> list[tuple[int, str]]:
        final = " FINAL" if self.keyed else ""
        text = f"SELECT k, v FROM shop.{self.name}{final} ORDER BY k, v"
        return [(int(k), v) for k, v in self.server.rows(text)]


@pytest.fixture
def log(clickhouse: ClickHouseServer) -> Iterator[Table]:
    made = Table(clickhouse, keyed=False)
    yield made
    made.connector.drop_entity(made.name)


@pytest.fixture
def state(clickhouse: ClickHouseServer) -> Iterator[Table]:
    made = Table(clickhouse, keyed=True)
    yield made
    made.connector.drop_entity(made.name)


@pytest.fixture
def small_inserts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inserts, "_ROWS", 10)


def break_after(monkeypatch: pytest.MonkeyPatch, inserts: int) -> None:
    """Lose the connection after so many inserts; the last of them is there."""
    whole, left = HttpClient.raw_insert, [inserts]

    def raw_insert(client: HttpClient, *args: Any, **more: Any) -> Any:
        done = whole(client, *args, **more)
        left[0] -= 1
        if left[0] == 0:
            raise ConnectionResetError("the connection is lost")
        return done

    monkeypatch.setattr(HttpClient, "raw_insert", raw_insert)


ROWS = [(n, f"v{n}") for n in range(23)]


@pytest.mark.usefixtures("small_inserts")
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_batch_that_breaks_off_is_completed_by_its_replay(
    clickhouse: ClickHouseServer, monkeypatch: pytest.MonkeyPatch, keyed: bool, after: int
) -> None:
    table = Table(clickhouse, keyed=keyed)
    with monkeypatch.context() as patch:
        break_after(patch, after)
        with pytest.raises(RuntimeError, match="store-unreachable"):
            table.write(0, ROWS)
    assert len(table.rows()) == ([7, 17, 23] if keyed else [8, 16, 23])[after - 1]
    # Spark gives the rows of a replay in another order, those of one key excepted.
    assert table.write(0, ROWS[::-1]) == 23
    assert table.rows() == ROWS
    assert table.write(0, ROWS) == 0, "it is complete"
    assert table.write(1, [(100, "x")]) == 1
    assert table.rows() == [*ROWS, (100, "x")]
    table.connector.drop_entity(table.name)


def test_tokens_decide_even_where_nothing_is_noted(log: Table) -> None:
    log.write(0, ROWS)
    log.write(1, [(50, "y")])
    with log.connector.admin.client("a test", 5) as client:
        client.command(f"DELETE FROM shop.leatstream_batches WHERE query = '{log.name}'")
    log.begin()
    for number, rows in ((0, ROWS), (1, [(50, "y")])):
        assert log.write(number, rows) == len(rows)
    assert log.rows() == [*ROWS, (50, "y")]


def test_a_batch_of_two_attempts_at_once_is_there_once(log: Table, state: Table) -> None:
    for table in (log, state):
        gate = threading.Barrier(2)

        def write(table: Table = table, gate: threading.Barrier = gate) -> None:
            gate.wait()
            table.write(0, ROWS)

        threads = [threading.Thread(target=write) for _ in range(2)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert table.rows() == ROWS


def test_an_older_attempt_and_another_checkpoint_are_fenced(log: Table, state: Table) -> None:
    for table in (log, state):
        old = table.target
        table.target = replace(old, attempt=2)
        table.begin()
        for wrong in (old, replace(table.target, checkpoint="g0")):
            with pytest.raises(RuntimeError, match="newer attempt"):
                table.write(0, ROWS, wrong)
        assert table.rows() == []
        assert table.write(0, ROWS) == len(ROWS)


def test_two_queries_write_one_table(log: Table, state: Table) -> None:
    """Batches have the same numbers, and the keyed table shows the batch that was written last."""
    for table, found in ((log, [(1, "a"), (1, "b"), (2, "b")]), (state, [(1, "b"), (2, "b")])):
        other = replace(table.target, query=f"{table.name}_b")
        with table.connector.admin.client("a test", 5) as client:
            batches.note(client, "shop", batches.Progress(other.query, "g1", 1))
        for _ in range(2):
            table.write(0, [(1, "a")])
            table.write(0, [(1, "b"), (2, "b")], other)
        assert table.rows() == found


def test_an_older_batch_changes_nothing(state: Table) -> None:
    state.write(0, [(1, "a"), (2, "b")])
    state.write(1, [(1, "c"), (2, None, True)])
    assert state.write(0, [(1, "a"), (2, "b")]) == 0
    assert state.rows() == [(1, "c")]


def test_a_zombie_that_passed_its_fence_writes_the_versions_that_were_noted(
    state: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has read that batch 0 is its turn; meanwhile a newer attempt writes batches 0 and 1."""
    seen = batches.Progress(state.name, "g1", 1)
    newer = replace(state.target, attempt=2)
    state.write(0, [(1, "a"), (2, "b")])
    state.target = newer
    state.begin()
    state.write(1, [(1, "c"), (3, "d")])
    first = int(state.server.rows(f"SELECT min(_leat_version) FROM shop.{state.name}")[0][0]) >> sink.ROW_BITS
    with monkeypatch.context() as patch:
        patch.setattr(batches, "read", lambda *_: seen)
        patch.setattr(batches, "now", lambda *_: first)
        state.write(0, [(1, "a"), (2, "b")], replace(newer, attempt=1))
    assert state.rows() == [(1, "c"), (2, "b"), (3, "d")]
    # What it noted does not count either: the next batch is newer.
    assert state.write(2, [(1, "e")]) == 1
    assert state.rows()[0] == (1, "e")


def test_the_last_row_of_a_key_counts(state: Table) -> None:
    state.write(
        0, [(1, "a"), (2, "b"), (1, "c"), (2, None, True), (3, None, True), (3, "d"), *((9, "x"),) * 9]
    )
    assert state.rows() == [(1, "c"), (3, "d"), (9, "x")]


def test_a_clock_that_goes_back_makes_no_row_older(state: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    state.write(0, [(1, "a")])
    monkeypatch.setattr(batches, "now", lambda _client: 5)
    state.write(1, [(1, "b")])
    assert state.rows() == [(1, "b")]


def test_rows_of_more_than_a_versions_share_stay_in_order(
    state: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink, "ROW_BITS", 2)
    monkeypatch.setattr(batches, "now", lambda _client: 5)
    state.write(0, [(n % 3, f"v{n}") for n in range(20)])
    state.write(1, [(0, "later")])
    assert state.rows() == [(0, "later"), (1, "v19"), (2, "v17")]


def test_a_null_that_a_column_cannot_have_names_it(log: Table) -> None:
    with pytest.raises(RuntimeError, match=f"table {log.name} does not take a value of column k: it is NULL"):
        log.write(0, [(None, "sesame")])
    assert log.rows() == []


def test_a_workers_client_is_kept_until_it_fails(log: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    sink._clients.clear()
    log.write(0, ROWS)
    kept = sink._clients[log.target.config]
    log.write(1, ROWS)
    assert sink._clients[log.target.config] is kept
    with monkeypatch.context() as patch:
        break_after(patch, 1)
        with pytest.raises(RuntimeError, match="store-unreachable"):
            log.write(2, ROWS)
    assert not sink._clients
    log.write(2, ROWS)
    monkeypatch.setattr(HttpClient, "ping", lambda _: False)
    before = sink._clients[log.target.config]
    log.write(3, ROWS)
    assert sink._clients[log.target.config] is not before
    assert len(log.rows()) == 4 * len(ROWS)
