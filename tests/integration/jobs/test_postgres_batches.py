"""Spark's own batches over a table's changes: one that failed after its work was done is repeated alike."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from deadlines import patient
from postgres_server import PASSWORD, PostgresServer
from pyspark.sql import DataFrame, SparkSession

from leatstream.connectors.base import MAX_OFFSETS
from leatstream.connectors.postgres.cdc import forget, read_changes, watch
from leatstream.connectors.postgres.settings import PostgresConfig
from leatstream.plan.job_spec import ChangeFeed, ColumnSpec, SourceSpec, StoreRef

Batches = dict[int, list[tuple[Any, ...]]]


class Crash(Exception):
    """What a batch ends with whose work is done, before Spark notes it."""


@pytest.fixture
def table(postgres: PostgresServer) -> Iterator[tuple[str, psycopg.Connection[Any]]]:
    name = f"t_{uuid.uuid4().hex[:8]}"
    with postgres.connect() as connection:
        connection.execute("SET ROLE shop")
        connection.execute(f"CREATE TABLE public.{name} (id bigint PRIMARY KEY, name text, big text)")
        connection.execute(f"ALTER TABLE public.{name} ALTER big SET STORAGE EXTERNAL")
        connection.execute(
            f"INSERT INTO public.{name} SELECT i, 'n' || i, repeat('x', 3000) FROM generate_series(1, 250) i"
        )
        yield name, connection


def test_a_repeated_batch_has_the_same_records(
    spark: SparkSession, postgres: PostgresServer, table: tuple[str, Any], tmp_path: Path
) -> None:
    name, connection = table
    config = PostgresConfig(**postgres.config(), password=PASSWORD)
    own = f"leat_{uuid.uuid4().hex[:8]}_g1_0"
    source = SourceSpec(
        view=f"v_{name}",
        relation="d.s.r",
        store=StoreRef(name="pg", kind="postgres", config={}),
        entity=name,
        columns=[ColumnSpec(name=n, type=t) for n, t in (("id", "BIGINT"), ("big", "VARCHAR"))],
        value_format="json",
        key_format="primitive",
        starting_position="earliest",
        primary_key=["id"],
        feed=ChangeFeed(name=own, directory=(tmp_path / "checkpoint" / "changes" / "v").as_uri()),
    )
    spark.conf.set(MAX_OFFSETS, "100")
    seen: list[Batches] = []
    crashes = {1, 3}

    def take(frame: DataFrame, number: int) -> None:
        rows = [tuple(row) for row in frame.select("key", "value", "timestamp").collect()]
        if rows:
            seen[-1][number] = rows
        if number in crashes and rows:
            crashes.remove(number)
            raise Crash(number)

    def run(until: Callable[[], bool]) -> None:
        """One driver's life: until it crashes, or until it is so."""
        seen.append({})
        frame = read_changes(spark, source, "pg", config)
        writer = frame.writeStream.foreachBatch(take).option(
            "checkpointLocation", str(tmp_path / "checkpoint")
        )
        query = writer.start()
        deadline = time.monotonic() + patient(60)
        try:
            while query.isActive and not until():
                assert time.monotonic() < deadline, seen
                time.sleep(0.05)
        finally:
            query.stop()

    def newest() -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for batches in seen:
            for number in sorted(batches):
                found |= {row[0]: row[1] for row in batches[number]}
        return found

    # The second batch of first rows crashes; meanwhile the table changes.
    run(lambda: False)
    assert sorted(seen[0]) == [0, 1]
    connection.execute(f"UPDATE public.{name} SET name = 'new' WHERE id <= 120")
    connection.execute(f"DELETE FROM public.{name} WHERE id > 240")
    run(lambda: False)
    assert seen[1][1] == seen[0][1]
    assert max(seen[1]) == 3
    # Those were changes: large values were looked up, and would be others by now.
    connection.execute(f"UPDATE public.{name} SET big = 'other' WHERE id <= 120")
    run(lambda: sum(v is not None and b'"other"' in v for v in newest().values()) == 120)
    assert seen[2][3] == seen[1][3]
    assert len(seen[1][3]) == 120
    rows = newest()
    # The last first rows were read after the deletion, which is passed over then.
    assert len(rows) == 240
    assert None not in rows.values()
    told = watch(source, "pg", config)
    assert told is not None
    assert (told.name, told.left) == (own, None)
    assert told.lag <= told.kept
    forget(own[: len("leat_12345678_")], "pg", config)
    assert watch(source, "pg", config) is None
