"""A view, or a query into a topic, changes while records come in: nothing is missing, and nothing counts twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.stack, pytest.mark.timeout(400)]
CHUNK = 200


def test_numbered_records_are_whole_across_the_swap_and_back(
    play: Any, eventually: Callable[..., Any]
) -> None:
    topic, name = play.stream("numbers", "n BIGINT"), f"{play.name}_every"
    play.run("every", "CREATE MATERIALIZED VIEW every AS SELECT n FROM numbers")
    sent, shown = 0, 0

    def rows(text: str) -> Any:
        return play.sql(text)["results"][0]["rows"][0]

    def more() -> None:
        nonlocal sent
        play.produce(topic, [{"n": n} for n in range(sent, sent + CHUNK)])
        sent += CHUNK

    def whole() -> bool:
        """Every number once. What is there is never begun anew: the first numbers are always shown."""
        nonlocal shown
        count, distinct, last = rows(
            "SELECT count(*) AS c, count(DISTINCT n) AS d, max(n) AS last FROM every"
        )
        assert (count, count) == (distinct, 0 if last is None else last + 1)
        assert count >= min(shown, CHUNK)
        shown = count
        return bool(count == sent)

    def taken_over(before: str) -> bool:
        if whole():
            more()
        return bool(play.query(name)["id"] != before)

    more()
    eventually(whole, 60, "the first numbers")
    first = play.query(name)["id"]
    changed = "SELECT n, n % 7 AS m FROM numbers QUERY WITH ('replace.mode' = 'blue_green')"
    told = play.sql(f"CREATE OR REPLACE MATERIALIZED VIEW every AS {changed}")["results"][0]
    assert told["rows"][0][:2] == [f"{name}__green", "blue-green"]
    eventually(lambda: taken_over(first), 180, "the swap")
    assert sent > CHUNK
    eventually(whole, 60, "every number after the swap")
    assert rows("SELECT sum(m) AS m FROM every") == [sum(n % 7 for n in range(sent))]
    eventually(
        lambda: play.query(f"{name}__blue")["status"]["state"] == "stopped", 60, "the end of the old job"
    )
    # What comes while it is away is not lost to the version before.
    more()
    second = play.query(name)["id"]
    play.sql(f"ROLLBACK QUERY {name}")
    eventually(lambda: taken_over(second), 180, "the way back")
    assert play.query(name)["id"] == first
    eventually(whole, 60, "every number after the way back")
    assert "m" not in [
        c["name"] for c in play.http.get(f"/v1/relations/{play.name}.public.every").json()["columns"]
    ]


PER_WINDOW = 100
COUNTS = """SELECT min(n) AS first, {} FROM TUMBLE(numbers, SIZE 10 SECONDS) WITH ('starting.position'='earliest')
  GROUP BY window_start, window_end"""


def test_windows_are_whole_across_the_hand_over_and_back(play: Any, eventually: Callable[..., Any]) -> None:
    """Each window comes from one version, with all of its records, while more of them come all the time."""
    topic = play.stream("numbers", "n BIGINT, at BIGINT", timestamp="at")
    name, sink = f"{play.name}_counts", f"{play.name}.counts"
    play.run("counts", f"CREATE STREAM counts WITH ('topic'='{sink}') AS {COUNTS.format('count(*) AS c')}")
    enough, sent = threading.Event(), [0]

    def flow() -> None:
        while not enough.wait(0.1):
            part = range(sent[0], sent[0] + 20)
            play.produce(topic, [{"n": n, "at": 100 * n} for n in part])
            sent[0] = part.stop

    def taken_over(before: str) -> bool:
        return bool(play.query(name)["id"] != before)

    flowing = threading.Thread(target=flow)
    flowing.start()
    try:
        play.consume(sink, 1)
        first = play.query(name)["id"]
        more = COUNTS.format("count(*) AS c, sum(n) AS t")
        changed = f"CREATE OR REPLACE STREAM counts WITH ('topic'='{sink}') AS {more} QUERY WITH ('replace.mode'='blue_green')"
        assert play.sql(changed)["results"][0]["rows"][0][:2] == [f"{name}__green", "blue-green"]
        eventually(lambda: taken_over(first), 120, "the hand-over")
        play.wait(name, "running")
        second, at = play.query(name)["id"], sent[0]
        play.sql(f"ROLLBACK QUERY {name}")
        eventually(lambda: taken_over(second), 120, "the way back")
        play.wait(name, "running")
        eventually(lambda: sent[0] > at + 5 * PER_WINDOW, 60, "more records")
    finally:
        enough.set()
        flowing.join()
    # Records may be ten seconds late, as long as a window is.
    count = (sent[0] - 1) // PER_WINDOW - 1
    found = play.consume(sink, count)
    assert [row["c"] for row in found] == [PER_WINDOW] * count
    found.sort(key=lambda row: row["first"])
    assert [row["first"] for row in found] == [PER_WINDOW * i for i in range(count)], "each window once"
    versions = ["t" in row for row in found]
    assert (versions[0], True in versions, versions[-1]) == (False, True, False)
