"""Sources of PostgreSQL tables' changes as Spark's planner asks them; Spark itself is not needed."""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
from postgres_server import PASSWORD, PostgresServer
from pyspark.sql.streaming.datasource import ReadMaxRows

from leatstream.connectors.postgres.cdc import forget
from leatstream.connectors.postgres.cdc_records import Form
from leatstream.connectors.postgres.cdc_source import ChangeStream, SourcePlan
from leatstream.connectors.postgres.settings import PostgresConfig

COLUMNS = (("id", "BIGINT"), ("name", "VARCHAR"), ("big", "VARCHAR"))
ROW = 'STRUCT<"id" BIGINT, "name" VARCHAR, "big" VARCHAR>'
ENVELOPE = (
    ("op", "VARCHAR"),
    ("ts_ms", "BIGINT"),
    ("before", ROW),
    ("after", ROW),
    ("source", 'STRUCT<"db" VARCHAR, "schema" VARCHAR, "table" VARCHAR, "lsn" BIGINT>'),
)
KEYED = Form("shop", COLUMNS, ("id",), primitive=True)
PLAIN = Form("shop", ENVELOPE)


@dataclass
class Feed:
    """What Spark would do with the source: batch after batch, and what came of it."""

    plan: SourcePlan
    stream: ChangeStream = field(init=False)
    offset: dict[str, Any] = field(init=False)
    records: list[dict[str, Any]] = field(default_factory=list)
    ranges: list[tuple[dict[str, Any], dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stream = ChangeStream(self.plan)
        self.offset = self.stream.initialOffset()

    def step(self, most: int = 700) -> list[dict[str, Any]]:
        """One batch; nothing if there is nothing."""
        end = self.stream.latestOffset(self.offset, ReadMaxRows(most))
        if end == self.offset:
            return []
        self.ranges.append((self.offset, end))
        found = self.read(self.offset, end)
        self.offset = end
        self.records += found
        return found

    def read(self, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
        """The records of a batch."""
        rows: list[dict[str, Any]] = []
        for part in self.stream.partitions(start, end):
            for batch in self.stream.read(part):
                assert isinstance(batch, pa.RecordBatch)
                rows += batch.to_pylist()
        return rows

    def until(self, condition: Callable[[], Any], steps: int = 400) -> None:
        """Batches until it is so."""
        for _ in range(steps):
            if condition():
                return
            self.step()
        raise AssertionError(f"not after {steps} looks: {self.offset}, {len(self.records)} records")

    def to_the_end(self) -> list[dict[str, Any]]:
        """Batches until two looks on end give nothing."""
        first, quiet = len(self.records), 0
        while quiet < 2:
            quiet = 0 if self.step() else quiet + 1
        return self.records[first:]

    def restart(self) -> None:
        """Another process goes on."""
        self.stream.stop()
        self.stream = ChangeStream(self.plan)

    @property
    def table(self) -> dict[int, Any]:
        """The newest row by key."""
        found: dict[int, Any] = {}
        for record in self.records:
            (key,) = struct.unpack(">q", record["key"])
            if record["value"] is None:
                found.pop(key, None)
            else:
                found[key] = json.loads(record["value"])
        return found

    @property
    def events(self) -> list[dict[str, Any]]:
        """A stream's envelopes."""
        return [json.loads(record["value"]) for record in self.records]


@contextmanager
def feeds(
    postgres: PostgresServer, admin: psycopg.Connection[Any], directory: Path
) -> Iterator[Callable[..., Feed]]:
    """What makes a table and a source over it; slots are dropped at the end."""
    config = PostgresConfig(**postgres.config(), password=PASSWORD)
    made: list[Feed] = []

    def make(form: Form = KEYED, *, first_rows: bool = True, table: str = "", **more: Any) -> Feed:
        if not table:
            table = f"t_{uuid.uuid4().hex[:8]}"
            admin.execute(f"CREATE TABLE public.{table} (id bigint PRIMARY KEY, name text, big text)")
            admin.execute(f"ALTER TABLE public.{table} ALTER big SET STORAGE EXTERNAL")
        own = f"leat_{uuid.uuid4().hex[:8]}_g1_0"
        plan = SourcePlan(
            store="pg",
            config=config,
            entity=table,
            form=form,
            slot=own,
            publication=own,
            own=own,
            own_publication=True,
            first_rows=first_rows,
            most=700,
            directory=str(directory / own),
            durable=True,
        )
        made.append(Feed(replace(plan, **more)))
        return made[-1]

    try:
        yield make
    finally:
        for one in made:
            one.stream.stop()
            forget(one.plan.own[: len("leat_12345678_")], "pg", config)


def fill(admin: psycopg.Connection[Any], feed: Feed, first: int, last: int) -> None:
    """Make rows of these numbers."""
    admin.execute(
        f"INSERT INTO public.{feed.plan.entity} SELECT i, 'n' || i, repeat('x', 3000)"
        " FROM generate_series(%s::bigint, %s) i",
        (first, last),
    )


def rows_of(admin: psycopg.Connection[Any], feed: Feed) -> dict[int, Any]:
    """The table's rows by key."""
    found = admin.execute(f"SELECT id, name, big FROM public.{feed.plan.entity}").fetchall()
    return {row[0]: {"id": row[0], "name": row[1], "big": row[2]} for row in found}
