"""What the sink of every table store must do, by jobs over files whose sink is a table of a real server.

A kind subclasses ``TableSinkSuite`` and provides the fixture ``server``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pyspark.sql import SparkSession
from query_shapes import CHANGES, QueryShapes
from table_run import Row, TableRun, TableServer

from leatstream.connectors.base import Connector
from leatstream.errors import AttemptBehindError, JobError
from leatstream.model.objects import Column
from leatstream.model.types import parse_type

ITEMS = {"s": {"columns": "id BIGINT, name VARCHAR, n INTEGER"}}


def items(*numbers: int) -> dict[str, list[list[Any]]]:
    """Rows of ITEMS."""
    return {"s": [[str(i), {"id": i, "name": f"item\t{i}\n\\.", "n": i % 7}, i] for i in numbers]}


def changes(*rows: tuple[int, str | None]) -> dict[str, list[list[Any]]]:
    """Changes of CHANGES; None deletes."""
    return {"c": [[str(i), None if name is None else {"id": str(i), "name": name}, 1] for i, name in rows]}


MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901)
VALUES: Mapping[str, tuple[str, Any, Any]] = {
    "a": ("BOOLEAN", True, True),
    "b": ("TINYINT", -7, -7),
    "c": ("BIGINT", 2**53 + 1, 2**53 + 1),
    "d": ("DOUBLE", 1e300, 1e300),
    "e": ("FLOAT", 0.5, 0.5),
    "f": ("DECIMAL(20, 4)", "12345678901234.5678", Decimal("12345678901234.5678")),
    "g": ("VARCHAR", "ß \\N \\. \t\r\n \"'{}, 🙂", "ß \\N \\. \t\r\n \"'{}, 🙂"),
    "h": ("DATE", "2024-02-29", date(2024, 2, 29)),
    "i": ("TIMESTAMP", "2026-01-02 03:04:05.678901", MOMENT),
    "j": ("TIMESTAMP_LTZ", "2026-01-02T03:04:05.678901Z", MOMENT.replace(tzinfo=UTC)),
    "k": ("BYTES", "AAECXA==", b"\x00\x01\x02\\"),
    "l": ("ARRAY<VARCHAR>", ["a", None, 'x"\\,{}', ""], ["a", None, 'x"\\,{}', ""]),
    "m": ("ARRAY<BIGINT>", [1, None, 3], [1, None, 3]),
    "o": ("MAP<VARCHAR, BIGINT>", {"x": 1}, {"x": 1}),
    "q": ("ARRAY<STRUCT<u BIGINT>>", [{"u": 1}], [{"u": 1}]),
    "r": ("VARCHAR", "", ""),
    "p": ("STRUCT<u VARCHAR, v ARRAY<BIGINT>>", {"u": "é", "v": [1]}, {"u": "é", "v": [1]}),
}
"""Column to type, JSON value, and the value that the table's users read."""


