"""Managed tables of Databricks: made and written by statements that real Spark with Delta Lake runs.

Starting that Spark, and its first MERGE, are most of the time. So a few cases stay in every run, and the suites are
marked ``long``.
"""

from __future__ import annotations

import functools
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pyarrow as pa
import pytest
import test_databricks
from databricks_server import DatabricksServer
from sink_suite import TableSinkSuite
from table_run import TableRun, TableServer
from test_databricks_tables import rows_of

from leatstream.connectors.base import Connector
from leatstream.connectors.databricks.connector import DatabricksConnector
from leatstream.connectors.databricks.managed_sink import ManagedTarget, claim, write_rows
from leatstream.connectors.databricks.staging import StagedColumn
from leatstream.connectors.databricks.volume import QueryFolder
from leatstream.connectors.registry import open_connector
from leatstream.errors import AttemptBehindError
from leatstream.model.objects import Column
from leatstream.model.types import parse_type

pytestmark = pytest.mark.spark
COLUMNS = [Column("id", parse_type("VARCHAR")), Column("n", parse_type("BIGINT"))]


def opened(server: DatabricksServer) -> DatabricksConnector:
    found = open_connector("databricks", "s", server.managed_config(), {"token": server.secrets["token"]})
    assert isinstance(found, DatabricksConnector)
    return found


class _Managed(TableSinkSuite):
    @pytest.fixture
    def server(self, databricks: DatabricksServer) -> TableServer:
        return TableServer(
            "databricks",
            databricks.managed_config(),
            {"token": databricks.secrets["token"]},
            functools.partial(rows_of, databricks),
        )


@pytest.mark.long
class TestEveryTableSink(_Managed):
    """The suite of all table stores."""


@pytest.mark.long
class TestOneTableSink:
    """Of that suite a case that shows the whole way, through Spark's batches."""

    server = _Managed.server
    start = TableSinkSuite.start

    def test_groups_replace_each_other_and_are_deleted(self, start: Callable[..., TableRun]) -> None:
        TableSinkSuite().test_groups_replace_each_other_and_are_deleted(start)


@pytest.mark.long
class TestEveryConnector(test_databricks.TestDatabricks):
    """The suite of all connectors, over a store of managed tables."""

    kind_of_table: ClassVar[str] = "MANAGED"
    test_tables_of_the_workspace_itself_are_not_touched = None  # type: ignore[assignment]
    test_what_is_wrong_with_the_store_is_told_apart = None  # type: ignore[assignment]

    def test_a_schema_is_made_and_named(self, connector: Connector, databricks: DatabricksServer) -> None:
        schema = f"s_{uuid.uuid4().hex[:8]}"
        self.make(connector, f"{schema}.orders")
        assert f"{schema}.orders" in [e.name for e in connector.list_entities()]
        connector.drop_entity(f"{schema}.orders")

    @pytest.fixture
    def connector(self, databricks: DatabricksServer) -> Connector:
        return opened(databricks)

    @pytest.fixture
    def produce(self, databricks: DatabricksServer) -> Any:
        def send(entity: str, values: list[bytes]) -> None:
            rows = ", ".join(f"({int(value)}, NULL, NULL, NULL)" for value in values)
            databricks.execute(f"INSERT INTO `main`.`default`.`{entity}` VALUES {rows}")

        return send


class Table:
    """A table of two columns, and its rows as the table's users read them."""

    def __init__(self, server: DatabricksServer, keys: tuple[str, ...]) -> None:
        self.server, self.keys = server, keys
        self.connector, self.entity = opened(server), f"t_{uuid.uuid4().hex[:8]}"
        self.connector.create_table(self.entity, COLUMNS, keys)

    def attempt(self, number: int) -> ManagedTarget:
        """An attempt of the query ``q``; it has to be claimed."""
        return ManagedTarget(
            store="s",
            config=self.connector.settings,
            entity=self.entity,
            name=f"`main`.`default`.`{self.entity}`",
            identity=str(self.connector.incarnation(self.entity)),
            columns=(StagedColumn("id", "VARCHAR", "string"), StagedColumn("n", "BIGINT", "bigint")),
            keys=self.keys,
            query="q",
            checkpoint="g1",
            attempt=number,
        )

    def rows(self) -> list[tuple[Any, ...]]:
        return rows_of(self.server, self.entity)

    def folder(self) -> QueryFolder:
        return self.attempt(0).folder()


