"""What the sink of every table store must do, by jobs over files whose sink is a table of a real server.

A kind subclasses ``TableSinkSuite`` and provides the fixture ``server``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pyspark.sql import SparkSession
from test_changelogs import Run

from leatstream.connectors.base import Connector
from leatstream.connectors.registry import open_connector
from leatstream.errors import AttemptBehindError, JobError, LeatstreamError
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import Delivery, JobSpec, StoreRef
from leatstream.plan.logical import LogicalPlan
from leatstream_jobs.attempt.failures import Failure, chain_of, classify

Row = tuple[Any, ...]
ITEMS = {"s": {"columns": "id BIGINT, name VARCHAR, n INTEGER"}}
CHANGES = {"c": {"columns": "id VARCHAR, name VARCHAR", "primary_key": ["id"]}}


@dataclass(frozen=True)
class TableServer:
    """A running server of a kind, as tests see it.

    Attributes:
        kind: of the store.
        config: settings without secrets.
        secrets: field path to value.
        rows: reads a table past leatstream, as its users do: columns in the table's order, sorted by the first.
        entity: makes the entity of a table's short name, such as ``schema.name``.
    """

    kind: str
    config: Mapping[str, Any]
    secrets: Mapping[str, str]
    rows: Callable[[str], list[Row]]
    entity: Callable[[str], str] = field(default=lambda name: name)

    def connector(self) -> Connector:
        """A connector of its own."""
        return open_connector(self.kind, "target", self.config, self.secrets)


class TableRun(Run):
    """A statement over files whose sink is a table."""

    def __init__(
        self, spark: SparkSession, folder: Path, sql: str, relations: dict[str, Any], server: TableServer
    ) -> None:
        super().__init__(spark, folder, sql, relations)
        self.server = server
        self.table = server.entity(f"t_{uuid.uuid4().hex[:8]}")
        self.target = server.connector()
        store = StoreRef(name="target", kind=server.kind, config=dict(server.config))
        updates = self.plan.operator is None and _updates(self.plan)
        self.spec = self.spec.model_copy(
            update={
                "sink": self.spec.sink.model_copy(update={"store": store, "entity": self.table}),
                "query_id": uuid.uuid4().hex,
                "delivery": Delivery.EXACTLY_ONCE,
                "output_mode": "update" if updates else "append",
                "checkpoint": (folder / "q" / "g1").as_uri(),
            }
        )
        self.started: Any = None

    def make(self) -> None:
        """The table that the service would make."""
        columns = [Column(c.name, parse_type(c.type), c.not_null) for c in self.spec.sink.columns]
        self.target.create_table(self.table, columns, self.spec.sink.key_columns)

    def connect(self, store: StoreRef) -> Connector:
        """The server's for the sink, files for the sources."""
        return self.target if store.kind == self.server.kind else self.store

    def attempt(self, number: int) -> JobSpec:
        """The job's next start."""
        return self.spec.model_copy(update={"attempt": number})

    def run(self, spec: JobSpec | None = None) -> None:
        """Process all files, in a job of its own."""
        from leatstream_jobs.attempt import run_query

        self.started = run_query.start(self.spark, spec or self.spec, self.connect, 2)
        try:
            self.started.query.processAllAvailable()
        finally:
            self.started.query.stop()

    def failure(self, spec: JobSpec | None = None) -> Failure:
        """Run to an error, as the driver reports it."""
        try:
            self.run(spec)
        except LeatstreamError as error:
            return Failure(error.code if error.code.startswith("job") else "job-failed", error.detail)
        except Exception:
            return classify(chain_of(self.started.batches.error), self.spec)
        pytest.fail("it did not fail")

    def uncommit(self, batch: int) -> None:
        """Make Spark forget that a batch is complete, as where the driver dies behind the sink's commit."""
        commits = Path(self.spec.checkpoint.removeprefix("file://")) / "commits"
        (commits / str(batch)).unlink()
        (commits / f".{batch}.crc").unlink(missing_ok=True)

    def rows(self) -> list[Row]:
        """The table's rows."""
        return self.server.rows(self.table)


def _updates(plan: LogicalPlan) -> bool:
    return plan.aggregation is not None and plan.aggregation.update


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


class TableSinkSuite:
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

        def begin(sql: str, relations: dict[str, Any] = ITEMS, *, make: bool = True) -> TableRun:
            one = TableRun(spark, tmp_path / str(len(made)), sql, relations, server)
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

    def test_a_changelog_aggregate_reaches_a_table(self, start: Callable[..., TableRun]) -> None:
        sql = "CREATE CHANGELOG o WITH ('store'='x') AS SELECT name, count(*) AS c FROM c GROUP BY name"
        job = start(sql, CHANGES)
        job.give(changes((1, "a"), (2, "a"), (3, "b")))
        job.run()
        assert job.rows() == [("a", 2), ("b", 1)]
        job.give(changes((1, "b"), (2, None)))
        job.run()
        assert job.rows() == [("b", 2)]

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
