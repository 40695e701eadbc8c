"""Changelogs through the whole product: a stream joined with one, also after kill -9, and an aggregate over one."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import psutil
import pytest
from deadlines import patient

from leatstream.connectors.registry import open_connector

pytestmark = [pytest.mark.stack, pytest.mark.timeout(400)]
USERS = "userid VARCHAR, region VARCHAR, changed BIGINT, PRIMARY KEY (userid)"
START = 1_767_225_600_000


def user(name: str, region: str | None, at: int) -> tuple[bytes, Any]:
    value = {"userid": name, "region": region, "changed": START + at}
    return name.encode(), value if region is not None else None


def put(play: Any, topic: str, *records: tuple[bytes, Any]) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": play.kafka, "linger.ms": 5})
    for key, value in records:
        producer.produce(topic, json.dumps(value).encode() if value is not None else None, key=key)
    assert producer.flush(30) == 0


def table(play: Any, topic: str, wanted: dict[bytes | None, Any]) -> dict[bytes | None, Any]:
    """The topic's newest value per record key, as soon as it is ``wanted`` or the time is over."""
    kafka = open_connector("kafka", "store", {"bootstrap_servers": play.kafka})
    deadline = time.monotonic() + patient(90)
    while True:
        found: dict[bytes | None, Any] = {}
        for record in kafka.read_records(topic, from_beginning=True, limit=None, idle_timeout=0.5):
            if record is not None and record.value is not None:
                found[record.key] = json.loads(record.value)
            elif record is not None:
                found.pop(record.key, None)
        if found == wanted or time.monotonic() > deadline:
            return found


def views(first: int, *found: tuple[str, int]) -> list[dict[str, Any]]:
    return [{"n": first + i, "userid": who, "at": START + at} for i, (who, at) in enumerate(found)]


@pytest.mark.core
def test_a_temporal_join_survives_a_kill(play: Any) -> None:
    topic = play.topic("users")
    source = play.stream("views", "n BIGINT, userid VARCHAR, at BIGINT", timestamp="at")
    sink = f"{play.name}.enriched"
    play.sql(
        f"CREATE CHANGELOG users ({USERS}) WITH ('topic'='{topic}', 'value.format'='json', 'timestamp'='changed')"
    )
    put(play, topic, user("a", "r1", 0), user("b", "r2", 0), user("a", "r3", 1000))
    made = play.run(
        "enriched",
        f"CREATE STREAM enriched WITH ('topic'='{sink}') AS SELECT v.n, v.userid, u.region FROM views v"
        " WITH ('starting.position'='earliest', 'source.timestamp.max.ahead.millis'=NONE)"
        " LEFT JOIN users u ON v.userid = u.userid",
    )
    assert made["status"]["state"] == "running", made["status"]
    assert made["plan"]["joins"] == [
        {"kind": "temporal-join-stream-changelog", "type": "left", "within": None, "left": "v", "right": "u"}
    ]
    assert made["plan"]["mode"] == "micro_batch"
    play.produce(source, views(0, ("a", 5), ("a", 999), ("a", 1000), ("b", 5), ("c", 5)))
    regions = {0: "r1", 1: "r1", 2: "r3", 3: "r2", 4: None}
    assert {r["n"]: r["region"] for r in play.consume(sink, 5)} == regions

    # The versions are in the checkpoint: the next driver finds them, with what came in between.
    before = play.query(made["name"])["status"]["job"]
    with contextlib.suppress(psutil.NoSuchProcess):
        os.kill(before["pid"], signal.SIGKILL)
    put(play, topic, user("a", None, 2000), user("c", "r9", 100))
    play.produce(source, views(5, ("a", 1500), ("b", 9000), ("c", 5)))
    after = {5: "r3", 6: "r2", 7: None}
    found = play.consume(sink, 8, seconds=180, distinct="n")
    assert {r["n"]: r["region"] for r in found} == regions | after
    # A record without value has no column that tells its time: its own counts, which is now.
    later = 20 * 366 * 86_400_000
    play.produce(source, views(8, ("a", 2500), ("c", 200), ("a", later)))
    found = play.consume(sink, 11, distinct="n")
    assert {r["n"]: r["region"] for r in found} == regions | after | {8: "r3", 9: "r9", 10: None}


