"""Materialized views from statement to rows: exact under kill -9, kept over restarts, gone when dropped."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.stack, pytest.mark.timeout(400)]
CHUNK, CHUNKS, KEYS = 5_000, 6, 7


def test_totals_are_exact_after_kill_9(
    play: Any, leatstream_server: Any, eventually: Callable[..., Any]
) -> None:
    topic = play.stream("numbers", "n BIGINT, k VARCHAR")
    totals, every = f"{play.name}_totals", f"{play.name}_every"
    play.run(
        "totals",
        "CREATE MATERIALIZED VIEW totals AS SELECT k, count(*) AS c, sum(n) AS s FROM numbers GROUP BY k",
    )
    play.run("every", "CREATE MATERIALIZED VIEW every AS SELECT n, k FROM numbers")
    play.sql("CREATE INDEX by_n ON every (n)")

    def rows(text: str) -> list[Any]:
        return play.sql(text)["results"][0]["rows"]

    def killed(name: str) -> None:
        job = play.query(name)["status"]["job"]
        os.kill(job["pid"], signal.SIGKILL)
        eventually(
            lambda: play.query(name)["status"]["job"]["attempt"] > job["attempt"], what="a new attempt"
        )

    for chunk in range(CHUNKS):
        numbers = range(chunk * CHUNK, (chunk + 1) * CHUNK)
        play.produce(topic, [{"n": n, "k": f"k{n % KEYS}"} for n in numbers])
        # Somewhere in the middle of the batches that these records make.
        if chunk in (1, 3):
            killed(every if chunk == 1 else totals)
            killed(totals if chunk == 1 else every)
    count = CHUNK * CHUNKS
    eventually(lambda: rows("SELECT count(*) AS c FROM every") == [[count]], 120, "every row")
    eventually(lambda: rows("SELECT sum(c) AS c FROM totals") == [[count]], 120, "every group")
    assert rows("SELECT count(*) AS c, count(DISTINCT n) AS d, sum(n) AS s FROM every") == [
        [count, count, count * (count - 1) // 2]
    ]
    expected = [[f"k{i}", len(range(i, count, KEYS)), sum(range(i, count, KEYS))] for i in range(KEYS)]
    assert rows("SELECT k, c, s FROM totals ORDER BY k") == expected
    joined = (
        "SELECT t.k, max(t.c) - count(*) AS left_over FROM totals t JOIN every e ON e.k = t.k GROUP BY t.k"
    )
    assert {row[1] for row in rows(joined)} == {0}

    # A new start keeps the rows; the batches go on counting.
    before = play.sql("SELECT count(*) AS c FROM every")["results"][0]["freshness"][0]["batch_id"]
    attempt = play.query(every)["status"]["job"]["attempt"]
    play.sql(f"RESTART QUERY {every}")
    eventually(lambda: play.query(every)["status"]["job"]["attempt"] > attempt, what="the restart")
    play.wait(every)
    play.produce(topic, [{"n": count, "k": "k0"}])
    eventually(lambda: rows("SELECT count(*) AS c FROM every") == [[count + 1]], what="one more row")
    assert play.sql("SELECT count(*) AS c FROM every")["results"][0]["freshness"][0]["batch_id"] > before

    files = {path.name for path in (leatstream_server.data_dir / "views").iterdir()}
    play.sql("DROP MATERIALIZED VIEW every; DROP MATERIALIZED VIEW totals")
    for name in (every, totals):
        eventually(lambda n=name: play.http.get(f"/v1/queries/{n}").status_code == 404, what="its end")
    left = {path.name for path in (leatstream_server.data_dir / "views").iterdir()}
    assert len(files - left) >= 2
    assert play.refused("SELECT count(*) AS c FROM every")["code"] == "unknown-relation"
