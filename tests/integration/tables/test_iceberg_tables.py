"""The sinks of both Iceberg kinds in the suite of all table stores, and what is Iceberg's own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from lakes import Lake, duckdb_on, read_by_duckdb
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, DayTransform, Transform
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, TimestampType
from pyspark.sql import SparkSession
from query_shapes import CHANGES, SHAPES, QueryShapes
from sink_suite import VALUES, TableSinkSuite, changes, items
from table_run import TableRun, TableServer

from leatstream.connectors.iceberg import commits
from leatstream.connectors.iceberg.sink import IcebergTableWriter
from leatstream.connectors.iceberg.tables import IcebergConnector
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, JobSpec, Mode, SinkSpec, StoreRef

pytestmark = pytest.mark.spark
_SELECT = "CREATE STREAM o WITH ('store'='x') AS SELECT id, name, n FROM s"


def _spec(lake: Lake, entity: str, columns: list[ColumnSpec], keys: list[str]) -> JobSpec:
    """A job whose sink is the table."""
    sink = SinkSpec(
        relation="d.s.o",
        store=StoreRef(name="lake", kind=lake.kind, config=dict(lake.config)),
        entity=entity,
        columns=columns,
        value_format="json",
        key_columns=keys,
    )
    return JobSpec(
        query_id=uuid.uuid4().hex,
        query_name="q",
        generation=1,
        attempt=1,
        fencing_token="t",
        sql="",
        sources=[],
        sink=sink,
        mode=Mode.MICRO_BATCH,
        mode_reason="",
        checkpoint="file:///nowhere/g1",
    )


class Writers:
    """Attempts of one query at a table of its own."""

    def __init__(self, lake: Lake, spark: SparkSession, keys: list[str]) -> None:
        self.lake = lake
        self.spark = spark
        self.entity = f"race.t_{uuid.uuid4().hex[:8]}"
        columns = [
            ColumnSpec(name="id", type="BIGINT", not_null=True),
            ColumnSpec(name="name", type="VARCHAR"),
        ]
        self.spec = _spec(lake, self.entity, columns, keys)
        self.connector = lake.connector()
        self.connector.create_table(
            self.entity, [Column(c.name, parse_type(c.type), c.not_null) for c in columns], keys
        )

    def open(self, attempt: int = 1, checkpoint: str = "g1") -> IcebergTableWriter:
        """A writer with a connector of its own."""
        place = f"file:///nowhere/{checkpoint}"
        spec = self.spec.model_copy(update={"attempt": attempt, "checkpoint": place})
        connector = self.lake.connector()
        assert isinstance(connector, IcebergConnector)
        found = connector.table_writer(spec)
        assert isinstance(found, IcebergTableWriter)
        return found

    def frame(self, *ids: int, name: str = "a", deleted: bool = False) -> Any:
        """Rows in the form that writers take."""
        key = "struct(id AS c0)" if self.spec.sink.key_columns else "CAST(NULL AS STRUCT<c0: STRING>)"
        value = (
            "CAST(NULL AS STRUCT<c0: BIGINT, c1: STRING>)" if deleted else f"struct(id AS c0, '{name}' AS c1)"
        )
        rows = self.spark.createDataFrame([(i,) for i in ids], "id BIGINT")
        return rows.selectExpr(f"{key} AS key", f"{value} AS value")

    def partition(self, column: str, transform: Transform[Any, Any]) -> None:
        """Let the table be partitioned by a column from now on."""
        with self.lake.catalog.load_table(tuple(self.entity.split("."))).update_spec() as spec:
            spec.add_field(column, transform, "part")

    def count(self) -> int:
        """How many rows the table has."""
        return len(self.lake.rows(self.entity))


class IcebergSuite(TableSinkSuite):
    """What both kinds must do."""

    lake_name: ClassVar[str]

    @pytest.fixture
    def lake(self, request: pytest.FixtureRequest) -> Lake:
        found: Lake = request.getfixturevalue(self.lake_name)
        return found

    @pytest.fixture
    def server(self, lake: Lake) -> TableServer:
        return TableServer(lake.kind, lake.config, lake.secrets, lake.rows, lambda name: f"suite.{name}")

    @pytest.fixture
    def writers(self, lake: Lake, spark: SparkSession) -> Iterator[Callable[..., Writers]]:
        made: list[Writers] = []

        def make(*keys: str) -> Writers:
            made.append(Writers(lake, spark, list(keys)))
            return made[-1]

        yield make
        for one in made:
            one.connector.drop_entity(one.entity)

    @pytest.mark.parametrize("keys", [(), ("id",)])
    def test_two_attempts_with_the_same_batch_write_it_once(
        self, writers: Callable[..., Writers], keys: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The second one commits between the moment when the first looks and that when it commits."""
        there = writers(*keys)
        first, second = there.open(), there.open()
        commit = Table._do_commit
        raced: list[int] = []

        def after_the_other(self: Table, updates: Any, requirements: Any) -> None:
            if not raced:
                raced.append(1)
                raced.append(second.write(there.frame(*range(1000)), 0).rows)
            commit(self, updates, requirements)

        monkeypatch.setattr(Table, "_do_commit", after_the_other)
        assert first.write(there.frame(*range(1000)), 0).rows == 0
        assert raced == [1, 1000]
        assert there.count() == 1000
        assert first.write(there.frame(*range(1000, 1100)), 1).rows == 100
        assert there.count() == 1100

    def test_a_stranger_who_was_faster_is_waited_for(
        self, writers: Callable[..., Writers], lake: Lake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        there = writers()
        writer = there.open()
        commit, strangers = Table._do_commit, [2]

        def after_a_stranger(self: Table, updates: Any, requirements: Any) -> None:
            if strangers[0]:
                strangers[0] -= 1
                monkeypatch.setattr(Table, "_do_commit", commit)
                stranger = lake.catalog.load_table(tuple(there.entity.split(".")))
                with stranger.transaction() as transaction:
                    transaction.append(stranger.scan().to_arrow().schema.empty_table())
                monkeypatch.setattr(Table, "_do_commit", after_a_stranger)
            commit(self, updates, requirements)

        monkeypatch.setattr(Table, "_do_commit", after_a_stranger)
        assert writer.write(there.frame(1, 2), 0).rows == 2
        assert strangers == [0]
        assert there.count() == 2

    def test_an_older_attempt_is_refused_in_the_middle(self, writers: Callable[..., Writers]) -> None:
        there = writers()
        old = there.open(1)
        old.write(there.frame(1), 0)
        new = there.open(2)
        assert new.committed() == 0
        with pytest.raises(RuntimeError, match="A newer attempt"):
            old.write(there.frame(2), 1)
        new.write(there.frame(3), 1)
        assert [row[0] for row in there.lake.rows(there.entity)] == [1, 3]

    def test_an_old_generations_last_commit_does_not_hide_new_batches(
        self, writers: Callable[..., Writers]
    ) -> None:
        there = writers()
        old = there.open(1, "g1")
        for number in range(3):
            old.write(there.frame(number), number)
        new = there.open(2, "g2")
        assert new.committed() is None
        new.write(there.frame(10), 0)
        assert there.count() == 4

    def test_an_empty_batch_makes_no_commit(self, writers: Callable[..., Writers], lake: Lake) -> None:
        for there in (writers(), writers("id")):
            writer = there.open()
            writer.write(there.frame(1), 0)
            before = lake.catalog.load_table(tuple(there.entity.split("."))).metadata_location
            assert writer.write(there.frame(), 1).rows == 0
            after = lake.catalog.load_table(tuple(there.entity.split("."))).metadata_location
            assert after == before
            writer.write(there.frame(2), 2)
            folders = [path.rsplit("/", 2)[0] for path in lake.data_files(there.entity)]
            assert len(set(folders)) == 1, "each batch has its folder beside the others"

    def test_files_of_failed_attempts_go_with_the_query(
        self, writers: Callable[..., Writers], lake: Lake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        there = writers()
        writer = there.open()
        writer.write(there.frame(1, 2), 0)
        good = lake.data_files(there.entity)
        monkeypatch.setattr("leatstream.connectors.iceberg.sink.commit_batch", _crash)
        with pytest.raises(ZeroDivisionError):
            writer.write(there.frame(3), 1)
        assert lake.data_files(there.entity) > good
        there.connector.forget_sink(there.spec.query_id, there.entity, 20)
        assert lake.data_files(there.entity) == good
        properties = lake.catalog.load_table(tuple(there.entity.split("."))).properties
        assert not [key for key in properties if key.startswith("leatstream.")]
        assert there.count() == 2
        there.connector.forget_sink(there.spec.query_id, there.entity, 20)
        there.connector.forget_sink(there.spec.query_id, "race.nowhere", 20)

    def test_a_value_that_does_not_fit_is_not_quoted(self, writers: Callable[..., Writers]) -> None:
        there = writers()
        writer = there.open()
        frame = there.frame(1).selectExpr("key", "named_struct('c0', 'sesame', 'c1', 'x') AS value")
        with pytest.raises(RuntimeError, match="does not take a value of column id") as caught:
            writer.write(frame, 0)
        assert "sesame" not in str(caught.value)

    def test_a_key_of_two_columns(self, start: Callable[..., TableRun]) -> None:
        sql = "CREATE CHANGELOG o WITH ('store'='x') AS SELECT n, name, count(*) AS c FROM s GROUP BY n, name"
        job = start(sql)
        job.give(items(1, 2, 9))
        job.run()
        before = [(1, "item\t1\n\\.", 1), (2, "item\t2\n\\.", 1), (2, "item\t9\n\\.", 1)]
        assert sorted(job.rows()) == before
        job.give(items(9, 1))
        job.run(job.attempt(2))
        assert sorted(job.rows()) == [(1, "item\t1\n\\.", 2), before[1], (2, "item\t9\n\\.", 2)]

    def test_existing_partitioned_tables(self, start: Callable[..., TableRun], lake: Lake) -> None:
        schema = Schema(
            NestedField(1, "id", LongType(), required=True),
            NestedField(2, "name", StringType(), required=False),
            NestedField(3, "n", IntegerType(), required=False),
            NestedField(4, "extra", StringType(), required=False),
        )
        spec = PartitionSpec(PartitionField(2, 1000, BucketTransform(4), "name_bucket"))
        job = start(_SELECT.replace("SELECT id,", "SELECT CAST(id AS BIGINT) AS id,"), make=False)
        lake.catalog.create_namespace_if_not_exists("suite")
        lake.catalog.create_table(tuple(job.table.split(".")), schema, partition_spec=spec)
        job.give(items(*range(40)))
        job.run()
        assert job.rows() == [(i, f"item\t{i}\n\\.", i % 7, None) for i in range(40)]
        paths = lake.data_files(job.table)
        assert {path.split("name_bucket=")[1][0] for path in paths} == {"0", "1", "2", "3"}

    def test_an_existing_partitioned_table_with_a_key(
        self, start: Callable[..., TableRun], lake: Lake
    ) -> None:
        schema = Schema(
            NestedField(1, "id", StringType(), required=True),
            NestedField(2, "name", StringType(), required=False),
            NestedField(3, "seen", TimestampType(), required=False),
            identifier_field_ids=[1],
        )
        spec = PartitionSpec(
            PartitionField(1, 1000, BucketTransform(2), "id_bucket"),
            PartitionField(3, 1001, DayTransform(), "seen_day"),
        )
        job = start("CREATE CHANGELOG o WITH ('store'='x') AS SELECT id, name FROM c", CHANGES, make=False)
        lake.catalog.create_namespace_if_not_exists("suite")
        lake.catalog.create_table(tuple(job.table.split(".")), schema, partition_spec=spec)
        job.give(changes((1, "a"), (2, "b"), (3, "c")))
        job.run()
        job.give(changes((1, None), (2, "B"), (4, "d")))
        job.run(job.attempt(2))
        assert job.rows() == [("2", "B", None), ("3", "c", None), ("4", "d", None)]


def _crash(*_: Any) -> bool:
    raise ZeroDivisionError


class TestIcebergRest(IcebergSuite):
    lake_name: ClassVar = "iceberg_rest"

    @pytest.mark.core
    @pytest.mark.parametrize("name", SHAPES)
    def test_a_query_of_each_shape(
        self, name: str, start: Callable[..., TableRun], server: TableServer, request: pytest.FixtureRequest
    ) -> None:
        super().test_a_query_of_each_shape(name, start, server, request)

    @pytest.mark.parametrize("partitioned", [False, True])
    @pytest.mark.parametrize("keys", [(), ("id",)])
    def test_another_engine_reads_the_same_rows(
        self, writers: Callable[..., Writers], lake: Lake, keys: tuple[str, ...], partitioned: bool
    ) -> None:
        """Appended, repeated, replaced and deleted ones; the reader shares no code with the writer."""
        there = writers(*keys)
        if partitioned:
            there.partition("id", BucketTransform(4))
        writer = there.open()
        writer.write(there.frame(*range(50)), 0)
        writer.write(there.frame(*range(50)), 0)
        writer.write(there.frame(*range(40, 60), name="b"), 1)
        wanted = [(i, "a") for i in range(50)] + [(i, "b") for i in range(40, 60)]
        if keys:
            writer.write(there.frame(5, 55, deleted=True), 2)
            wanted = list({i: (i, name) for i, name in wanted if i not in (5, 55)}.values())
        assert read_by_duckdb(lake, there.entity) == sorted(wanted)

    def test_another_engine_reads_every_type(self, start: Callable[..., TableRun], lake: Lake) -> None:
        columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in VALUES.items())
        sql = f"CREATE STREAM o WITH ('store'='x') AS SELECT {', '.join(VALUES)} FROM s"
        job = start(sql, {"s": {"columns": columns}})
        record = {name: value for name, (_, value, _) in VALUES.items()}
        job.give({"s": [[None, record, 1]]})
        job.run()
        (row,) = read_by_duckdb(lake, job.table)
        assert dict(zip(VALUES, row, strict=True)) == {name: shown for name, (*_, shown) in VALUES.items()}

    def test_rows_that_another_engine_deleted_stay_deleted(
        self, writers: Callable[..., Writers], lake: Lake
    ) -> None:
        """It notes them in files of deleted positions, beside the files of data that a batch writes again."""
        there = writers("id")
        writer = there.open()
        writer.write(there.frame(*range(10)), 0)
        with duckdb_on(lake) as engine:
            engine.execute(f"DELETE FROM lake.{there.entity} WHERE id IN (3, 4)")
            engine.execute(f"INSERT INTO lake.{there.entity} VALUES (20, 'theirs')")
        kept = {i: (i, "a") for i in range(10) if i not in (3, 4)} | {20: (20, "theirs")}
        deletes = lake.catalog.load_table(tuple(there.entity.split("."))).inspect.delete_files()
        assert deletes.num_rows == 1
        assert lake.rows(there.entity) == list(kept.values())
        writer.write(there.frame(4, 5, name="b"), 1)
        kept |= {4: (4, "b"), 5: (5, "b")}
        assert lake.rows(there.entity) == read_by_duckdb(lake, there.entity) == sorted(kept.values())

    def test_an_answer_that_was_lost_is_looked_for(
        self, writers: Callable[..., Writers], lake: Lake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        there = writers()
        writer = there.open()
        assert lake.server is not None
        lake.server.broken = ((502, True),)
        assert writer.write(there.frame(1, 2), 0).rows == 2
        assert not lake.server.broken
        assert there.count() == 2

    def test_a_table_that_others_write_all_the_time(
        self, writers: Callable[..., Writers], lake: Lake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        there = writers()
        writer = there.open()
        monkeypatch.setattr(commits, "_PAUSE", 0.001)

        def never(*_: Any, **__: Any) -> None:
            from pyiceberg.exceptions import CommitFailedException

            raise CommitFailedException("branch main has changed")

        monkeypatch.setattr(Table, "_do_commit", never)
        with pytest.raises(RuntimeError, match="others committed to the table each of 8 times"):
            writer.write(there.frame(1), 0)


class TestGlueShapes(QueryShapes):
    """Of the suite of Glue, which takes long, what every run shows."""

    lake_name: ClassVar = "iceberg_glue"
    lake = IcebergSuite.lake
    server = IcebergSuite.server
    start = TableSinkSuite.start


@pytest.mark.long
class TestIcebergGlue(IcebergSuite):
    lake_name: ClassVar = "iceberg_glue"