@pytest.mark.long
def test_changelogs_of_changelogs(play: Any, eventually: Callable[..., Any]) -> None:
    """Groups of a changelog as a changelog, and in a view, which is exact after kill -9."""
    topic, sink = play.topic("users"), f"{play.name}.by_region"
    known = f"{play.name}.known"
    play.sql(f"CREATE CHANGELOG users ({USERS}) WITH ('topic'='{topic}', 'value.format'='json')")
    put(play, topic, user("a", "r1", 0), user("b", "r1", 0), user("c", "x", 0))
    made = play.run(
        "known",
        f"CREATE CHANGELOG known WITH ('topic'='{known}') AS SELECT userid AS who, region FROM users"
        " WHERE region LIKE 'r%'",
    )
    assert made["plan"]["sink"]["primary_key"] == ["who"]
    # It keeps no state, so it can run at the lowest latency.
    assert made["plan"]["mode"] == "realtime", made["plan"]["mode_reason"]
    rows = {b"a": {"who": "a", "region": "r1"}, b"b": {"who": "b", "region": "r1"}}
    assert table(play, known, rows) == rows
    made = play.run(
        "by_region",
        f"CREATE CHANGELOG by_region WITH ('topic'='{sink}') AS SELECT region, count(*) AS n, min(who) AS first"
        " FROM known GROUP BY region",
    )
    assert made["status"]["state"] == "running", made["status"]
    counts: dict[bytes | None, Any] = {b"r1": {"region": "r1", "n": 2, "first": "a"}}
    assert table(play, sink, counts) == counts
    view = play.run(
        "sizes", "CREATE MATERIALIZED VIEW sizes AS SELECT region, count(*) AS n FROM known GROUP BY region"
    )
    assert (view["plan"]["sink"]["primary_key"], view["plan"]["delivery"]) == (["region"], "exactly_once")

    def sizes(wanted: list[list[Any]]) -> bool:
        return play.sql("SELECT region, n FROM sizes")["results"][0]["rows"] == wanted

    eventually(lambda: sizes([["r1", 2]]), 90, "the first group")
    with contextlib.suppress(psutil.NoSuchProcess):
        os.kill(play.query(view["name"])["status"]["job"]["pid"], signal.SIGKILL)
    put(play, topic, user("a", "r2", 5), user("b", None, 5), user("d", "r2", 5))
    eventually(lambda: sizes([["r2", 2]]), 120, "a new group in place of the empty one")
    counts = {b"r2": {"region": "r2", "n": 2, "first": "a"}}
    assert table(play, sink, counts) == counts
    assert play.refused("DROP CHANGELOG known")["code"] == "has-dependents"


def test_several_queries_write_into_a_changelog(play: Any) -> None:
    """Rows of a changelog that go are taken back; groups of a stream are upserts of the same key."""
    topic, sink = play.topic("users"), play.topic("known")
    source = play.stream("more", "n BIGINT, who VARCHAR")
    play.sql(
        f"CREATE CHANGELOG users ({USERS}) WITH ('topic'='{topic}', 'value.format'='json');"
        "CREATE CHANGELOG known (region VARCHAR, who VARCHAR, PRIMARY KEY (who))"
        f" WITH ('topic'='{sink}', 'value.format'='json')"
    )
    refused = play.refused("INSERT INTO known SELECT userid, region FROM users")
    assert (refused["code"], "replace each other by userid" in refused["detail"]) == ("unsupported", True)
    first = play.run(
        "first", "INSERT INTO known SELECT region, userid FROM users WHERE region LIKE 'r%'", shared=True
    )
    assert first["plan"]["sink"]["primary_key"] == ["who"]
    text = "INSERT INTO known SELECT max(concat('n', CAST(n AS VARCHAR))), who FROM more"
    play.run("second", f"{text} WITH ('starting.position'='earliest') GROUP BY who", shared=True)
    put(play, topic, user("a", "r1", 0), user("b", "r1", 0), user("c", "x", 0))
    play.produce(source, [{"n": 1, "who": "d"}, {"n": 2, "who": "d"}])
    regions = {"a": "r1", "b": "r1", "d": "n2"}
    rows: dict[bytes | None, Any] = {k.encode(): {"region": r, "who": k} for k, r in regions.items()}
    assert table(play, sink, rows) == rows
    put(play, topic, user("a", "x", 5), user("b", None, 5))
    rows = {b"d": rows[b"d"]}
    assert table(play, sink, rows) == rows
    play.produce(source, [{"n": 3, "who": "b"}])
    rows[b"b"] = {"region": "n3", "who": "b"}
    assert table(play, sink, rows) == rows


COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "100",
}


