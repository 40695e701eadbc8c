"""Interactive SELECT on the running stack: rows flow while somebody reads, and nothing is left when he goes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.stack]
EARLIEST = "WITH ('starting.position' = 'earliest')"


@pytest.fixture
def left(leatstream_server: Any, eventually: Callable[..., Any]) -> Callable[[], None]:
    """Waits until no driver holds anything of a SELECT."""

    def nothing() -> None:
        places = leatstream_server.data_dir / "drivers"
        eventually(lambda: not list(places.glob("*/stm_*")), 60, "the end of every SELECT")

    return nothing


def started(play: Any, sql: str) -> str:
    result = play.sql(sql)["results"][-1]
    assert result["status"] == "running"
    return str(result["rows"])


def read(play: Any, path: str, **params: Any) -> Iterator[dict[str, Any]]:
    with play.http.stream("GET", path, params=params) as answer:
        assert answer.status_code == 200
        for line in answer.iter_lines():
            if line:
                yield json.loads(line)


@pytest.mark.core
def test_rows_flow_until_the_limit_and_as_they_come(play: Any, left: Callable[[], None]) -> None:
    topic = play.stream("numbers", "n BIGINT, d DECIMAL(20, 6), at TIMESTAMP(6), tags ARRAY<VARCHAR>")
    record = {"n": 9007199254740993, "d": 1.25, "at": "2026-01-01 00:00:00.123456", "tags": ["ä", None]}
    play.produce(topic, [record | {"n": record["n"] + i} for i in range(50)])
    sql = f"SELECT n, d, at, tags FROM numbers {EARLIEST}"
    told = list(read(play, started(play, f"{sql} LIMIT 5")))
    assert told.pop() == {"end": {"reason": "limit", "rows": 5}}
    assert [row["row"]["n"] for row in told] == [record["n"] + i for i in range(5)]
    assert told[0] == {"op": "+I", "row": record}
    assert [r["row"]["n"] for r in list(read(play, started(play, sql), limit=50))[:-1]] == [
        record["n"] + i for i in range(50)
    ]

    # New records come while the reader stays; those before are not told from 'latest'.
    rows = read(play, started(play, "SELECT n FROM numbers WHERE n % 2 = 0"), max_time="60s")
    done = threading.Event()

    def produce() -> None:
        while not done.wait(0.3):
            play.produce(topic, [{"n": 2}, {"n": 3}])

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        assert [next(rows), next(rows)] == [{"op": "+I", "row": {"n": 2}}] * 2
    finally:
        done.set()
        thread.join()
    rows.close()  # type: ignore[attr-defined]
    left()
    assert all(not q["name"].startswith("stm") for q in play.http.get("/v1/queries").json()["items"])


def test_groups_are_told_as_they_change(play: Any) -> None:
    topic = play.stream("votes", "who VARCHAR, n BIGINT")
    play.produce(topic, [{"who": "ann", "n": 1}, {"who": "bob", "n": 5}])
    sql = f"SELECT who, sum(n) AS total FROM votes {EARLIEST} GROUP BY who HAVING sum(n) < 6"
    rows = read(play, started(play, sql), max_time="120s")
    first = [next(rows), next(rows)]
    assert sorted((r["op"], r["row"]["who"], r["row"]["total"]) for r in first) == [
        ("+U", "ann", 1),
        ("+U", "bob", 5),
    ]
    play.produce(topic, [{"who": "bob", "n": 5}])
    assert next(rows) == {"op": "-D", "row": {"who": "bob"}}
    rows.close()  # type: ignore[attr-defined]


def test_a_failing_select_ends_with_its_problem(play: Any, left: Callable[[], None]) -> None:
    topic = play.stream("odd", "n BIGINT")
    play.produce(topic, [{"n": 1}, b"no json"])
    told = list(read(play, started(play, f"SELECT n FROM odd {EARLIEST}")))
    assert told[-1]["error"]["code"] == "undecodable-record", told
    assert "offset 1" in told[-1]["error"]["detail"]
    left()


def client(play: Any, leatstream_server: Any, *arguments: str) -> subprocess.Popen[str]:
    names = ["--database", play.name, "--schema", "public", "--store", play.name]
    return subprocess.Popen(
        [sys.executable, "-m", "leatstream.cli.main", "sql", *names, *arguments],
        env=os.environ
        | {"LEATSTREAM_URL": leatstream_server.url, "LEATSTREAM_TOKEN": leatstream_server.token},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def running(data_dir: Path) -> list[Path]:
    return list((data_dir / "drivers").glob("*/stm_*"))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_when_the_client_goes(
    how: signal.Signals, play: Any, leatstream_server: Any, left: Callable[[], None]
) -> None:
    topic = play.stream("endless", "n BIGINT")
    play.produce(topic, [{"n": n} for n in range(3)])
    left()
    process = client(play, leatstream_server, "-e", f"SELECT n FROM endless {EARLIEST}", "-o", "csv")
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(4)] == ["n\n", "0\n", "1\n", "2\n"]
    assert len(running(leatstream_server.data_dir)) == 1
    process.send_signal(how)
    _, said = process.communicate(timeout=60)
    if how is signal.SIGINT:
        assert process.returncode == 130
        assert "3 rows: ended." in said
    left()
