"""Iceberg tables as sources and in lookups, by real Spark over a REST catalog of our own."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lakes import Lake
from pyspark.sql import DataFrame, SparkSession

from leatstream.connectors.entities import NewRecord
from leatstream.connectors.iceberg.options import SKIP, START
from leatstream.connectors.store_marks import find_mark
from leatstream.formats import json_writing
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, LookupSpec, SourceSpec, StoreRef

pytestmark = pytest.mark.spark
_COLUMNS = [ColumnSpec(name="id", type="BIGINT"), ColumnSpec(name="name", type="VARCHAR")]


class Crash(Exception):
    """What a batch ends with whose work is done, before Spark notes it."""


class Reading:
    """A query over a table of its own."""

    def __init__(self, lake: Lake, spark: SparkSession, folder: Path, keys: list[str]) -> None:
        self.lake, self.spark, self.folder = lake, spark, folder
        self.entity = f"reading.t_{uuid.uuid4().hex[:8]}"
        self.connector = lake.connector()
        columns = [Column(c.name, parse_type(c.type), c.name in keys) for c in _COLUMNS]
        self.connector.create_table(self.entity, columns, keys)
        self.batches: list[list[int]] = []
        self.crash = False

    def add(self, *ids: int) -> int:
        """Append rows in one commit, or replace those of a key; the id of the snapshot."""
        rows = [NewRecord(None, json.dumps({"id": i, "name": f"n{i}"}).encode()) for i in ids]
        self.connector.write_records(self.entity, rows)
        return self.snapshot()

    def table(self) -> Any:
        """The table, past leatstream."""
        return self.lake.catalog.load_table(tuple(self.entity.split(".")))

    def snapshot(self) -> int:
        """The present one's id."""
        found = self.table().current_snapshot()
        assert found is not None
        return int(found.snapshot_id)

    def read(self, position: str = "earliest", **more: Any) -> list[int]:
        """Everything that is new, sorted, in a query of its own with the same checkpoint."""
        source = SourceSpec(
            view=f"v_{uuid.uuid4().hex[:6]}",
            relation="d.s.r",
            store=StoreRef(name="lake", kind=self.lake.kind, config={}),
            entity=self.entity,
            columns=_COLUMNS,
            value_format="json",
            starting_position=position,  # type: ignore[arg-type]
            **more,
        )
        frame = self.connector.read_stream(self.spark, source, realtime=False)
        begin = len(self.batches)
        place = str(self.folder / "checkpoint")
        query = frame.writeStream.foreachBatch(self._take).option("checkpointLocation", place).start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        return sorted(i for batch in self.batches[begin:] for i in batch)

    def _take(self, frame: DataFrame, number: int) -> None:
        rows = frame.select("value", "timestamp", "__leat_rowmeta.*").collect()
        for row in rows:
            assert row["timestamp"] is not None
            assert row["snapshot"] is not None
            assert row["file"].endswith(".parquet")
        assert len({(row["file"], row["offset"]) for row in rows}) == len(rows)
        found = [json.loads(row["value"]) for row in rows]
        assert all(one["name"] == f"n{one['id']}" for one in found)
        self.batches.append([one["id"] for one in found])
        if self.crash:
            self.crash = False
            raise Crash


@pytest.fixture(params=["iceberg_rest", pytest.param("iceberg_glue", marks=pytest.mark.long)])
def reading(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path
) -> Iterator[Callable[..., Reading]]:
    made: list[Reading] = []
    lake: Lake = request.getfixturevalue(request.param)

    def make(*keys: str) -> Reading:
        made.append(Reading(lake, spark, tmp_path / str(len(made)), list(keys)))
        return made[-1]

    yield make
    for one in made:
        one.connector.drop_entity(one.entity)


def test_earliest_reads_the_rows_that_are_there_and_then_new_ones(reading: Callable[..., Reading]) -> None:
    there = reading()
    assert there.read() == []
    there.add(1, 2)
    there.add(3)
    assert there.read() == [1, 2, 3]
    assert there.read() == []
    there.add(4)
    there.add(5, 6)
    assert there.read() == [4, 5, 6]


