"""Materialized views from statement to rows: kept over restarts, gone when dropped. ``faults/`` kills them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.stack, pytest.mark.timeout(400), pytest.mark.core]
COUNT, KEYS = 5_000, 7


def test_rows_and_totals_until_they_are_dropped(
    play: Any, leatstream_server: Any, eventually: Callable[..., Any]
) -> None:
    topic = play.stream("numbers", "n BIGINT, k VARCHAR")
    totals, every = f"{play.name}_totals", f"{play.name}_every"
    play.run(
        "totals",
        "CREATE MATERIALIZED VIEW totals AS SELECT k, count(*) AS c, sum(n) AS s FROM numbers GROUP BY k",
        shared=True,
    )
    play.run("every", "CREATE MATERIALIZED VIEW every AS SELECT n, k FROM numbers", shared=True)
    play.sql("CREATE INDEX by_n ON every (n)")

    def rows(text: str) -> list[Any]:
        return play.sql(text)["results"][0]["rows"]

    play.produce(topic, [{"n": n, "k": f"k{n % KEYS}"} for n in range(COUNT)])
    eventually(lambda: rows("SELECT count(*) AS c FROM every") == [[COUNT]], 120, "every row")
    eventually(lambda: rows("SELECT sum(c) AS c FROM totals") == [[COUNT]], 120, "every group")
    assert rows("SELECT count(*) AS c, count(DISTINCT n) AS d, sum(n) AS s FROM every") == [
        [COUNT, COUNT, COUNT * (COUNT - 1) // 2]
    ]
    expected = [[f"k{i}", len(range(i, COUNT, KEYS)), sum(range(i, COUNT, KEYS))] for i in range(KEYS)]
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
    play.produce(topic, [{"n": COUNT, "k": "k0"}])
    eventually(lambda: rows("SELECT count(*) AS c FROM every") == [[COUNT + 1]], what="one more row")
    assert play.sql("SELECT count(*) AS c FROM every")["results"][0]["freshness"][0]["batch_id"] > before

    files = {path.name for path in (leatstream_server.data_dir / "views").iterdir()}
    play.sql("DROP MATERIALIZED VIEW every; DROP MATERIALIZED VIEW totals")
    for name in (every, totals):
        eventually(lambda n=name: play.http.get(f"/v1/queries/{n}").status_code == 404, what="its end")
    left = {path.name for path in (leatstream_server.data_dir / "views").iterdir()}
    assert len(files - left) >= 2
    assert play.refused("SELECT count(*) AS c FROM every")["code"] == "unknown-relation"
