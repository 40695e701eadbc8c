"""Aggregates through the whole product: CREATE CHANGELOG in, upserts with their key out of Kafka."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from deadlines import patient

from leatstream.connectors.registry import open_connector

pytestmark = [pytest.mark.stack]
COLUMNS = "userid VARCHAR, n BIGINT, at TIMESTAMP"
WINDOWED = "window_start, userid, count(*) AS views, sum(n) AS total FROM TUMBLE(views, SIZE 1 MINUTE)"


def view(user: str | None, n: int, at: str) -> dict[str, Any]:
    return {"userid": user, "n": n, "at": f"2026-01-01 {at}"}


def table(
    play: Any, topic: str, wanted: dict[bytes | None, Any], seconds: float = 90
) -> dict[bytes | None, Any]:
    """The topic's newest value per record key, as soon as it is ``wanted`` or the time is over."""
    kafka = open_connector("kafka", "store", {"bootstrap_servers": play.kafka})
    deadline = time.monotonic() + patient(seconds)
    while True:
        found: dict[bytes | None, Any] = {}
        for record in kafka.read_records(topic, from_beginning=True, limit=None, idle_timeout=0.5):
            if record is not None:
                found[record.key] = json.loads(record.value) if record.value is not None else None
        if found == wanted or time.monotonic() > deadline:
            return found


def test_a_changelog_by_window(play: Any, eventually: Any) -> None:
    topic = play.stream("views", COLUMNS, timestamp="at")
    sink = f"{play.name}.per_minute"
    play.produce(topic, [view("a", 1, "00:00:05"), view("b", 2, "00:00:59"), view("a", 3, "00:00:10")])
    made = play.run(
        "per_minute",
        f"CREATE CHANGELOG per_minute WITH ('topic'='{sink}') AS SELECT {WINDOWED}"
        " WITH ('starting.position'='earliest') GROUP BY window_start, window_end, userid",
        shared=True,
        delete_sink_entity=True,
    )
    assert made["status"]["state"] == "running", made["status"]
    assert made["kind"] == "create_changelog_as"
    plan = made["plan"]
    assert plan["mode"] == "micro_batch"
    assert plan["output_mode"] == "update"
    assert plan["window"] == {
        "kind": "tumble",
        "size_ms": 60_000,
        "advance_ms": 60_000,
        "late_after_ms": 10_000,
    }
    assert plan["sink"]["primary_key"] == ["window_start", "userid"]
    key = plan["sink"]["properties"]["key.format"]
    assert (key["value"], key["origin"]) == ("json", "default")

    relation = play.http.get(f"/v1/relations/{play.name}.public.per_minute").json()
    assert relation["kind"] == "changelog"
    assert relation["primary_key"] == ["window_start", "userid"]
    assert relation["statement"].startswith(f"CREATE CHANGELOG {play.name}.public.per_minute (window_start")
    assert "PRIMARY KEY (window_start, userid)" in relation["statement"]

    def row(minute: str, user: str, views: int, total: int) -> tuple[bytes, Any]:
        start = f"2026-01-01 00:{minute}:00"
        key = f'{{"window_start":"{start}","userid":"{user}"}}'.encode()
        return key, {"window_start": start, "userid": user, "views": views, "total": total}

    wanted = dict([row("00", "a", 2, 4), row("00", "b", 1, 2)])
    assert table(play, sink, wanted) == wanted
    # One more for an open window, then one that closes it.
    play.produce(topic, [view("a", 10, "00:00:30")])
    wanted |= dict([row("00", "a", 3, 14)])
    assert table(play, sink, wanted) == wanted
    play.produce(topic, [view("c", 1, "00:30:00")])
    wanted |= dict([row("30", "c", 1, 1)])
    assert table(play, sink, wanted) == wanted
    # Too late: nothing changes, and the row is counted.
    play.produce(topic, [view("a", 1000, "00:00:31"), view("c", 2, "00:30:01")])
    wanted |= dict([row("30", "c", 2, 3)])
    assert table(play, sink, wanted) == wanted
    eventually(
        lambda: play.query(f"{play.name}_per_minute")["status"]["metrics"].get("late_rows_total") == 1,
        what="one late row",
    )

    assert play.refused("DROP CHANGELOG per_minute")["code"] == "has-dependents"


@pytest.mark.core
def test_a_changelog_without_a_window_survives_a_restart(play: Any) -> None:
    topic = play.stream("views", COLUMNS, timestamp="at")
    sink = f"{play.name}.per_user"
    answer = play.sql(
        f"CREATE CHANGELOG per_user WITH ('topic'='{sink}') AS SELECT userid, count(*) AS views, max(n) AS top"
        " FROM views GROUP BY userid HAVING count(*) < 3",
        wait_timeout="60s",
    )
    assert answer["results"][0]["kind"] == "create_changelog_as"
    play.wait("per_user", "running")
    play.produce(topic, [view("a", 1, "00:00:00"), view("b", 7, "00:00:00"), view("a", 5, "23:00:00")])
    wanted: dict[bytes | None, Any] = {
        b"a": {"userid": "a", "views": 2, "top": 5},
        b"b": {"userid": "b", "views": 1, "top": 7},
    }
    assert table(play, sink, wanted) == wanted
    assert play.http.post("/v1/queries/per_user:restart").status_code == 202
    play.produce(topic, [view("a", 2, "00:00:00"), view("b", 3, "00:00:00")])
    wanted = {b"a": None, b"b": {"userid": "b", "views": 2, "top": 7}}
    assert table(play, sink, wanted) == wanted
    listed = play.sql("LIST CHANGELOGS")["results"][0]["rows"]
    assert [row[0] for row in listed] == [f"{play.name}.public.per_user"]
    # Another aggregate cannot read the old state.
    changed = play.http.post(
        "/v1/statements:validate",
        json={
            "sql": f"CREATE CHANGELOG per_user WITH ('topic'='{sink}') AS SELECT userid, sum(n) AS views"
            " FROM views GROUP BY userid",
            "name": "per_user",
            **play.context,
        },
    ).json()["statements"][0]
    assert changed["problems"] == []
    assert changed["plan"]["change"]["class"] == "new-state"


@pytest.mark.core
def test_a_stream_takes_each_window_once(play: Any) -> None:
    topic = play.stream("views", COLUMNS, timestamp="at")
    sink = f"{play.name}.closed"
    made = play.run(
        "closed",
        f"CREATE STREAM closed WITH ('topic'='{sink}', 'key.format'='primitive', 'key.columns'='userid') AS"
        f" SELECT {WINDOWED} GROUP BY window_start, window_end, userid",
        shared=True,
    )
    assert made["plan"]["output_mode"] == "append"
    play.produce(topic, [view("a", 1, "00:00:05"), view("a", 2, "00:00:50")])
    play.produce(topic, [view("b", 1, "00:02:00")])
    first = {"window_start": "2026-01-01 00:00:00", "userid": "a", "views": 2, "total": 3}
    assert play.consume(sink, 1) == [first]
    assert table(play, sink, {b"a": first}) == {b"a": first}
