"""Queries into tables of a real PostgreSQL: exactly once, whatever is killed in between."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres_server import PASSWORD, PostgresServer
from pyspark.sql import SparkSession
from test_changelogs import Run

from leatstream.connectors.base import Connector
from leatstream.connectors.postgres.workers import kept, kept_connection
from leatstream.connectors.registry import open_connector
from leatstream.connectors.writers import Written
from leatstream.errors import LeatstreamError
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import Delivery, JobSpec, StoreRef
from leatstream.plan.logical import LogicalPlan
from leatstream_jobs.attempt.failures import Failure, chain_of, classify

pytestmark = pytest.mark.spark
ITEMS = {"s": {"columns": "id BIGINT, name VARCHAR, n INTEGER"}}


def _updates(plan: LogicalPlan) -> bool:
    return plan.operator is None and plan.aggregation is not None and plan.aggregation.update


class TableRun(Run):
    """A statement over files whose sink is a table."""

    def __init__(
        self, spark: SparkSession, folder: Path, sql: str, relations: dict[str, Any], server: PostgresServer
    ) -> None:
        super().__init__(spark, folder, sql, relations)
        self.server = server
        self.table = f"t_{uuid.uuid4().hex[:8]}"
        self.target = open_connector("postgres", "pg", server.config(), {"password": PASSWORD})
        store = StoreRef(name="pg", kind="postgres", config=server.config())
        sink = self.spec.sink.model_copy(update={"store": store, "entity": self.table})
        self.spec = self.spec.model_copy(
            update={
                "sink": sink,
                "query_id": self.table,
                "delivery": Delivery.EXACTLY_ONCE,
                "output_mode": "update" if _updates(self.plan) else "append",
                "checkpoint": (folder / "q" / "g1").as_uri(),
            }
        )
        self.started: Any = None

    def make(self) -> None:
        """The table that the service would make."""
        columns = [Column(c.name, parse_type(c.type), c.not_null) for c in self.spec.sink.columns]
        self.target.create_table(self.table, columns, self.spec.sink.key_columns)

    def connect(self, store: StoreRef) -> Connector:
        return self.target if store.kind == "postgres" else self.store

    def run(self, spec: JobSpec | None = None) -> None:
        """Work everything off, in a job of its own."""
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

    def rows(self, order: str = "1") -> list[tuple[Any, ...]]:
        with self.server.connect() as connection:
            return connection.execute(f"SELECT * FROM {self.table} ORDER BY {order}").fetchall()

    def batch_number(self) -> int | None:
        with self.server.connect() as connection:
            text = "SELECT batch FROM leatstream_batches WHERE query = %s"
            found = connection.execute(text, (self.table,)).fetchone()
        return found[0] if found else None


@pytest.fixture
def run(spark: SparkSession, postgres: PostgresServer, tmp_path: Path) -> Iterator[Callable[..., TableRun]]:
    made: list[TableRun] = []

    def start(sql: str, relations: dict[str, Any] = ITEMS, *, make: bool = True) -> TableRun:
        one = TableRun(spark, tmp_path / str(len(made)), sql, relations, postgres)
        made.append(one)
        if make:
            one.make()
        return one

    yield start
    for one in made:
        one.target.drop_entity(one.table)


def items(*numbers: int) -> dict[str, list[list[Any]]]:
    return {"s": [[str(i), {"id": i, "name": f"item\t{i}\n\\.", "n": i % 7}, i] for i in numbers]}


@pytest.mark.core
def test_rows_of_a_stream_are_appended_once(run: Callable[..., TableRun]) -> None:
    job = run("CREATE STREAM o WITH ('store'='pg') AS SELECT id, name, n FROM s WHERE n <> 3")
    job.give(items(*range(50)))
    job.run()
    job.give(items(*range(50, 60)))
    job.run()
    # Lines of COPY: of the second job alone.
    sizes = [len(f"{i}\titem\\t{i}\\n\\\\.\t{i % 7}\n") for i in range(50, 60) if i % 7 != 3]
    assert [sink.written for sink in job.started.sinks] == [Written(len(sizes), sum(sizes))]
    assert job.rows() == [(i, f"item\t{i}\n\\.", i % 7) for i in range(60) if i % 7 != 3]
    assert job.batch_number() == 1


def test_a_transaction_that_is_cut_off_leaves_nothing(
    run: Callable[..., TableRun], postgres: PostgresServer
) -> None:
    """The server ends the connection while the batch is being written; the next attempt writes it whole."""
    job = run("CREATE STREAM o WITH ('store'='pg') AS SELECT id, name, n FROM s")
    with postgres.connect() as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS"
            " $$BEGIN IF NEW.id = 3 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NEW; END$$"
        )
        connection.execute(
            f"CREATE TRIGGER cut BEFORE INSERT ON {job.table} FOR EACH ROW EXECUTE FUNCTION cut()"
        )
    job.give(items(1, 2, 3, 4))
    told = job.failure()
    assert (told.code, told.condition, told.retryable) == ("job-failed", "store-unreachable", True)
    assert job.rows() == []
    with postgres.connect() as connection:
        connection.execute(f"DROP TRIGGER cut ON {job.table}")
    job.run(job.spec.model_copy(update={"attempt": 2}))
    assert [row[0] for row in job.rows()] == [1, 2, 3, 4]


TYPES = {
    "a": ("BOOLEAN", True, True),
    "b": ("TINYINT", -7, -7),
    "c": ("BIGINT", 2**53 + 1, 2**53 + 1),
    "d": ("DOUBLE", 1e300, 1e300),
    "e": ("FLOAT", 0.5, 0.5),
    "f": ("DECIMAL(20, 4)", "12345678901234.5678", Decimal("12345678901234.5678")),
    "g": ("VARCHAR", "ß \\N \\. \t\r\n \"'{}, 🙂", "ß \\N \\. \t\r\n \"'{}, 🙂"),
    "h": ("DATE", "2024-02-29", date(2024, 2, 29)),
    "i": ("TIMESTAMP", "2026-01-02 03:04:05.678901", datetime(2026, 1, 2, 3, 4, 5, 678901)),
    "j": ("TIMESTAMP_LTZ", "2026-01-02T03:04:05.678901Z", datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)),
    "k": ("BYTES", "AAECXA==", b"\x00\x01\x02\\"),
    "l": ("ARRAY<VARCHAR>", ["a", None, 'x"\\,{}', ""], ["a", None, 'x"\\,{}', ""]),
    "m": ("ARRAY<BIGINT>", [1, None, 3], [1, None, 3]),
    "o": ("MAP<VARCHAR, BIGINT>", {"x": 1}, {"x": 1}),
    "p": ("STRUCT<u VARCHAR, v ARRAY<BIGINT>>", {"u": "é", "v": [1]}, {"u": "é", "v": [1]}),
    "q": ("ARRAY<STRUCT<u BIGINT>>", [{"u": 1}], [{"u": 1}]),
    "r": ("VARCHAR", "", ""),
}


def test_every_type_arrives_as_it_is(run: Callable[..., TableRun]) -> None:
    columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in TYPES.items())
    job = run(
        f"CREATE STREAM o WITH ('store'='pg') AS SELECT {', '.join(TYPES)}, CAST('NaN' AS DOUBLE) AS nan FROM s",
        {"s": {"columns": columns}},
    )
    record = {name: value for name, (_, value, _) in TYPES.items()}
    job.give({"s": [[None, record, 1], [None, {}, 1]]})
    job.run()
    (full, empty) = job.rows("a NULLS LAST")
    assert full[:-1] == tuple(value for _, _, value in TYPES.values())
    assert math.isnan(full[-1])
    assert empty[:-1] == (None,) * len(TYPES)


def test_an_existing_tables_own_types_and_defaults(
    run: Callable[..., TableRun], postgres: PostgresServer
) -> None:
    job = run("CREATE STREAM o WITH ('store'='pg') AS SELECT name AS doc, id, n FROM s", make=False)
    with postgres.connect() as connection:
        connection.execute(
            f"CREATE TABLE {job.table} (number bigserial, id numeric(20), n double precision, doc jsonb, at timestamptz DEFAULT now())"
        )
        connection.execute(f"ALTER TABLE {job.table} OWNER TO shop")
    job.give({"s": [["1", {"id": 5, "name": '{"x": [1]}', "n": 2}, 1]]})
    job.run()
    ((number, id_, n, doc, at),) = job.rows()
    assert (number, id_, n, doc) == (1, 5, 2.0, {"x": [1]})
    assert at is not None


@pytest.mark.parametrize(
    ("column", "record", "words"),
    [
        ("varchar(5)", {"name": "secret value"}, "column name: it is too long"),
        ("uuid", {"name": "secret value"}, "column name: it cannot be read as the column's type"),
        ("jsonb", {"name": "{secret"}, "column name: it cannot be read"),
        ("text NOT NULL", {"name": None}, "column name: it is NULL"),
        ("text UNIQUE", {"name": "secret"}, "another row has it"),
        ("text CHECK (name <> 'secret')", {"name": "secret"}, "a CHECK of the table"),
        ("text", {"name": "sec\x00ret"}, "NUL"),
    ],
)
def test_a_value_that_a_table_does_not_take_is_told_without_it(
    run: Callable[..., TableRun], postgres: PostgresServer, column: str, record: dict[str, Any], words: str
) -> None:
    job = run("CREATE STREAM o WITH ('store'='pg') AS SELECT id, name, n FROM s", make=False)
    with postgres.connect() as connection:
        connection.execute(f"CREATE TABLE {job.table} (id bigint, name {column}, n integer)")
        connection.execute(f"ALTER TABLE {job.table} OWNER TO shop")
    row = {"id": 1, "n": 1} | record
    job.give({"s": [["1", row, 1], ["2", row, 1]]})
    told = job.failure()
    assert (told.code, told.condition, told.retryable) == ("job-failed", "store-rejected", False)
    assert words in told.detail
    assert job.table in told.detail
    assert "secret" not in told.detail
    assert job.rows() == []


def test_a_table_that_is_gone_or_was_changed(run: Callable[..., TableRun], postgres: PostgresServer) -> None:
    job = run("CREATE STREAM o WITH ('store'='pg') AS SELECT id, name, n FROM s", make=False)
    job.give(items(1))
    assert "is gone" in job.failure().detail
    with postgres.connect() as connection:
        connection.execute(f"CREATE TABLE {job.table} (id bigint, name boolean, must text NOT NULL)")
        connection.execute(f"ALTER TABLE {job.table} OWNER TO shop")
    told = job.failure().detail
    for words in ("no column n", "column name is VARCHAR", "column must of the table is NOT NULL"):
        assert words in told


def test_a_kept_connection_that_was_lost_is_made_anew(postgres: PostgresServer) -> None:
    config = open_connector("postgres", "pg", postgres.config(), {"password": PASSWORD}).settings  # type: ignore[attr-defined]
    first = kept_connection(config, 9.0, 9.0)
    assert kept_connection(config, 9.0, 9.0) is first
    with postgres.connect() as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 5000)", (first.info.backend_pid,))
    second = kept_connection(config, 9.0, 9.0)
    assert second is not first
    assert json.dumps(second.execute("SELECT 1").fetchone()) == "[1]"
    second.close()
    kept.clear()
    with pytest.raises(psycopg.OperationalError):
        first.execute("SELECT 1")
