"""Many queries in one JVM: what befalls one is its own; when the JVM dies all recover, and the culprit goes apart."""

from __future__ import annotations

import os
import signal
from typing import Any

import psutil
import pytest
from numbered_records import Feed, distinct_numbers

pytestmark = [pytest.mark.stack, pytest.mark.timeout(480)]
SHARED = "QUERY WITH ('query.driver'='shared')"
RECORDS = 20_000


def job(play: Any, name: str) -> dict[str, Any]:
    body = play.query(f"{play.name}_{name}")
    return {**body["status"]["job"], "state": body["status"]["state"], "message": body["status"]["message"]}


def end_all(play: Any, names: list[str]) -> None:
    for name in names:
        play.http.delete(f"/v1/queries/{play.name}_{name}")


def test_five_queries_share_a_driver_and_nothing_else(play: Any, eventually: Any) -> None:
    numbers, frail = play.stream("numbers", "n BIGINT, s VARCHAR"), play.stream("frail", "n BIGINT")
    out = {name: f"{play.name}.{name}" for name in ("copied", "even", "frail_copy")}
    statements = {
        "copied": f"CREATE STREAM copied WITH ('topic'='{out['copied']}') AS SELECT n, s FROM numbers",
        "even": f"CREATE STREAM even WITH ('topic'='{out['even']}') AS SELECT n FROM numbers WHERE n % 2 = 0",
        "counted": "CREATE CHANGELOG counted AS SELECT s, count(*) AS c FROM numbers GROUP BY s",
        "kept": "CREATE MATERIALIZED VIEW kept AS SELECT s, count(*) AS c FROM numbers GROUP BY s",
        "frail_copy": f"CREATE STREAM frail_copy WITH ('topic'='{out['frail_copy']}') AS SELECT n FROM frail",
    }
    made = {name: play.run(name, f"{sql} {SHARED}") for name, sql in statements.items()}
    assert {q["plan"]["driver"] for q in made.values()} == {"shared"}
    assert {q["plan"]["mode"] for q in made.values()} == {"micro_batch"}
    (pid,) = {q["status"]["job"]["pid"] for q in made.values()}

    feed = Feed(play.kafka, numbers, RECORDS)
    play.produce(frail, [{"n": 1}])
    play.consume(out["frail_copy"], 1)
    play.produce(frail, [b"no JSON"])
    failed = play.wait(f"{play.name}_frail_copy", "failed")
    assert failed["status"]["error"]["code"] == "undecodable-record"
    lines = play.http.get(f"/v1/queries/{play.name}_frail_copy/logs").json()["lines"]
    assert any("frail_copy failed" in line for line in lines), lines
    assert not any("copied" in line or "even" in line for line in lines), "each query has its own lines"

    # One is stopped and started again beside the others.
    play.http.patch(f"/v1/queries/{play.name}_even", json={"desired_state": "stopped"})
    assert play.wait(f"{play.name}_even", "stopped")["status"]["job"]["pid"] is None
    play.http.patch(f"/v1/queries/{play.name}_even", json={"desired_state": "running"})
    assert play.wait(f"{play.name}_even", "running")["status"]["job"]["pid"] == pid
    others = [name for name in statements if name != "frail_copy"]
    assert {job(play, name)["attempt"] for name in others if name != "even"} == {1}

    os.kill(pid, signal.SIGKILL)
    eventually(lambda: all(job(play, name)["attempt"] > 1 for name in others), what="the restart of all")
    for name in others:
        play.wait(f"{play.name}_{name}", "running")
    (again,) = {job(play, name)["pid"] for name in others}
    assert again != pid
    assert job(play, "frail_copy")["state"] == "failed"

    feed.join()
    assert distinct_numbers(play.kafka, out["copied"], RECORDS)[0] == RECORDS
    assert distinct_numbers(play.kafka, out["even"], RECORDS // 2)[0] == RECORDS // 2

    def rows() -> Any:
        return play.sql("SELECT c FROM kept")["results"][0]["rows"] == [[RECORDS]]

    eventually(rows, what="every record in the view, once")
    end_all(play, list(statements))


@pytest.mark.long  # unit/services/test_shared_drivers.py has the rule
def test_a_query_that_kills_its_shared_driver_is_set_apart(play: Any, eventually: Any) -> None:
    numbers, bombs = (
        play.stream("numbers", "n BIGINT, s VARCHAR"),
        play.stream("bombs", "n INTEGER, s VARCHAR"),
    )
    sink = f"{play.name}.copied"
    play.run("copied", f"CREATE STREAM copied WITH ('topic'='{sink}') AS SELECT n, s FROM numbers {SHARED}")
    play.run("bomb", f"CREATE STREAM bomb AS SELECT length(repeat(s, n)) AS w FROM bombs {SHARED}")
    pid = job(play, "copied")["pid"]
    assert job(play, "bomb")["pid"] == pid
    # More than the heap can hold: the JVM ends, again at each start, as the record is read anew.
    play.produce(bombs, [{"n": 2_000_000_000, "s": "x"}])
    psutil.Process(pid).wait(60)

    def told() -> Any:
        events = play.http.get(f"/v1/queries/{play.name}_bomb/events").json()["items"]
        return next((e for e in events if "a driver of its own" in (e["reason"] or "")), None)

    eventually(told, seconds=240, what="the suspicion")
    play.http.patch(f"/v1/queries/{play.name}_bomb", json={"desired_state": "stopped"})
    play.wait(f"{play.name}_copied", "running")
    play.produce(numbers, [{"n": i, "s": "x"} for i in range(100)])
    assert len(play.consume(sink, 100, distinct="n")) >= 100
    assert not any("driver of its own" in (e["reason"] or "") for e in events_of(play, "copied"))
    end_all(play, ["copied", "bomb"])


def events_of(play: Any, name: str) -> list[dict[str, Any]]:
    return play.http.get(f"/v1/queries/{play.name}_{name}/events").json()["items"]