@pytest.mark.long  # the broker compacts when it likes
def test_a_compacted_changelog_is_read_as_its_newest_rows(play: Any) -> None:
    """The broker takes old rows away while the topic is written; readers pass over the gaps."""
    source = play.stream("spent", "who VARCHAR, n BIGINT")
    sink = f"{play.name}.totals"
    configs = ", ".join(f"'kafka.topic.{name}'='{value}'" for name, value in COMPACTED.items())
    play.run(
        "totals",
        f"CREATE CHANGELOG totals WITH ('topic'='{sink}', {configs}) AS SELECT who, sum(n) AS n FROM spent"
        " WITH ('starting.position'='earliest') GROUP BY who HAVING sum(n) < 100",
        shared=True,
    )
    kafka = open_connector("kafka", "store", {"bootstrap_servers": play.kafka})
    made = kafka.find_entity(sink)
    assert made is not None
    assert dict(made.configs) == COMPACTED

    def records(key: bytes, topic: str = sink) -> list[int | None]:
        found = kafka.read_records(topic, from_beginning=True, limit=None, idle_timeout=0.5)
        values = [r.value for r in found if r is not None and r.key == key]
        return [json.loads(value)["n"] if value is not None else None for value in values]

    def spend(who: str, n: int, until: Callable[[], bool]) -> None:
        play.produce(source, [{"who": who, "n": n}])
        deadline = time.monotonic() + patient(60)
        while not until():
            assert time.monotonic() < deadline, (records(b"a"), records(b"c"))

    spend("b", 1, lambda: records(b"b") == [1])
    spend("c", 50, lambda: records(b"c") == [50])
    spend("c", 50, lambda: records(b"c")[-1] is None)
    for n in range(1, 4):
        spend("a", 1, lambda n=n: records(b"a")[-1:] == [n])
    # The segment that is written to is not compacted: more records make it an old one.
    deadline = time.monotonic() + patient(120)
    while records(b"a") != [3] or 50 in records(b"c"):
        assert time.monotonic() < deadline, (records(b"a"), records(b"c"))
        play.produce(source, [{"who": "z", "n": 1 - len(records(b"z"))}])
    assert records(b"b") == [1]
    for mode in ("realtime", "micro_batch"):
        copy = f"{play.name}.{mode}"
        query = play.run(
            mode,
            f"CREATE CHANGELOG {mode} WITH ('topic'='{copy}', 'kafka.topic.cleanup.policy'='delete') AS SELECT who, n"
            " FROM totals WITH ('starting.position'='earliest') WHERE who <> 'z'"
            f" QUERY WITH ('mode'='{mode}')",
        )
        assert query["plan"]["mode"] == mode
        wanted: dict[bytes | None, Any] = {b"a": {"who": "a", "n": 3}, b"b": {"who": "b", "n": 1}}
        assert table(play, copy, wanted) == wanted
        assert [value for value in records(b"c", copy) if value is not None] == []
        assert records(b"a", copy) == [3]


@pytest.mark.long  # test_applications.py has virtual streams
def test_virtual_changelogs_take_rows_back(play: Any) -> None:
    """Two statements of an application read groups of a filter, none of which has a topic."""
    topic, name = play.topic("users"), f"{play.name}_app"
    play.sql(f"CREATE CHANGELOG users ({USERS}) WITH ('topic'='{topic}', 'value.format'='json')")
    made = play.sql(
        f"""BEGIN APPLICATION {name}
          CREATE VIRTUAL CHANGELOG virtual.public.known AS SELECT userid AS who, region FROM users WHERE region <> 'x';
          CREATE VIRTUAL CHANGELOG virtual.public.sizes AS
            SELECT upper(region) AS region, count(*) AS n FROM virtual.public.known GROUP BY upper(region);
          CREATE CHANGELOG large WITH ('topic' = '{play.name}.large') AS SELECT * FROM virtual.public.sizes WHERE n > 1;
          CREATE CHANGELOG one WITH ('topic' = '{play.name}.one') AS
            SELECT s.region FROM virtual.public.sizes s WHERE s.n = 1;
        END APPLICATION""",
        wait_timeout="60s",
    )["results"][0]
    try:
        for row in made["rows"]:
            play.wait(row[0])
        put(play, topic, user("a", "r1", 0), user("b", "r1", 0), user("c", "x", 0), user("d", "r2", 0))
        large: dict[bytes | None, Any] = {b"R1": {"region": "R1", "n": 2}}
        assert table(play, f"{play.name}.large", large) == large
        one: dict[bytes | None, Any] = {b"R2": {"region": "R2"}}
        assert table(play, f"{play.name}.one", one) == one
        put(play, topic, user("a", "x", 5), user("b", None, 5), user("c", "r2", 5))
        large = {b"R2": {"region": "R2", "n": 2}}
        assert table(play, f"{play.name}.large", large) == large
        assert table(play, f"{play.name}.one", {}) == {}
    finally:
        play.sql(f"DROP APPLICATION {name}")
