"""A view, or a query into a topic, changes while records come in: nothing is missing, and nothing counts twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from clickhouse_server import PASSWORD, ClickHouseServer

pytestmark = [pytest.mark.stack, pytest.mark.timeout(400), pytest.mark.core]
CHUNK = 200


class OwnView:
    """A view in leatstream's own database, read by its SELECT."""

    words = ""

    def __init__(self, play: Any) -> None:
        self.play = play

    def row(self, columns: str) -> list[Any]:
        found = self.play.sql(f"SELECT {columns} FROM every")["results"][0]["rows"]
        return list(found[0])

    def shows(self, column: str) -> bool:
        found = self.play.http.get(f"/v1/relations/{self.play.name}.public.every").json()
        return column in [one["name"] for one in found["columns"]]


class ClickHouseView:
    """A view that ClickHouse holds, read there."""

    def __init__(self, play: Any, server: ClickHouseServer) -> None:
        self.server, self.place = server, f"shop.{play.name}_every"
        store = {"clickhouse": server.config(password=PASSWORD)}
        assert play.http.put(f"/v1/stores/{play.name}_ch", json=store).status_code == 201
        self.words = f"WITH ('store' = '{play.name}_ch', 'clickhouse.table.name' = '{play.name}_every') "

    def row(self, columns: str) -> list[Any]:
        (found,) = self.server.rows(f"SELECT {columns} FROM {self.place}")
        return [None if text == "\\N" else int(text) for text in found]

    def shows(self, column: str) -> bool:
        named = f"concat(database, '.', table) = '{self.place}' AND name = '{column}'"
        return self.server.rows(f"SELECT count() FROM system.columns WHERE {named}") == [["1"]]


@pytest.fixture(params=["own", "clickhouse"])
def view(request: pytest.FixtureRequest, play: Any) -> OwnView | ClickHouseView:
    if request.param == "own":
        return OwnView(play)
    return ClickHouseView(play, request.getfixturevalue("clickhouse"))


def test_numbered_records_are_whole_across_the_swap_and_back(
    play: Any, view: OwnView | ClickHouseView, eventually: Callable[..., Any]
) -> None:
    topic, name = play.stream("numbers", "n BIGINT"), f"{play.name}_every"
    made = play.run("every", f"CREATE MATERIALIZED VIEW every {view.words}AS SELECT n FROM numbers")
    assert made["status"]["state"] == "running", made["status"]
    sent, shown = 0, 0

    def more() -> None:
        nonlocal sent
        play.produce(topic, [{"n": n} for n in range(sent, sent + CHUNK)])
        sent += CHUNK

    def whole() -> bool:
        """Every number once. What is there is never begun anew: the first numbers are always shown."""
        nonlocal shown
        count, distinct, last = view.row("count(*) AS c, count(DISTINCT n) AS d, max(n) AS last")
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
    told = play.sql(f"CREATE OR REPLACE MATERIALIZED VIEW every {view.words}AS {changed}")["results"][0]
    assert told["rows"][0][:2] == [f"{name}__green", "blue-green"]
    eventually(lambda: taken_over(first), 180, "the swap")
    assert sent > CHUNK
    eventually(lambda: view.shows("m"), 60, "the new column")
    eventually(whole, 60, "every number after the swap")
    assert view.row("sum(m) AS m") == [sum(n % 7 for n in range(sent))]
    eventually(
        lambda: play.query(f"{name}__blue")["status"]["state"] == "stopped", 60, "the end of the old job"
    )
    # What comes while it is away is not lost to the version before.
    more()
    second = play.query(name)["id"]
    play.sql(f"ROLLBACK QUERY {name}")
    eventually(lambda: taken_over(second), 180, "the way back")
    assert play.query(name)["id"] == first
    eventually(lambda: not view.shows("m"), 60, "the old columns")
    eventually(whole, 60, "every number after the way back")


PER_WINDOW = 100
START = 1_767_225_600_000
COUNTS = """SELECT min(n) AS first, {} FROM TUMBLE(numbers, SIZE 10 SECONDS) WITH ('starting.position'='earliest')
  GROUP BY window_start, window_end"""


class Flow:
    """Records that come all the time, twenty by twenty, while versions change.

    Args:
        send: writes the records of these numbers.
        pause: between two parts, seconds.
    """

    def __init__(self, send: Callable[[range], None], pause: float = 0.1) -> None:
        self.sent = 0
        self._send, self._pause, self._enough = send, pause, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Flow:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._enough.wait(self._pause):
            part = range(self.sent, self.sent + 20)
            self._send(part)
            self.sent = part.stop