class TableSinkSuite(QueryShapes):
    """The suite."""

    values: ClassVar[Mapping[str, tuple[str, Any, Any]]] = VALUES
    """As VALUES; a kind replaces what its tables keep in another form, and documents why."""

    @pytest.fixture
    def server(self) -> TableServer:
        """The kind's server."""
        raise NotImplementedError

    @pytest.fixture
    def start(
        self, spark: SparkSession, server: TableServer, tmp_path: Path
    ) -> Iterator[Callable[..., TableRun]]:
        """Makes jobs, with their tables."""
        made: list[TableRun] = []

        def begin(
            sql: str,
            relations: dict[str, Any] = ITEMS,
            *,
            make: bool = True,
            items: tuple[Connector, str] | None = None,
        ) -> TableRun:
            one = TableRun(spark, tmp_path / str(len(made)), sql, relations, server, items)
            made.append(one)
            if make:
                one.make()
            return one

        yield begin
        for one in made:
            one.target.drop_entity(one.table)

    @pytest.mark.core
    def test_a_stream_is_appended_and_a_replayed_batch_is_not(self, start: Callable[..., TableRun]) -> None:
        job = start("CREATE STREAM o WITH ('store'='x') AS SELECT id, name, n FROM s WHERE n <> 3")
        job.give(items(*range(50)))
        job.run()
        job.give(items(*range(50, 60)))
        job.run(job.attempt(2))
        kept = [(i, f"item\t{i}\n\\.", i % 7) for i in range(60) if i % 7 != 3]
        assert job.rows() == kept
        job.uncommit(1)
        job.run(job.attempt(3))
        assert sum(sink.written.rows for sink in job.started.sinks) == 0
        job.give(items(60))
        job.run(job.attempt(3))
        assert job.rows() == [*kept, (60, "item\t60\n\\.", 4)]

    def test_an_older_attempt_cannot_write(self, start: Callable[..., TableRun]) -> None:
        job = start("CREATE STREAM o WITH ('store'='x') AS SELECT id, name, n FROM s")
        job.give(items(1))
        job.run(job.attempt(3))
        job.give(items(2))
        with pytest.raises(AttemptBehindError) as behind:
            job.run(job.attempt(2))
        assert behind.value.newest == 3
        assert [row[0] for row in job.rows()] == [1]

    def test_a_checkpoint_older_than_the_table_is_refused(self, start: Callable[..., TableRun]) -> None:
        job = start("CREATE STREAM o WITH ('store'='x') AS SELECT id, name, n FROM s")
        job.give(items(1))
        job.run()
        lost = Path(job.spec.checkpoint.removeprefix("file://"))
        lost.rename(lost.with_name("aside"))
        with pytest.raises(JobError, match="knows of nothing, but the sink holds batch 0"):
            job.run(job.attempt(2))
        fresh = {"attempt": 3, "checkpoint": job.spec.checkpoint.replace("/g1", "/g2")}
        job.run(job.spec.model_copy(update=fresh))
        assert [row[0] for row in job.rows()] == [1, 1], "another checkpoint counts its batches from 0"

    def test_groups_replace_each_other_and_are_deleted(self, start: Callable[..., TableRun]) -> None:
        job = start(
            "CREATE CHANGELOG o WITH ('store'='x') AS"
            " SELECT n, count(*) AS c FROM s GROUP BY n HAVING count(*) < 4"
        )
        job.give(items(*range(14)))
        job.run()
        assert job.rows() == [(i, 2) for i in range(7)]
        job.give(items(0, 7, 1))
        job.run(job.attempt(2))
        assert job.rows() == [(1, 3), *((i, 2) for i in range(2, 7))]
        job.uncommit(1)
        job.run(job.attempt(3))
        assert job.rows() == [(1, 3), *((i, 2) for i in range(2, 7))]

    @pytest.mark.core
    def test_a_keys_last_row_counts_and_tombstones_delete(self, start: Callable[..., TableRun]) -> None:
        job = start("CREATE CHANGELOG o WITH ('store'='x') AS SELECT id, name FROM c", CHANGES)
        job.give(changes((1, "a"), (2, "b"), (1, "c"), (3, "d"), (3, None), (4, None), (4, "e"), (9, None)))
        job.run()
        assert job.rows() == [("1", "c"), ("2", "b"), ("4", "e")]
        job.give(changes((1, None), (5, "f"), (2, None), (2, "g")))
        job.run()
        assert job.rows() == [("2", "g"), ("4", "e"), ("5", "f")]

    def test_every_type_arrives_as_it_is(self, start: Callable[..., TableRun]) -> None:
        columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in self.values.items())
        sql = f"CREATE STREAM o WITH ('store'='x') AS SELECT {', '.join(self.values)} FROM s"
        job = start(sql, {"s": {"columns": columns}})
        record = {name: value for name, (_, value, _) in self.values.items()}
        job.give({"s": [[None, record, 1]]})
        job.run()
        job.give({"s": [[None, {}, 1]]})
        job.run(job.attempt(2))
        rows: Sequence[Row] = job.rows()
        (full,) = [row for row in rows if row[0] is not None]
        (empty,) = [row for row in rows if row[0] is None]
        assert dict(zip(self.values, full, strict=True)) == {
            name: shown for name, (_, _, shown) in self.values.items()
        }
        assert empty == (None,) * len(self.values)

    def test_a_table_that_is_gone(self, start: Callable[..., TableRun]) -> None:
        job = start("CREATE STREAM o WITH ('store'='x') AS SELECT id, name, n FROM s", make=False)
        job.give(items(1))
        assert "is gone" in job.failure().detail

    def test_a_table_of_another_shape(self, start: Callable[..., TableRun]) -> None:
        job = start("CREATE STREAM o WITH ('store'='x') AS SELECT id, name, n FROM s", make=False)
        other = [Column("id", parse_type("BIGINT")), Column("name", parse_type("BOOLEAN"))]
        job.target.create_table(job.table, other, ())
        job.give(items(1))
        detail = job.failure().detail
        for words in ("no column n", "column name is VARCHAR"):
            assert words in detail
