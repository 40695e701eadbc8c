"""Several queries as one job, on a real broker and real Spark: read once, each sink written as if alone."""

from __future__ import annotations

import os
import signal
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from attempts import attempt
from postgres_server import PASSWORD, PostgresServer
from pyspark.sql import SparkSession
from small_api import Pool

from leatstream.connectors.kafka.connector import KafkaConnector
from leatstream.connectors.registry import open_connector
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import JobSpec, StoreRef
from leatstream.ports import Snapshot
from leatstream.views.sqlite_store import SqliteViews
from leatstream_jobs.attempt import run_query

pytestmark = pytest.mark.spark
COLUMNS = "id BIGINT, name VARCHAR"
HEADERS = {"name": "h", "type": "MAP<VARCHAR, BYTES>"}
SQL = "SELECT {}, __leat_rowkey, __leat_rowtime FROM leat_src_0 WHERE {}"


def member(document: dict[str, Any], sql: str, **sink: Any) -> dict[str, Any]:
    """Another query of the job, whose sink differs from the first one's in these."""
    name = f"q{uuid.uuid4().hex[:8]}"
    delivery = sink.pop("delivery", "at_least_once")
    changed = {"query_id": name, "query_name": name, "sql": sql, "delivery": delivery}
    return changed | {"sink": document["sink"] | sink}


def people(*numbers: int) -> list[dict[str, Any]]:
    return [{"id": n, "name": f"n{n}"} for n in numbers]


def ids(found: list[Any]) -> list[int]:
    return sorted(row["id"] for row in found)


def repeat_last(checkpoint: Path) -> None:
    """As after a crash between the sinks' commits and Spark's: the last batch is run again."""
    commits = checkpoint / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    for path in (commits / str(last), commits / f".{last}.crc"):
        path.unlink(missing_ok=True)