def test_latest_a_time_and_a_snapshot_to_start_from(reading: Callable[..., Reading]) -> None:
    there = reading()
    first = there.add(1)
    time.sleep(0.01)
    moment = int(time.time() * 1000)
    there.add(2)
    there.add(3)
    for number, (start, found) in enumerate(
        (
            ({"position": "latest"}, []),
            ({"position": "timestamp", "starting_timestamp_ms": moment}, [2, 3]),
            ({"position": "timestamp", "starting_timestamp_ms": 0}, [1, 2, 3]),
            ({"position": "latest", "options": {START: str(first)}}, [2, 3]),
        )
    ):
        there.folder = there.folder / str(number)
        assert there.read(**start) == found, start  # type: ignore[arg-type]
    there.add(9)
    assert there.read("latest", options={START: str(first)}) == [9]


def test_a_batch_that_failed_is_repeated_alike(reading: Callable[..., Reading]) -> None:
    there = reading()
    there.add(1, 2)
    there.crash = True
    with pytest.raises(Exception, match="Crash"):
        there.read()
    there.add(3)
    assert there.read() == [1, 2, 3]
    assert [sorted(batch) for batch in there.batches] == [[1, 2], [1, 2], [3]]


def test_changed_rows_stop_it_or_are_passed_over(reading: Callable[..., Reading]) -> None:
    there = reading("id")
    there.add(1, 2)
    assert there.read() == [1, 2]
    there.add(2, 3)
    with pytest.raises(Exception, match="changes rows that were read before") as caught:
        there.read()
    mark = find_mark(str(caught.value))
    assert mark is not None
    assert mark[:2] == ("source", "store-rejected")
    assert "'iceberg.skip.overwrites' = TRUE" in mark[2]
    assert there.read(options={SKIP: "true"}) == [2, 3]


def test_a_position_that_was_expired_is_said(reading: Callable[..., Reading]) -> None:
    there = reading()
    first = there.add(1)
    assert there.read() == [1]
    there.add(2)
    there.add(3)
    there.table().maintenance.expire_snapshots().by_id(first).commit()
    with pytest.raises(Exception, match="no longer has the snapshot up to which the query has read"):
        there.read()
    there.folder = there.folder / "new"
    assert there.read() == [1, 2, 3]
    there.folder = there.folder / "old"
    with pytest.raises(Exception, match="they were expired"):
        there.read("timestamp", starting_timestamp_ms=0)
    with pytest.raises(Exception, match="has no snapshot"):
        there.read(options={START: str(first)})


def test_a_new_tables_empty_snapshot_may_be_expired(reading: Callable[..., Reading]) -> None:
    there = reading()
    first = there.snapshot()
    assert there.read("latest") == []
    there.add(1, 2)
    there.add(3)
    there.table().maintenance.expire_snapshots().by_id(first).commit()
    assert there.read("latest") == [1, 2, 3]


def test_rows_are_looked_up_by_their_key(reading: Callable[..., Reading], spark: SparkSession) -> None:
    there = reading("id")
    there.add(1, 2, 3)
    there.add(3, 4)
    spec = LookupSpec(
        view="v",
        relation="d.s.t",
        store=StoreRef(name="lake", kind=there.lake.kind, config={}),
        entity=there.entity,
        columns=_COLUMNS,
        left="t",
        keys=["id"],
        values=["id"],
    )
    reader = there.connector.table_reader(spec)
    keys = spark.createDataFrame([(i,) for i in (2, 3, 77)], "id BIGINT")
    (text,) = reader.texts([keys["id"]], json_writing.nested)
    found = [json.loads(row["value"]) for row in reader.rows(keys.select(text.alias("k0"))).collect()]
    assert sorted(one["id"] for one in found) == [2, 3]
    both = spec.model_copy(update={"keys": ["id", "name"], "values": ["id", "name"], "cache_ttl_ms": 60_000})
    reader = there.connector.table_reader(both)
    pairs = spark.createDataFrame([(2, "n2"), (3, "n4"), (4, "n3"), (1, "n1")], "id BIGINT, name STRING")
    for _ in range(2):
        rows = reader.rows(pairs.select(pairs["id"].alias("k0"), pairs["name"].alias("k1"))).collect()
        assert sorted(json.loads(row["value"])["id"] for row in rows) == [1, 2]
