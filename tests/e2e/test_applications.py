"""An application on the running stack: records through a virtual stream into two topics, and its end."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

pytestmark = [pytest.mark.stack]


@pytest.mark.core
def test_records_go_through_a_virtual_stream(play: Any) -> None:
    """Two queries read it, each gets every record; a query of an application goes with it only."""
    topic, name = play.stream("numbers", "n BIGINT, word VARCHAR"), f"{play.name}_app"
    other = play.stream("all_large", "n BIGINT")
    earliest = "WITH ('starting.position' = 'earliest')"
    made = play.sql(
        f"""BEGIN APPLICATION {name}
          CREATE VIRTUAL STREAM virtual.public.large AS SELECT n, word FROM numbers {earliest} WHERE n >= 10;
          CREATE VIRTUAL STREAM virtual.public.even AS SELECT * FROM virtual.public.large WHERE n % 2 = 0;
          CREATE STREAM words WITH ('topic' = '{play.name}.words') AS
            SELECT e.n, upper(e.word) AS word FROM virtual.public.even e;
          INSERT INTO all_large SELECT n FROM virtual.public.large;
        END APPLICATION""",
        wait_timeout="60s",
    )["results"][0]
    try:
        queries = [row[0] for row in made["rows"]]
        for query in queries:
            play.wait(query)
        play.produce(topic, [{"n": n, "word": f"w{n}"} for n in range(20)])
        assert {r["n"] for r in play.consume(other, 10, distinct="n")} == set(range(10, 20))
        words = play.consume(f"{play.name}.words", 5, distinct="n")
        assert {(r["n"], r["word"]) for r in words} == {(n, f"W{n}") for n in range(10, 20, 2)}
        assert play.refused(f"DROP QUERY {queries[0]}")["code"] == "has-dependents"
        play.sql(f"TERMINATE APPLICATION {name}")
        for query in queries:
            play.wait(query, "stopped")
    finally:
        play.sql(f"DROP APPLICATION {name}")
    deadline = 60
    while deadline and any(q in _queries(play) for q in queries):
        deadline -= 1
        play.http.get(f"/v1/queries/{queries[0]}", params={"wait_for": "failed", "timeout": "1s"})
    assert not set(queries) & set(_queries(play))
    assert f"{play.name}.public.words" not in play.http.get("/v1/relations").text


def test_two_queries_are_one_job(play: Any, eventually: Any) -> None:
    """One process reads each record once and writes both topics, and kill -9 takes and doubles nothing."""
    topic, name = play.stream("numbers", "n BIGINT, word VARCHAR"), f"{play.name}_one"
    exact = "'delivery.guarantee' = 'exactly_once'"
    made = play.sql(
        f"""BEGIN APPLICATION {name}
          CREATE VIRTUAL STREAM virtual.public.large AS
            SELECT n, word FROM numbers WITH ('starting.position' = 'earliest') WHERE n >= 10;
          CREATE STREAM words WITH ('topic' = '{play.name}.words', {exact}) AS
            SELECT e.n, upper(e.word) AS word FROM virtual.public.large e;
          CREATE STREAM evens WITH ('topic' = '{play.name}.evens', {exact}) AS
            SELECT e.n FROM virtual.public.large e WHERE e.n % 2 = 0;
        END APPLICATION WITH ('application.job' = 'one')""",
        wait_timeout="60s",
    )["results"][0]
    try:
        queries = [row[0] for row in made["rows"]]

        def jobs() -> list[tuple[int, int]]:
            told = [play.wait(query)["status"]["job"] for query in queries]
            return [(job["pid"], job["attempt"]) for job in told]

        first = jobs()
        assert first[0] == first[1]
        play.produce(topic, [{"n": n, "word": f"w{n}"} for n in range(100)])
        assert {r["n"] for r in play.consume(f"{play.name}.words", 90)} == set(range(10, 100))
        for query in queries:
            eventually(lambda query=query: _read(play, query) == 100, 30, "each record was read once")
        os.kill(first[0][0], signal.SIGKILL)
        play.produce(topic, [{"n": n, "word": f"w{n}"} for n in range(100, 300)])
        eventually(lambda: _attempt(play, queries[0]) > first[0][1], 60, "a second attempt")
        after = jobs()
        assert after[0] == after[1]
        assert after[0] != first[0]
        assert sorted(r["n"] for r in play.consume(f"{play.name}.words", 290)) == list(range(10, 300))
        assert sorted(r["n"] for r in play.consume(f"{play.name}.evens", 145)) == list(range(10, 300, 2))
    finally:
        play.sql(f"DROP APPLICATION {name}")
    eventually(lambda: not set(queries) & set(_queries(play)), 60, "both are gone")


def _attempt(play: Any, query: str) -> int:
    return int(play.query(query)["status"]["job"]["attempt"])


def _read(play: Any, query: str) -> int:
    metrics = play.query(query)["status"].get("metrics") or {}
    return int(metrics.get("input_rows_total") or 0)


def _queries(play: Any) -> list[str]:
    answer = play.http.get("/v1/queries", params={"page_size": 1000})
    return [query["name"] for query in answer.json()["items"]]


def test_an_atomic_text_starts_its_job_when_all_is_kept(play: Any) -> None:
    """Nothing of a text that fails; of one that succeeds the job too."""
    topic = play.topic("raw")
    text = (
        f"CREATE SCHEMA s; CREATE STREAM s.raw (n BIGINT) WITH ('topic'='{topic}', 'value.format'='json');"
        f"CREATE STREAM s.out WITH ('topic'='{play.name}.out') AS SELECT n + 1 AS n FROM s.raw"
    )
    assert play.refused(f"{text}; DROP STREAM nowhere", atomic=True)["code"] == "not-found"
    assert play.http.get(f"/v1/databases/{play.name}/schemas/s").status_code == 404
    made = play.sql(text, atomic=True, wait_timeout="60s")["results"][-1]
    assert made["status"] == "succeeded"
    play.produce(topic, [{"n": 1}])
    assert play.consume(f"{play.name}.out", 1)[0]["n"] == 2
