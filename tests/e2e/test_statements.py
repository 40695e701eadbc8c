"""Statements about queries and records, and the records route, on the running stack."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import psutil
import pytest

pytestmark = [pytest.mark.stack]


def rows(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of a statement's result, by column name."""
    names = [column["name"] for column in result["columns"]]
    return [dict(zip(names, row, strict=True)) for row in result["rows"]]


def last(answer: dict[str, Any]) -> dict[str, Any]:
    """A text's last result."""
    found: dict[str, Any] = answer["results"][-1]
    return found


@pytest.mark.core
def test_a_query_is_made_shown_printed_terminated_and_restarted_by_sql(play: Any) -> None:
    topic, sink = play.stream("numbers", "n BIGINT"), f"{play.name}.even"
    made = last(
        play.sql(
            f"CREATE STREAM even WITH ('topic'='{sink}') AS SELECT n FROM numbers WHERE n % 2 = 0",
            wait_timeout="60s",
        )
    )
    assert (made["kind"], made["status"]) == ("create_stream_as", "succeeded")
    name = made["query"]

    def shown() -> dict[str, Any]:
        return next(row for row in rows(last(play.sql("SHOW QUERIES"))) if row["name"] == name)

    assert (shown()["desired_state"], shown()["state"]) == ("running", "running")
    assert shown()["sink"] == f"{play.name}.public.even"
    play.produce(topic, [{"n": n} for n in range(20)])
    play.consume(sink, 10)

    # PRINT: what is there, from the beginning and no more than asked for.
    printed = rows(last(play.sql(f"PRINT TOPIC {sink} IN STORE {play.name} WITH ('from_beginning')")))
    assert [json.loads(row["value"])["n"] for row in printed] == list(range(0, 20, 2))
    assert [(row["partition"], row["offset"]) for row in printed] == [(0, n) for n in range(10)]
    times = [datetime.fromisoformat(row["timestamp"]) for row in printed]
    assert all(abs(at.timestamp() - time.time()) < 3600 for at in times)
    place = f"'partition'=0, 'since'='{printed[7]['timestamp']}'"
    since = rows(last(play.sql(f"PRINT ENTITY {sink} IN STORE {play.name} WITH ({place})")))
    first = next(n for n, at in enumerate(times) if at >= times[7])
    assert [row["offset"] for row in since] == list(range(first, 10))
    behind = rows(last(play.sql(f"PRINT ENTITY {sink} WITH ('partition'=0, 'offset'=8)")))
    assert [row["offset"] for row in behind] == [8, 9]
    three = rows(last(play.sql(f"PRINT ENTITY {sink} WITH ('from_beginning', 'limit'=3)")))
    assert [row["offset"] for row in three] == [0, 1, 2]
    assert rows(last(play.sql(f"PRINT ENTITY {sink}"))) == []

    # TERMINATE: the job ends, the query and its offsets stay.
    assert last(play.sql(f"TERMINATE QUERY {name}"))["kind"] == "terminate_query"
    stopped = play.wait(name, "stopped")
    assert (shown()["desired_state"], shown()["state"]) == ("stopped", "stopped")
    play.produce(topic, [{"n": n} for n in range(20, 40)])

    # RESTART: it goes on from where it was.
    assert last(play.sql(f"RESTART QUERY {name}"))["status"] == "running"
    running = play.wait(name, "running")
    assert running["status"]["job"]["attempt"] > stopped["status"]["job"]["attempt"]
    assert {r["n"] for r in play.consume(sink, 20, distinct="n")} == set(range(0, 40, 2))
    play.sql(f"DROP QUERY {name}")


@pytest.mark.core
def test_records_as_lines_and_as_events(
    play: Any, leatstream_server: Any, eventually: Callable[..., Any]
) -> None:
    topic = play.topic("records", partitions=2)
    path = f"/v1/stores/{play.name}/entities/{topic}/records"
    play.produce(topic, [{"n": n} for n in range(10)])

    # NDJSON: ends after the limit, or after a time without a record.
    answer = play.http.get(path, params={"from": "beginning", "limit": 4})
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert len(answer.text.splitlines()) == 4
    answer = play.http.get(path, params={"from": "beginning", "timeout": "1s"})
    records = [json.loads(line) for line in answer.text.splitlines()]
    assert {record["value"]["n"] for record in records} == set(range(10))
    assert set(records[0]) >= {"key", "value", "partition", "offset", "timestamp", "headers"}

    # Server-sent events: each with the record's position, and an end.
    wanted = {"Accept": "text/event-stream"}
    answer = play.http.get(path, params={"from": "beginning", "limit": 3}, headers=wanted)
    assert answer.headers["content-type"].startswith("text/event-stream")
    blocks = [block for block in answer.text.split("\n\n") if block and not block.startswith(":")]
    assert [block.splitlines()[0] for block in blocks] == ["event: record"] * 3 + ["event: end"]
    for block in blocks[:3]:
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        record = json.loads(fields["data"])
        assert fields["id"] == f"{record['partition']}:{record['offset']}"
        assert record["value"]["n"] in range(10)

    # From now on, without an end, until the client goes: the reader's connections go with it.
    server = psutil.Process(leatstream_server.process.pid)
    broker = int(play.kafka.rpartition(":")[2])

    def connections() -> int:
        return sum(1 for one in server.net_connections("tcp") if one.raddr and one.raddr.port == broker)

    for accept in ("application/x-ndjson", "text/event-stream"):
        with play.http.stream("GET", path, headers={"Accept": accept}) as stream:
            assert stream.status_code == 200
            play.produce(topic, [{"n": 100}])
            line = next(line for line in stream.iter_lines() if '"value"' in line)
            assert json.loads(line.removeprefix("data: "))["value"] == {"n": 100}
            open_now = connections()
        eventually(lambda most=open_now: connections() < most, what="the end of the reader")


def test_starting_positions(play: Any) -> None:
    from confluent_kafka import Producer

    topic = play.stream("history", "n BIGINT")
    # Old records, a second apart; the one after the middle has exactly the time that is asked for.
    begin = int(time.time() * 1000) - 600_000
    producer = Producer({"bootstrap.servers": play.kafka})
    for n in range(20):
        producer.produce(topic, json.dumps({"n": n}).encode(), timestamp=begin + n * 1000)
    assert producer.flush(30) == 0
    positions = {
        "earliest": "WITH ('starting.position'='earliest')",
        "latest": "",
        "middle": "WITH ('starting.position'='timestamp', "
        f"'starting.position.timestamp'={begin + 10 * 1000})",
    }
    for name, properties in positions.items():
        play.stream(f"out_{name}", "n BIGINT", play.topic(f"out_{name}"))
        body = {"sql": f"INSERT INTO out_{name} SELECT n FROM history {properties}", **play.context}
        assert play.http.put(f"/v1/queries/{play.name}_{name}", json=body).status_code == 201
    for name in positions:
        found = play.wait(f"{play.name}_{name}", "running", "failed")
        assert found["status"]["state"] == "running", found["status"]
    play.produce(topic, [{"n": n} for n in range(20, 25)])
    for name, first in (("earliest", 0), ("latest", 20), ("middle", 10)):
        records = play.consume(f"{play.name}.out_{name}", 25 - first, distinct="n")
        assert {record["n"] for record in records} == set(range(first, 25)), name
