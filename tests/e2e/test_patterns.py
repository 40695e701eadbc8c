"""MATCH_RECOGNIZE through the whole product: rows in, matches out, also across a restart and for a reader."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = [pytest.mark.stack]
COLUMNS = "symbol VARCHAR, price DECIMAL(9, 2), at TIMESTAMP"
MATCH = (
    "FROM ticks {source} MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY rowtime"
    " MEASURES FIRST(fall.price) AS top, LAST(fall.price) AS bottom, up.price - LAST(fall.price) AS gain"
    " PATTERN (begin fall+ up) WITHIN 5 MINUTES"
    " DEFINE fall AS price < PREV(price), up AS price > begin.price)"
)


def tick(symbol: str, price: float, second: int) -> dict[str, Any]:
    return {"symbol": symbol, "price": price, "at": f"2026-01-01 00:{second // 60:02}:{second % 60:02}"}


def test_matches_across_a_restart(play: Any) -> None:
    topic = play.stream("ticks", COLUMNS, timestamp="at")
    sink = f"{play.name}.gains"
    play.produce(topic, [tick("a", 9, 0), tick("b", 5, 1), tick("a", 7, 10), tick("a", 5.5, 20)])
    source = "WITH ('starting.position'='earliest')"
    made = play.run(
        "gains",
        f"CREATE STREAM gains WITH ('topic'='{sink}') AS SELECT * {MATCH.format(source=source)}",
        shared=True,
        delete_sink_entity=True,
    )
    assert made["status"]["state"] == "running", made["status"]
    assert made["plan"]["mode"] == "micro_batch"
    columns = {c["name"]: c["type"] for c in made["plan"]["sink"]["columns"]}
    assert columns == {
        "symbol": "VARCHAR",
        "top": "DECIMAL(9, 2)",
        "bottom": "DECIMAL(9, 2)",
        "gain": "DECIMAL(10, 2)",
    }
    name = f"{play.name}_gains"
    play.sql(f"TERMINATE QUERY {name}")
    play.wait(name, "stopped")
    play.produce(topic, [tick("a", 12.25, 30), tick("b", 4, 31), tick("b", 6, 45), tick("c", 1, 60)])
    play.sql(f"RESTART QUERY {name}")
    found = play.consume(sink, 2, seconds=120, distinct="symbol")
    assert {row["symbol"]: row for row in found} == {
        "a": {"symbol": "a", "top": 7.0, "bottom": 5.5, "gain": 6.75},
        "b": {"symbol": "b", "top": 4.0, "bottom": 4.0, "gain": 2.0},
    }

    answer = play.http.post(
        "/v1/statements", json={"sql": f"SELECT gain {MATCH.format(source=source)}", **play.context}
    )
    (result,) = answer.json()["results"]
    with play.http.stream("GET", result["rows"], params={"limit": 2, "max_time": "60s"}, timeout=90) as rows:
        told = [json.loads(line) for line in rows.iter_lines() if line]
    assert sorted(row["row"]["gain"] for row in told[:-1]) == [2.0, 6.75]


def test_refused_with_their_place(play: Any) -> None:
    play.stream("ticks", COLUMNS, timestamp="at")
    wrong = MATCH.format(source="").replace("begin.price", "begin.symbol")
    body = play.refused(f"SELECT * {wrong}")
    (error,) = body["errors"]
    assert (body["code"], error["position"]["length"]) == ("unsupported", len("price > begin.symbol"))