def write(target: ManagedTarget, number: int, *rows: tuple[str, int | None]) -> int:
    """Write a batch as a task does; None deletes. How many rows were sent."""
    batch = pa.record_batch(
        [pa.array([i for i, _ in rows]), pa.array([n for _, n in rows], pa.int64()), [n is None for _, n in rows]],
        ["c0", "c1", "d"],
    )  # fmt: skip
    (counts,) = write_rows(target, number, iter([batch]))
    found: int = counts["rows"][0].as_py()
    return found


@pytest.fixture
def table(databricks: DatabricksServer) -> Iterator[Callable[..., Table]]:
    made: list[Table] = []

    def make(*keys: str) -> Table:
        made.append(Table(databricks, keys))
        return made[-1]

    yield make
    for one in made:
        one.connector.drop_entity(one.entity)


def test_rows_are_appended_once_although_answers_are_lost(
    table: Callable[..., Table], databricks: DatabricksServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table()
    first = rows.attempt(1)
    assert claim(first) is None
    monkeypatch.setattr(databricks, "lost", 1)
    assert write(first, 0, ("a", 1), ("b", None)) == 2
    assert databricks.lost == 0
    assert rows.rows() == [("a", 1), ("b", None)]
    assert write(first, 0, ("a", 1), ("b", None)) == 0, "it is noted"
    # The driver ends behind the commit: the batch is not noted, and comes again.
    rows.folder()._delete(f"{rows.folder().path}/batches/g1/0")
    second = rows.attempt(2)
    assert claim(second) is None
    write(second, 0, ("a", 1), ("b", None))
    assert rows.rows() == [("a", 1), ("b", None)]
    with pytest.raises(RuntimeError, match="A newer attempt of the query writes"):
        write(first, 1, ("c", 1))
    with pytest.raises(AttemptBehindError) as behind:
        claim(first)
    assert behind.value.newest == 2
    assert claim(rows.attempt(3)) == 0
    assert rows.folder().staged() == []
    assert rows.folder().attempts() == [3]


@pytest.mark.long
def test_the_last_row_of_a_key_is_merged_and_an_older_attempt_writes_nothing(
    table: Callable[..., Table], databricks: DatabricksServer
) -> None:
    rows = table("id")
    first, second = rows.attempt(1), rows.attempt(2)
    claim(first)
    assert write(first, 0, ("a", 1), ("b", 2), ("a", 3), ("c", None)) == 4
    assert rows.rows() == [("a", 3), ("b", 2)]
    # The first attempt's statement waits in the warehouse while the second one begins.
    release = databricks.managed.hold_next()
    failed: list[BaseException] = []

    def late() -> None:
        try:
            write(first, 1, ("a", 100), ("z", 100))
        except RuntimeError as error:
            failed.append(error)

    sent, waiting = len(databricks.statements), threading.Thread(target=late)
    waiting.start()
    try:
        while len(databricks.statements) == sent and waiting.is_alive():
            waiting.join(0.05)
        assert claim(second) == 0
        write(second, 1, ("a", None), ("b", 4))
    finally:
        release.set()
        waiting.join()
    assert "A newer attempt of the query writes" in str(failed[0])
    assert rows.rows() == [("b", 4)]


@pytest.mark.long
def test_a_managed_table_is_shown_and_dropped_with_its_folder(
    table: Callable[..., Table], databricks: DatabricksServer
) -> None:
    rows = table("id")
    claim(rows.attempt(1))
    write(rows.attempt(1), 0, ("a", None), ("b", 2))
    found = rows.connector.find_entity(rows.entity)
    assert found is not None
    assert found.table is not None
    assert found.table.details["type"] == "MANAGED"
    assert found.table.primary_key == ("id",)
    read = rows.connector.read_records(rows.entity, from_beginning=True, limit=5, idle_timeout=None)
    assert [(r.key, r.value) for r in read if r is not None] == [(b'{"id":"b"}', b'{"id":"b","n":2}')]
    identity = rows.attempt(1).identity
    assert any(identity in path for path in databricks.managed.files())
    rows.connector.drop_entity(rows.entity)
    assert rows.connector.find_entity(rows.entity) is None
    assert not any(identity in path for path in databricks.managed.files())