@pytest.mark.core
def test_a_batch_is_read_once_for_topics_a_table_and_a_view(
    spark: SparkSession,
    kafka: KafkaConnector,
    postgres: PostgresServer,
    job: Callable[..., dict[str, Any]],
    topic: Callable[..., str],
    produce: Callable[..., None],
    rows: Callable[..., list[Any]],
    tmp_path: Path,
) -> None:
    """Four sinks, each record read once; a batch that is repeated is in three of them once."""
    source, plain, exact = topic(), topic(), topic()
    views, view = SqliteViews(tmp_path / "views"), f"qry_{uuid.uuid4().hex}"
    table = f"t_{uuid.uuid4().hex[:8]}"
    server = open_connector("postgres", "pg", postgres.config(), {"password": PASSWORD})
    server.create_table(table, [Column("id", parse_type("BIGINT"), False)], ())
    document = job([{"entity": source, "columns": COLUMNS}], plain, SQL.format("id", "id >= 0"), "id BIGINT")
    kept = {"table": view, "generation": 1, "database": views.database.model_dump(), "retention_ms": None}
    of_view = {"store": {"name": "", "kind": "view", "config": {}}, "value_format": "", "view": kept}
    of_table = {"store": {"name": "pg", "kind": "postgres", "config": postgres.config()}, "entity": table}
    of_headers = {"columns": [*document["sink"]["columns"], HEADERS], "headers_column": "h"}
    evens = SQL.format("id, map('id', CAST(CAST(id AS STRING) AS BINARY)) AS h", "id % 2 = 0")
    document["members"] = [
        member(document, evens, entity=exact, delivery="exactly_once", **of_headers),
        member(document, SQL.format("id", "id % 3 = 0"), **of_table, delivery="exactly_once"),
        member(document, SQL.format("id", "id % 5 = 0"), **of_view, delivery="exactly_once"),
    ]

    def connect(store: StoreRef) -> Any:
        return server if store.kind == "postgres" else kafka

    def work_off() -> int:
        started = run_query.start(spark, JobSpec.model_validate(document), connect, 2)
        try:
            started.query.processAllAvailable()
            return sum(report.numInputRows for report in started.query.recentProgress)
        finally:
            started.query.stop()

    def in_table() -> list[int]:
        with postgres.connect() as connection:
            return [row[0] for row in connection.execute(f"SELECT id FROM {table} ORDER BY id")]

    def in_view() -> list[int]:
        found, _ = views.read(Snapshot("SELECT c0 FROM v0.leat_rows ORDER BY 1", (), [(view, 1)], 1000, 30))
        return [row[0] for row in found]

    def all_of(upto: int) -> None:
        everything = set(range(upto))
        assert set(ids(rows(plain, upto))) == everything
        assert ids(rows(exact, upto // 2)) == list(range(0, upto, 2))
        committed = kafka.read_records(exact, from_beginning=True, limit=upto // 2, idle_timeout=10.0)
        headers = [record.headers for record in committed if record is not None]
        assert sorted(int(value or b"") for ((_, value),) in headers) == list(range(0, upto, 2))
        assert in_table() == list(range(0, upto, 3))
        assert in_view() == list(range(0, upto, 5))

    produce(source, *people(*range(90)))
    assert work_off() == 90, "four queries, and each record is read once"
    all_of(90)
    repeat_last(tmp_path / "checkpoint")
    document["attempt"] = 2
    produce(source, *people(*range(90, 120)))
    assert work_off() == 120
    all_of(120)
    assert Counter(ids(rows(plain, 210)))[0] == 2, "at least once"


def test_a_sink_that_fails_keeps_the_batch_for_all(
    spark: SparkSession,
    kafka: KafkaConnector,
    job: Callable[..., dict[str, Any]],
    topic: Callable[..., str],
    produce: Callable[..., None],
    rows: Callable[..., list[Any]],
) -> None:
    """It is told whose rows they were; what is repaired goes on without a gap."""
    source, first, second = topic(), topic(), topic()
    document = job([{"entity": source, "columns": COLUMNS}], first, SQL.format("id", "true"), "id BIGINT")
    document["delivery"] = "exactly_once"
    broken = SQL.format("CAST(name AS BIGINT) AS id", "true")
    document["members"] = [member(document, broken, entity=second, delivery="exactly_once")]
    name = document["members"][0]["query_name"]
    produce(source, *people(*range(20)))
    told = attempt(spark, document)
    assert told["state"] == "failed"
    assert told["error"]["detail"].startswith(f"Query {name} of the same job: "), told["error"]
    assert told["error"]["retryable"] is False
    assert ids(rows(first, 20)) == list(range(20))
    # Its statement is mended: its rows are those of the batch that failed, and the other's come once.
    document["attempt"] = 2
    document["members"][0]["sql"] = SQL.format("id + 100 AS id", "true")
    produce(source, *people(*range(20, 30)))
    last = attempt(spark, document, lambda beat: _read_all(beat, 30))
    assert last["state"] == "stopped", last
    assert ids(rows(second, 30)) == list(range(100, 130))
    assert ids(rows(first, 30)) == list(range(30))


def _read_all(beat: Any, ends: int) -> bool:
    sources = (beat.get("progress") or {}).get("sources") or []
    return bool(sources) and sum(sources[0]["end_offsets"].values()) == ends


def test_kill_9_in_the_middle_loses_and_doubles_nothing(
    pool: Pool,
    job: Callable[..., dict[str, Any]],
    topic: Callable[..., str],
    produce: Callable[..., None],
    rows: Callable[..., list[Any]],
) -> None:
    source, first, second = topic(), topic(), topic()
    document = job([{"entity": source, "columns": COLUMNS}], first, SQL.format("id", "true"), "id BIGINT")
    document |= {"delivery": "exactly_once", "max_offsets_per_trigger": 2_000}
    even = SQL.format("id", "id % 2 = 0")
    document["members"] = [member(document, even, entity=second, delivery="exactly_once")]
    driver = pool.take()
    pool.prepare()
    driver.run(document)
    produce(source, *people(*range(20_000)))
    driver.wait_progress(lambda p: p["input_rows_total"] >= 2_000)
    (java,) = psutil.Process(driver.process.pid).children(recursive=True)[:1]
    os.kill(driver.process.pid, signal.SIGKILL)
    java.wait(30)
    again = pool.take()
    again.run(document | {"attempt": 2})
    again.wait_progress(lambda p: bool(p["sources"]) and p["sources"][0]["lag"] == 0)
    assert ids(rows(first, 20_000)) == list(range(20_000))
    assert ids(rows(second, 10_000)) == list(range(0, 20_000, 2))
    pool.give_back(again)
