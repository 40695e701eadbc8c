"""Kafka into PostgreSQL from statement to rows: each record once, whatever is killed in the middle."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from postgres_server import PASSWORD, PostgresServer

pytestmark = [pytest.mark.stack, pytest.mark.timeout(400)]
CHUNK, CHUNKS, KEYS = 4_000, 2, 7


def test_every_record_is_in_the_table_once_and_totals_are_right(
    play: Any, postgres: PostgresServer, eventually: Callable[..., Any]
) -> None:
    topic = play.stream("numbers", "n BIGINT, k VARCHAR")
    play.sql(
        f"CREATE STORE {play.name}_pg WITH ('type'=POSTGRESQL, 'uris'='postgresql://127.0.0.1:{postgres.port}/shop',"
        f" 'tls.disabled'=TRUE, 'postgres.username'='shop', 'postgres.password'='{PASSWORD}')"
    )
    sink = f"'store'='{play.name}_pg', 'postgresql.schema.name'='{play.name}'"
    every = play.run("every", f"CREATE STREAM every WITH ({sink}) AS SELECT n, k FROM numbers", shared=True)
    assert every["plan"]["delivery"] == "exactly_once"
    totals = "SELECT k, count(*) AS c, sum(n) AS s FROM numbers GROUP BY k"
    play.run("totals", f"CREATE CHANGELOG totals WITH ({sink}) AS {totals}")

    def rows(text: str) -> list[Any]:
        with postgres.connect() as connection:
            return connection.execute(text).fetchall()

    for chunk in range(CHUNKS):
        numbers = range(chunk * CHUNK, (chunk + 1) * CHUNK)
        play.produce(topic, [{"n": n, "k": f"k{n % KEYS}"} for n in numbers])
        if chunk == 0:
            # Somewhere in the middle of the batches that these records make; ``faults/`` kills the other one.
            job = play.query(f"{play.name}_totals")["status"]["job"]
            os.kill(job["pid"], signal.SIGKILL)
            eventually(
                lambda job=job: (
                    play.query(f"{play.name}_totals")["status"]["job"]["attempt"] > job["attempt"]
                ),
                what="a new attempt",
            )
    count = CHUNK * CHUNKS
    eventually(lambda: rows(f"SELECT count(*) FROM {play.name}.every")[0][0] >= count, 120, "every row")
    eventually(lambda: rows(f"SELECT sum(c) FROM {play.name}.totals")[0][0] == count, 120, "every group")
    assert rows(f"SELECT count(*), count(DISTINCT n), sum(n) FROM {play.name}.every") == [
        (count, count, count * (count - 1) // 2)
    ]
    expected = [(f"k{i}", len(range(i, count, KEYS)), sum(range(i, count, KEYS))) for i in range(KEYS)]
    assert rows(f"SELECT k, c, s FROM {play.name}.totals ORDER BY k") == expected

    shown = play.sql(f"PRINT ENTITY {play.name}.totals IN STORE {play.name}_pg")["results"][0]["rows"]
    assert [row[0] for row in shown] == [f'{{"k" : "k{i}"}}' for i in range(KEYS)]
