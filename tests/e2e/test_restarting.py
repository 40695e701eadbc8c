"""The whole way on a real stack: a savepoint, a new query that begins with it, one that completes, a restart from a place."""

from __future__ import annotations

import time
from typing import Any

import pytest
from deadlines import patient

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300), pytest.mark.core]


def _ready(play: Any, name: str) -> dict[str, Any]:
    deadline = time.monotonic() + patient(60)
    while True:
        found: dict[str, Any] = play.http.get(f"/v1/savepoints/{name}").json()
        if found["state"] != "pending":
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def _numbers(*wanted: int) -> list[dict[str, int]]:
    return [{"n": n} for n in wanted]


def test_savepoint_completion_and_a_restart_from_the_beginning(play: Any) -> None:
    source = play.stream("numbers", "n BIGINT")
    blue, green = f"{play.name}.blue", f"{play.name}.green"
    query, name = f"{play.name}_blue", f"{play.name}_sp"
    play.produce(source, _numbers(0, 1, 2))
    once = "QUERY WITH ('query.trigger'='available_now'{})"
    play.sql(
        f"CREATE STREAM blue WITH ('topic'='{blue}') AS SELECT n FROM numbers "
        + once.format(f", 'query.name'='{query}'")
    )
    assert play.wait(query, "completed", "failed")["status"]["state"] == "completed"
    assert [r["n"] for r in play.consume(blue, 3)] == [0, 1, 2]
    play.sql(f"TERMINATE QUERY {query} WITH SAVEPOINT {name}")
    savepoint = _ready(play, name)
    assert (savepoint["state"], savepoint["query"]) == ("ready", query), savepoint
    assert savepoint["offsets"] == {f"{play.name}.public.numbers": {source: {"0": 3}}}
    # A new query goes on where it stood; nothing of what it had read comes again.
    play.produce(source, _numbers(3, 4))
    play.sql(
        f"CREATE STREAM green WITH ('topic'='{green}') AS SELECT n * 10 AS n FROM numbers "
        + once.format(f", 'query.name'='{play.name}_green', 'from.savepoint'='{name}'")
    )
    assert play.wait(f"{play.name}_green", "completed", "failed")["status"]["state"] == "completed"
    assert [r["n"] for r in play.consume(green, 2)] == [30, 40]
    # From the beginning: all of it is written once more.
    told = play.sql(f"RESTART QUERY {query} FROM EARLIEST")["results"][0]["rows"][0]
    assert "once more" in told[3]
    found = [r["n"] for r in play.consume(blue, 8)]
    assert found == [0, 1, 2, 0, 1, 2, 3, 4]
    play.sql(f"DROP SAVEPOINT {name}")