def there_and_back(play: Any, eventually: Callable[..., Any], name: str, changed: str, flow: Flow) -> None:
    """Replace a query by the statement ``changed``, roll back, and let 500 records more come."""
    first = play.query(name)["id"]
    told = play.sql(f"{changed} QUERY WITH ('replace.mode'='blue_green')")["results"][0]
    assert told["rows"][0][:2] == [f"{name}__green", "blue-green"]
    eventually(lambda: play.query(name)["id"] != first, 120, "the hand-over")
    play.wait(name, "running")
    second, at = play.query(name)["id"], flow.sent
    eventually(lambda: flow.sent > at + 100, 60, "records for the second version")
    play.sql(f"ROLLBACK QUERY {name}")
    eventually(lambda: play.query(name)["id"] != second, 120, "the way back")
    play.wait(name, "running")
    at = flow.sent
    eventually(lambda: flow.sent > at + 500, 60, "more records")


@pytest.mark.long
def test_windows_are_whole_across_the_hand_over_and_back(play: Any, eventually: Callable[..., Any]) -> None:
    """Each window comes from one version, with all of its records, while more of them come all the time."""
    topic = play.stream("numbers", "n BIGINT, at BIGINT", timestamp="at")
    name, sink = f"{play.name}_counts", f"{play.name}.counts"
    play.run("counts", f"CREATE STREAM counts WITH ('topic'='{sink}') AS {COUNTS.format('count(*) AS c')}")
    more = COUNTS.format("count(*) AS c, sum(n) AS t")
    with Flow(lambda part: play.produce(topic, [{"n": n, "at": START + 100 * n} for n in part])) as flow:
        play.consume(sink, 1)
        changed = f"CREATE OR REPLACE STREAM counts WITH ('topic'='{sink}') AS {more}"
        there_and_back(play, eventually, name, changed, flow)
    # Records may be ten seconds late, as long as a window is.
    count = (flow.sent - 1) // PER_WINDOW - 1
    found = play.consume(sink, count)
    assert [row["c"] for row in found] == [PER_WINDOW] * count
    found.sort(key=lambda row: row["first"])
    assert [row["first"] for row in found] == [PER_WINDOW * i for i in range(count)], "each window once"
    versions = ["t" in row for row in found]
    assert (versions[0], True in versions, versions[-1]) == (False, True, False)


JOINED = "SELECT n, v.who, {} FROM numbers v WITH ('starting.position'='earliest') LEFT JOIN users u ON v.who = u.who"
USERS = 7


@pytest.mark.long
def test_a_temporal_join_is_whole_across_the_hand_over_and_back(
    play: Any, eventually: Callable[..., Any]
) -> None:
    """The versions of the changelog that a record meets are the same whichever query joins it."""
    users = play.topic("users")
    numbers = play.stream("numbers", "n BIGINT, who VARCHAR, at BIGINT", timestamp="at")
    play.sql(
        "CREATE CHANGELOG users (who VARCHAR, version BIGINT, changed BIGINT, PRIMARY KEY (who))"
        f" WITH ('topic'='{users}', 'value.format'='json', 'timestamp'='changed')"
    )
    sink = f"{play.name}.joined"

    def send(part: range) -> None:
        # Each change is there long before the first record that has to meet it: nothing waits for changes.
        coming = part.start + 100
        change = {"who": f"u{coming // 20 % USERS}", "version": coming, "changed": START + 100 * coming}
        play.produce(users, [change], key=lambda one: one["who"].encode())
        play.produce(numbers, [{"n": n, "who": f"u{n % USERS}", "at": START + 100 * n} for n in part])

    def met(n: int) -> int | None:
        return next((at for at in range(n - n % 20, 99, -20) if at // 20 % USERS == n % USERS), None)

    made = play.run("joined", f"CREATE STREAM joined WITH ('topic'='{sink}') AS {JOINED.format('u.version')}")
    assert made["plan"]["joins"][0]["kind"] == "temporal-join-stream-changelog"
    more = JOINED.format("u.version, u.version * 2 AS twice")
    with Flow(send, 0.3) as flow:
        play.consume(sink, 1)
        changed = f"CREATE OR REPLACE STREAM joined WITH ('topic'='{sink}') AS {more}"
        there_and_back(play, eventually, f"{play.name}_joined", changed, flow)
    found = sorted(play.consume(sink, flow.sent), key=lambda row: row["n"])
    assert [row["n"] for row in found] == list(range(flow.sent)), "each number once"
    assert [row["version"] for row in found] == [met(n) for n in range(flow.sent)]
    versions = ["twice" in row for row in found]
    assert (versions[0], True in versions, versions[-1]) == (False, True, False)
    assert all(row["twice"] == 2 * row["version"] for row in found if "twice" in row)
