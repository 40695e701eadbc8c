"""A running query whose owner loses a privilege: its job ends, after a grace, and says what is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import fakes
import pytest
from starlette.testclient import TestClient

from leatstream.model.objects import Query
from leatstream.services import driver_calls as drivers
from leatstream.services.environment import Principal
from leatstream.services.queries import catalog as queries
from leatstream.services.queries.reconcile import revoked_rights
from leatstream.services.queries.reconcile.reconciler import reconcile_all

ANN = Principal("ann", "sysadmin")
STREAM = "demo.public.pageviews"


def on(privilege: str, kind: str, name: str | None = None) -> dict[str, Any]:
    return {"privilege": privilege, "on": kind, "name": name}


SELECT = on("select", "relation", STREAM)
GRANTS = (
    on("usage", "database", "demo"),
    on("usage", "schema", "demo.public"),
    SELECT,
    on("create_relation", "schema", "demo.public"),
    on("create_query", "organization"),
    on("create_application", "organization"),
    on("usage", "store", "k"),
    on("create_entity", "store", "k"),
)


@dataclass
class Clock:
    moment: datetime = datetime(2026, 11, 26, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment


@dataclass
class Running:
    """A world in which a role owns queries that run."""

    world: Any
    admin: TestClient
    owner: TestClient
    clock: Clock

    def grants(self, *grants: dict[str, Any], role: str = "runner", **more: Any) -> None:
        answer = self.admin.put(f"/v1/roles/{role}", json={"grants": list(grants), **more})
        assert answer.status_code in (200, 201), answer.text

    def revoke(self) -> None:
        self.grants(*(one for one in GRANTS if one is not SELECT))

    def run(self, sql: str) -> None:
        answer = self.owner.post("/v1/statements", json={"sql": sql, "database": "demo", "store": "k"})
        assert answer.status_code == 200, answer.text

    def query(self, name: str = "made") -> Query:
        return queries.get_query(self.world.env, ANN, name)

    def shown(self, name: str = "made") -> Any:
        return self.admin.get(f"/v1/queries/{name}").json()["status"]

    def after(self, seconds: float) -> str:
        """The state of the query after a pass that much later."""
        self.clock.moment += timedelta(seconds=seconds)
        for name in [one["name"] for one in self.admin.get("/v1/queries").json()["items"]]:
            self.beat("running", name)
        reconcile_all(self.world.env)
        return self.query().status.state.value

    def beat(self, state: str, name: str = "made") -> str | None:
        query = self.query(name)
        if query.status.driver_id is None or query.job.get("led_by"):
            return None
        report = {"query_id": query.meta.id, "attempt": query.status.attempt, "state": state}
        report["fencing_token"] = drivers.fencing_token(query)
        return drivers.heartbeat(self.world.env, query.status.driver_id, report)["directive"]


@pytest.fixture
def running(fresh: Any, pageviews: TestClient) -> Running:
    """The query ``made``, which runs with the rights of the role ``runner``."""
    clock = Clock()
    fresh.env.clock = clock
    fresh.drivers.tokens.update({f"d{number}": "t" for number in range(4)})

    def client(token: str) -> TestClient:
        headers = {"Authorization": f"Bearer {token}"}
        return TestClient(pageviews.app, headers=headers, raise_server_exceptions=False)

    admin = client(fakes.administrator(fresh))
    found = Running(fresh, admin, admin, clock)
    found.grants(*GRANTS)
    admin.put("/v1/service-accounts/runner", json={"roles": ["runner"]})
    answer = admin.post("/v1/tokens/runner", json={"account": "runner", "scope": "write"})
    found.owner = client(answer.json()["value"])
    found.run(f"CREATE STREAM made AS SELECT userid FROM {STREAM}")
    for _ in range(2):
        reconcile_all(fresh.env)
    assert found.after(10) == "running"
    return found


def set_grace(running: Running, seconds: float) -> None:
    running.world.env.settings = replace(running.world.env.settings, revoked_grace=seconds)


def test_it_ends_at_once_without_a_grace_and_says_why(running: Running) -> None:
    set_grace(running, 0)
    running.revoke()
    assert running.after(5) == "stopping"
    assert "Role runner lacks SELECT on relation demo.public.pageviews" in running.shown()["message"]
    assert running.beat("running") == "stop"
    running.beat("stopped")
    reconcile_all(running.world.env)
    shown = running.shown()
    assert (shown["state"], shown["desired_state"]) == ("failed", "running")
    assert (shown["error"]["code"], shown["error"]["retryable"]) == ("permission-denied", False)
    assert shown["error"]["hint"] == (
        "Run GRANT SELECT ON RELATION demo.public.pageviews TO ROLE runner; then RESTART QUERY made."
    )
    running.grants(*GRANTS)
    assert running.after(60) == "failed", "a person starts it again"
    running.run("RESTART QUERY made")
    assert running.after(1) == "starting"


def test_within_the_grace_it_goes_on_and_warns(running: Running) -> None:
    running.revoke()
    assert running.after(5) == "running"
    [warned] = [one for one in running.shown()["conditions"] if one["type"] == "Revoked"]
    assert (
        "lacks SELECT on relation demo.public.pageviews. The job ends in 60 s. Run GRANT" in warned["message"]
    )
    assert (running.after(59), running.beat("running")) == ("running", "continue")
    events = running.admin.get("/v1/queries/made/events").json()["items"]
    assert len([one for one in events if "The job ends in 60 s" in (one["reason"] or "")]) == 1
    assert running.after(1) == "stopping"


def test_a_right_that_comes_back_in_time_changes_nothing(running: Running) -> None:
    """As when Terraform replaces a grant."""
    attempt = running.query().status.attempt
    running.revoke()
    running.after(5)
    running.grants(*GRANTS)
    running.after(5)
    assert [one["type"] for one in running.shown()["conditions"]] == [
        "EntityReady",
        "JobRunning",
    ]
    assert running.after(120) == "running"
    assert (running.query().status.attempt, running.shown()["message"]) == (attempt, None)


@pytest.mark.parametrize("how", ["membership", "owner of the query", "usage of the schema"])
def test_every_way_to_lose_a_right(running: Running, how: str) -> None:
    set_grace(running, 0)
    lesser = [one for one in GRANTS if one is not SELECT]
    if how == "membership":
        running.grants(SELECT, role="readers")
        running.grants(*lesser, inherits=["readers"])
        assert running.after(5) == "running"
        running.grants(*lesser, inherits=[])
    elif how == "owner of the query":
        running.grants(role="other")
        answer = running.admin.post(
            "/v1/statements", json={"sql": "GRANT OWNERSHIP ON QUERY made TO ROLE other"}
        )
        assert answer.status_code == 200, answer.text
    else:
        running.grants(*(one for one in GRANTS if one["on"] != "schema"))
    assert running.after(5) == "stopping"
    missing = "USAGE on schema demo.public" if how.startswith("usage") else "SELECT on relation"
    assert missing in running.shown()["message"]


def test_a_function_that_may_be_called_no_more(running: Running) -> None:
    set_grace(running, 0)
    code = "def grade(x: str) -> str:\n    return x\n"
    assert running.admin.put("/v1/function-sources/f", json={"file": "f.py", "content": code}).is_success
    body = {
        "arguments": [{"name": "x", "type": "VARCHAR"}],
        "returns": "VARCHAR",
        "source": "f",
        "handler": "grade",
    }
    assert running.admin.put("/v1/functions/grade", json=body).is_success
    running.grants(*GRANTS, on("usage", "function", "grade"))
    running.run(f"CREATE STREAM graded AS SELECT grade(userid) AS g FROM {STREAM}")
    running.after(5)
    running.after(5)
    assert running.query("graded").status.state.value == "running"
    running.grants(*GRANTS)
    assert running.after(5) == "running"
    assert "lacks USAGE on function grade" in (running.query("graded").status.message or "")


def test_queries_that_are_one_job_end_together(running: Running) -> None:
    set_grace(running, 0)
    text = (
        "BEGIN APPLICATION shop USE STORE k; "
        "CREATE STREAM one AS SELECT * FROM pageviews; CREATE STREAM two AS SELECT userid FROM pageviews; "
        "END APPLICATION WITH ('application.job' = 'one')"
    )
    answer = running.owner.put("/v1/applications/shop", json={"sql": text, "database": "demo"})
    assert answer.status_code == 201, answer.text
    running.after(5)
    running.after(5)
    assert [running.query(name).status.state.value for name in ("one", "two")] == ["running"] * 2
    running.revoke()
    running.after(5)
    assert [running.query(name).status.state.value for name in ("one", "two")] == ["stopping"] * 2
    leader = next(name for name in ("one", "two") if not running.query(name).job.get("led_by"))
    running.beat("stopped", leader)
    reconcile_all(running.world.env)
    for name in ("one", "two"):
        shown = running.shown(name)
        assert (shown["state"], shown["error"]["code"]) == ("failed", "permission-denied")
        assert shown["error"]["hint"].endswith("TO ROLE runner; then restart its application.")


def test_the_rights_are_looked_at_after_changes_only(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor more often than every five seconds; and once a minute, whatever happens."""
    looks: list[int] = []
    whole: Callable[..., Any] = revoked_rights.OwnersRights
    monkeypatch.setattr(revoked_rights, "OwnersRights", lambda unit: looks.append(1) or whole(unit))
    running.after(5)
    looks.clear()
    for _ in range(5):
        running.after(6)
    assert looks == []
    running.revoke()
    for _ in range(6):
        running.after(1)
    assert (looks, running.query().status.revoked_at is not None) == ([1], True)
    running.grants(*GRANTS)
    running.after(5)
    running.after(61)
    assert len(looks) == 3
