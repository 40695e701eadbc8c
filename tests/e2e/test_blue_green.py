"""A materialized view changes while records come in: no number is missing, none counts twice, none is lost."""

from __future__ import annotations

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
