"""Databricks' sink in the suite of all table stores: delta-rs on moto's S3, and a facade for the workspace."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from databricks_server import DatabricksServer
from sink_suite import VALUES, TableSinkSuite, changes, items
from table_run import Row, TableRun, TableServer

from leatstream.connectors.databricks import sink
from leatstream.connectors.databricks.sink import DatabricksTableWriter, write_rows
from leatstream.model.objects import Column
from leatstream.model.types import parse_type

pytestmark = pytest.mark.spark


def rows_of(server: DatabricksServer, entity: str) -> list[Row]:
    table = server.delta(entity).to_pyarrow_dataset().to_table()
    rows = [tuple(_plain(value) for value in row.values()) for row in table.to_pylist()]
    return sorted(rows, key=lambda row: (row[0] is None, row[0]) if row[0] is not None else (True, 0))


def _plain(value: Any) -> Any:
    """A map as people read it, and the zone as Python's own."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    return value


class TestDatabricks(TableSinkSuite):
    values: ClassVar[Any] = VALUES

    @pytest.fixture
    def server(self, databricks: DatabricksServer) -> TableServer:
        return TableServer(
            "databricks", databricks.config(), databricks.secrets, functools.partial(rows_of, databricks)
        )

    def test_a_column_that_is_not_written_is_null(
        self, start: Callable[..., TableRun], databricks: DatabricksServer
    ) -> None:
        job = start("CREATE STREAM o WITH ('store'='x') AS SELECT id, name, n FROM s", make=False)
        kinds = {"more": "TIMESTAMP", "n": "BIGINT", "name": "VARCHAR", "id": "BIGINT"}
        job.target.create_table(job.table, [Column(n, parse_type(t)) for n, t in kinds.items()], ())
        job.give(items(4))
        job.run()
        assert job.rows() == [(None, 4, "item\t4\n\\.", 4)]
        assert databricks.statements[-1].startswith("CREATE TABLE `main`.`default`")

    def test_of_two_writers_of_a_batch_one_writes(
        self, start: Callable[..., TableRun], databricks: DatabricksServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = start("CREATE STREAM o WITH ('store'='x') AS SELECT id, name FROM s")
        writer = job.target.table_writer(job.spec)
        assert isinstance(writer, DatabricksTableWriter)
        batch = pa.record_batch(
            {"c0": pa.array([1], pa.int64()), "c1": ["a"], sink._DELETED: pa.array([False])}
        )
        plain, raced = sink._append, list[str]()

        def append(*given: Any) -> Any:
            write = plain(*given)
            if not raced:  # another attempt's task is first, after this one has looked
                raced.append("once")
                (first,) = write_rows(writer.target, 0, iter([batch]))
                assert first["rows"].to_pylist() == [1]
            return write

        monkeypatch.setattr(sink, "_append", append)
        (told,) = write_rows(writer.target, 0, iter([batch]))
        assert told.to_pylist() == [{"rows": 0, "size": 0}]
        assert job.rows() == [(1, "a")]

    def test_a_query_survives_a_stranger_that_writes_too(
        self, start: Callable[..., TableRun], databricks: DatabricksServer
    ) -> None:
        from deltalake import write_deltalake

        job = start(
            "CREATE CHANGELOG o WITH ('store'='x') AS SELECT id, name FROM c",
            {"c": {"columns": "id VARCHAR, name VARCHAR", "primary_key": ["id"]}},
        )
        job.give(changes((1, "a")))
        job.run()
        table = databricks.delta(job.table)
        write_deltalake(
            table, pa.Table.from_pylist([{"id": "9", "name": "z"}], pa.schema(table.schema())), mode="append"
        )
        job.give(changes((1, None), (2, "b")))
        job.run(job.attempt(2))
        assert job.rows() == [("2", "b"), ("9", "z")]

    def test_a_null_that_the_table_does_not_take_is_told_without_the_row(
        self, start: Callable[..., TableRun]
    ) -> None:
        job = start("CREATE STREAM o WITH ('store'='x') AS SELECT id, name FROM s", make=False)
        columns = [Column("id", parse_type("BIGINT"), True), Column("name", parse_type("VARCHAR"))]
        job.target.create_table(job.table, columns, ())
        writer = job.target.table_writer(job.spec)
        assert isinstance(writer, DatabricksTableWriter)
        batch = pa.record_batch(
            {"c0": pa.array([None], pa.int64()), "c1": ["sesame"], sink._DELETED: pa.array([False])}
        )
        with pytest.raises(RuntimeError, match="does not take a row") as caught:
            list(write_rows(writer.target, 0, iter([batch])))
        assert "sesame" not in str(caught.value)
        assert job.rows() == []
