"""Plans wait for stores and the analyzer: only so many at a time, so that nothing else waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.errors import EngineError
from leatstream.ports import Freshness, UnitOfWork
from leatstream.services.environment import Context, Principal
from leatstream.services.environment.turns import UNITS_OF_A_PLAN, Turns
from leatstream.services.statements.dry_run import validate

ANN = Principal("ann", "sysadmin")
READS = "SELECT * FROM pageviews"
APPLICATION = f"""BEGIN APPLICATION shop USE STORE k;
  CREATE VIRTUAL STREAM virtual.public.late AS SELECT * FROM pageviews WHERE viewtime > 5;
  CREATE STREAM kept WITH ('topic'='kept') AS SELECT * FROM virtual.public.late;
  INSERT INTO kept {READS}; END APPLICATION"""


def send(client: TestClient, sql: str, how: str = "") -> Any:
    return client.post(f"/v1/statements{how}", json={"sql": sql, "database": "demo", "store": "k"})


@pytest.fixture
def alone(pageviews: TestClient, fresh: Any) -> TestClient:
    """A client where one plans at a time, and there is a query and a materialized view."""
    assert send(pageviews, f"CREATE STREAM old AS {READS}").status_code == 200
    assert send(pageviews, f"CREATE MATERIALIZED VIEW seen AS {READS}").status_code == 200
    fresh.env.turns = Turns(1, patience=0.0)
    return pageviews


@pytest.mark.parametrize(
    ("how", "sql"),
    [
        (":validate", READS),
        (":validate", f"CREATE STREAM s AS {READS}"),
        (":validate", APPLICATION),
        ("", READS),
        ("", f"CREATE STREAM s AS {READS}"),
        ("", f"INSERT INTO old {READS}"),
        ("", f"DESCRIBE CREATE STREAM s AS {READS}"),
        ("", f"CREATE OR REPLACE STREAM old AS {READS} WHERE viewtime > 1"),
        (
            "",
            f"CREATE OR REPLACE MATERIALIZED VIEW seen AS {READS} WHERE viewtime > 1 "
            "QUERY WITH ('replace.mode'='blue_green')",
        ),
        ("", APPLICATION),
        ("", "CREATE STREAM s WITH ('topic'='pageviews', 'value.format'='avro')"),
    ],
)
def test_what_finds_no_turn_is_to_be_sent_again(alone: TestClient, fresh: Any, how: str, sql: str) -> None:
    with fresh.env.turns.taken():
        answer = send(alone, sql, how)
    assert (answer.status_code, answer.json()["code"]) == (503, "engine-unavailable"), answer.text
    assert answer.headers["retry-after"] == "1"


def test_what_plans_nothing_needs_none(alone: TestClient, fresh: Any) -> None:
    """Queries can be stopped and started, and records written, whatever plans wait for."""
    with fresh.env.turns.taken():
        assert alone.get("/v1/queries").status_code == 200
        for statement in (
            "TERMINATE QUERY old",
            "RESTART QUERY old",
            "INSERT INTO pageviews VALUES (1, 'a')",
            "CREATE STREAM s (n BIGINT) WITH ('topic'='pageviews', 'value.format'='json')",
            "SHOW STREAMS",
        ):
            answer = send(alone, statement)
            assert answer.status_code == 200, answer.text


def test_plans_within_plans_take_one_turn(alone: TestClient) -> None:
    """An application's are made in an environment of their own, the dry run's within the dry run's."""
    checked = send(alone, f"{APPLICATION}; {READS}", ":validate").json()
    assert [s["problems"] for s in checked["statements"]] == [[], []]
    answer = send(alone, APPLICATION)
    assert answer.status_code == 200, answer.text


class Counted:
    """Counts the units that are open, of each thread."""

    def __init__(self, opened: Callable[..., AbstractContextManager[UnitOfWork]]) -> None:
        self._opened = opened
        self.now: dict[int, int] = {}
        self.most: dict[int, int] = {}

    @contextmanager
    def __call__(self, *, write: bool = True) -> Iterator[UnitOfWork]:
        me = threading.get_ident()
        self.now[me] = self.now.get(me, 0) + 1
        self.most[me] = max(self.most.get(me, 0), self.now[me])
        try:
            with self._opened(write=write) as unit:
                yield unit
        finally:
            self.now[me] -= 1


def test_who_waits_for_a_turn_holds_no_connection(
    pageviews: TestClient, fresh: Any, eventually: Callable[..., Any]
) -> None:
    """The analyzer hangs: two plans hold the catalog, and the others nothing."""
    fresh.env.turns = Turns(2, patience=60.0)
    units = fresh.env.open_unit = Counted(fresh.env.open_unit)
    answers, analyze, asked = threading.Event(), fresh.env.analyzer.analyze, []

    def hangs(*arguments: Any) -> Any:
        asked.append(arguments)
        assert answers.wait(60)
        return analyze(*arguments)

    fresh.env.analyzer.analyze = hangs
    valid: list[bool] = []

    def plan() -> None:
        valid.append(validate(fresh.env, ANN, READS, Context("demo")).valid)

    threads = [threading.Thread(target=plan, daemon=True) for _ in range(6)]
    for thread in threads:
        thread.start()
    # All have read the session's defaults, which is what they do before they ask for a turn.
    eventually(lambda: len(units.most) == len(threads) and len(asked) == 2)
    eventually(lambda: sum(units.now.values()) == 2)
    assert len(asked) == 2
    answers.set()
    for thread in threads:
        thread.join(60)
    assert valid == [True] * 6


def test_a_plan_holds_so_many_connections_and_no_more(pageviews: TestClient, fresh: Any) -> None:
    """What the number of turns is reckoned with."""
    units = fresh.env.open_unit = Counted(fresh.env.open_unit)
    connect = fresh.env.connect

    def as_real(store: Any) -> Any:
        with fresh.env.open_unit(write=False):
            return connect(store)

    fresh.env.connect = as_real
    found = validate(fresh.env, ANN, f"{APPLICATION}; {READS}", Context("demo", "public", "k"))
    assert found.valid, found.statements
    assert max(units.most.values()) == UNITS_OF_A_PLAN


def test_the_refusal_is_no_fault_of_a_statement(pageviews: TestClient, fresh: Any) -> None:
    """A plan of Terraform's that meets it is sent again, and does not end with the fault."""
    fresh.env.turns = Turns(0, patience=0.0)
    with pytest.raises(EngineError):
        validate(fresh.env, ANN, READS, Context("demo", "public", "k"))


def test_rows_of_views_are_read_without_the_catalog(
    alone: TestClient, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may take half a minute, which nobody else is to wait for."""
    units = fresh.env.open_unit = Counted(fresh.env.open_unit)
    held: list[int] = []

    def read(snapshot: Any) -> Any:
        held.append(sum(units.now.values()))
        return [], [Freshness(None, None, None) for _ in snapshot.tables]

    monkeypatch.setattr(fresh.env.views, "read", read)
    answer = send(alone, "SELECT * FROM seen")
    assert answer.status_code == 200, answer.text
    assert held == [0]
