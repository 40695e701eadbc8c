"""Applications as code: put whole, changed statement by statement, planned before, ended with a wait."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.model.objects import QueryState
from leatstream.services.driver_calls import fencing_token, heartbeat

FIRST = "CREATE STREAM one AS SELECT * FROM pageviews WHERE viewtime > 1"
SECOND = "INSERT INTO one SELECT * FROM pageviews WHERE viewtime < 1"
PATH = "/v1/applications/shop"


def _text(*statements: str, name: str = "shop") -> str:
    return (
        f"BEGIN APPLICATION {name}\n  USE STORE k;\n"
        + "".join(f"  {s};\n" for s in statements)
        + "END APPLICATION"
    )


def _put(client: TestClient, *statements: str, headers: Any = None, **more: Any) -> Any:
    body = {"sql": _text(*statements), "database": "demo", **more}
    return client.put(PATH, json=body, headers=headers or {})


def _ok(answer: Any, status: int = 200) -> Any:
    assert answer.status_code == status, answer.text
    return answer.json()


def _actions(application: Any) -> dict[str, tuple[str, str | None]]:
    return {
        q["name"]: (q["action"], (q["plan"].get("change") or {}).get("class"))
        for q in application["plan"]["queries"]
    }


def _queries(client: TestClient) -> dict[str, Any]:
    return {q["name"]: q for q in client.get("/v1/queries").json()["items"]}


def _set_status(fresh: Any, name: str, **status: Any) -> None:
    with fresh.env.open_unit() as unit:
        query = unit.queries.find(name)
        unit.queries.update(replace(query, status=replace(query.status, **status)))
        unit.commit()
    fresh.env.changed.notify()


def test_the_same_text_is_no_change(pageviews: TestClient) -> None:
    """PUT creates, then finds nothing to do; other spelling is another text of the same queries."""
    answer = _put(pageviews, FIRST, SECOND, comment="for people")
    made = _ok(answer, 201)
    assert (made["generation"], answer.headers["ETag"]) == (1, '"1"')
    assert answer.headers["Location"] == PATH
    assert made["sql"] == _text(FIRST, SECOND)
    assert made["queries"] == ["one", "shop_insert_into_one"]
    assert made["sinks"] == ["demo.public.one"] * 2
    assert _actions(made) == {"one": ("create", None), "shop_insert_into_one": ("create", None)}
    assert made["plan"]["change"] is None
    before = _queries(pageviews)
    assert _ok(_put(pageviews, FIRST, SECOND, comment="for people")) == made
    assert _queries(pageviews) == before
    body = {"sql": f"-- so\n{_text(FIRST, SECOND)};", "database": "demo", "comment": "for people"}
    spelled = _ok(pageviews.put(PATH, json=body))
    assert (spelled["generation"], spelled["plan"]["change"]["class"]) == (2, "none")
    assert set(_actions(spelled).values()) == {("keep", None)}
    assert _queries(pageviews) == before


def test_preconditions(pageviews: TestClient) -> None:
    """If-Match and If-None-Match, as for every noun."""
    _ok(_put(pageviews, FIRST), 201)
    stale = _put(pageviews, FIRST, SECOND, headers={"If-Match": '"7"'})
    assert (stale.status_code, stale.json()["code"]) == (412, "stale")
    taken = _put(pageviews, FIRST, headers={"If-None-Match": "*"})
    assert taken.json()["code"] == "already-exists"
    assert _ok(_put(pageviews, FIRST, SECOND, headers={"If-Match": '"1"'}))["generation"] == 2
    assert pageviews.delete(PATH, headers={"If-Match": '"1"'}).status_code == 412
    assert pageviews.delete(PATH, headers={"If-Match": '"2"'}).status_code == 204


def test_only_what_differs_changes(pageviews: TestClient) -> None:
    """One stays untouched, one changes in place, one comes, one goes; the answer and the dry run tell."""
    third = "CREATE STREAM three AS SELECT * FROM pageviews"
    _ok(_put(pageviews, FIRST, SECOND, third), 201)
    before = _queries(pageviews)
    changed = (FIRST, SECOND.replace("< 1", "< 2"), "CREATE STREAM four AS SELECT * FROM pageviews")
    body = {"sql": _text(*changed), "database": "demo", "name": "shop"}
    [told] = _ok(pageviews.post("/v1/statements:validate", json=body))["statements"]
    assert told["problems"] == []
    assert _queries(pageviews) == before
    after = _ok(_put(pageviews, *changed))
    assert _actions(after) == {
        "one": ("keep", None),
        "shop_insert_into_one": ("change", "restart-from-offsets"),
        "four": ("create", None),
    }
    assert after["plan"]["removed"] == ["three"]
    assert told["plan"] == after["plan"]
    assert after["plan"]["change"]["class"] == "new-state"
    assert "query three: it ends" in after["plan"]["change"]["reason"]
    assert (after["generation"], after["queries"]) == (2, ["one", "shop_insert_into_one", "four"])
    now = _queries(pageviews)
    assert now["one"] == before["one"]
    assert now["shop_insert_into_one"]["generation"] == 2
    assert "three" not in now
    relations = [r["fqn"] for r in pageviews.get("/v1/relations").json()["items"]]
    assert "demo.public.three" not in relations
    assert "demo.public.four" in relations


def test_nothing_is_kept_if_one_statement_is_wrong(pageviews: TestClient) -> None:
    """All faults at once, each at its place; none that only follows from another."""
    _ok(_put(pageviews, FIRST), 201)
    before = (_queries(pageviews), pageviews.get(PATH).json(), pageviews.get("/v1/relations").json())
    wrong = (
        FIRST.replace("> 1", "> 2"),
        "CREATE STREAM two AS SELECT nothing FROM pageviews",
        "CREATE STREAM of_two AS SELECT * FROM two",
        "INSERT INTO one SELECT * FROM nowhere",
    )
    answer = _put(pageviews, *wrong)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "unknown-column")
    text = _text(*wrong)
    found = [(e["code"], text[e["position"]["offset"] :][:7], e["pointer"]) for e in problem["errors"]]
    assert found == [("unknown-column", "nothing", "#/sql"), ("unknown-relation", "nowhere", "#/sql")]
    assert [e["position"]["line"] for e in problem["errors"]] == [4, 6]
    body = {"sql": text, "database": "demo", "name": "shop"}
    [told] = pageviews.post("/v1/statements:validate", json=body).json()["statements"]
    assert [p["position"] for p in told["problems"]] == [e["position"] for e in problem["errors"]]
    assert (_queries(pageviews), pageviews.get(PATH).json(), pageviews.get("/v1/relations").json()) == before


def test_a_new_shape_goes_through_the_application(pageviews: TestClient) -> None:
    """Readers inside are planned anew even if their statements stay; a reader outside holds the shape."""
    source = (
        "CREATE STREAM a (viewtime BIGINT, userid VARCHAR) WITH ('topic'='pageviews', 'value.format'='json')"
    )
    readers = ("CREATE STREAM b AS SELECT * FROM a", "CREATE STREAM c AS SELECT * FROM b")
    _ok(_put(pageviews, source, *readers), 201)
    narrow = source.replace(", userid VARCHAR", "")
    after = _ok(_put(pageviews, narrow, *readers))
    assert [q["action"] for q in after["plan"]["queries"]] == ["change", "change"]
    columns = pageviews.get("/v1/relations/demo.public.c").json()["columns"]
    assert [column["name"] for column in columns] == ["viewtime"]
    wide = source.replace("userid VARCHAR", "userid VARCHAR, more BIGINT")
    after = _ok(_put(pageviews, wide, *readers))
    assert [q["action"] for q in after["plan"]["queries"]] == ["keep", "keep"]
    other = {"sql": "CREATE STREAM o WITH ('store'='k') AS SELECT userid FROM a", "database": "demo"}
    _ok(pageviews.put("/v1/queries/o", json=other), 201)
    held = _put(pageviews, narrow, *readers)
    assert (held.status_code, held.json()["code"]) == (409, "has-dependents")
    assert "query o" in held.json()["errors"][0]["detail"]
    assert pageviews.get(PATH).json()["generation"] == 3


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (FIRST, "CREATE CHANGELOG one AS SELECT userid, count(*) AS n FROM pageviews GROUP BY userid"),
        (FIRST, f"{FIRST} QUERY WITH ('query.name' = 'other')"),
        (FIRST, "CREATE STREAM one (viewtime BIGINT) WITH ('topic'='pageviews', 'value.format'='json')"),
        ("CREATE STREAM one (viewtime BIGINT) WITH ('topic'='pageviews', 'value.format'='json')", FIRST),
    ],
)
def test_what_cannot_change_in_place(pageviews: TestClient, first: str, then: str) -> None:
    """It is refused at the plan and when it is put; nothing has changed then."""
    _ok(_put(pageviews, first), 201)
    refused = _put(pageviews, then)
    assert (refused.status_code, refused.json()["code"]) == (409, "requires-replacement"), refused.text
    assert refused.json()["errors"][0]["pointer"] == "#/sql"
    body = {"sql": _text(then), "database": "demo", "name": "shop"}
    told = _ok(pageviews.post("/v1/statements:validate", json=body))
    assert told["valid"]
    assert told["statements"][0]["plan"]["change"]["class"] == "refused"
    assert pageviews.get(PATH).json()["generation"] == 1
    assert pageviews.delete(PATH).status_code == 204
    _ok(_put(pageviews, then), 201)


def test_order_counts(pageviews: TestClient) -> None:
    """What a first run would refuse is refused where the relation is there already, too."""
    reader = "CREATE STREAM b AS SELECT * FROM one"
    assert _put(pageviews, reader, FIRST).json()["code"] == "unknown-relation"
    _ok(_put(pageviews, FIRST, reader), 201)
    assert "further down" in _put(pageviews, reader, FIRST).json()["detail"]


def test_its_text_names_it(pageviews: TestClient) -> None:
    """One application, of the name that the path has."""
    for sql in (_text(FIRST, name="other"), FIRST, f"{_text(FIRST)}; LIST STORES"):
        answer = pageviews.put(PATH, json={"sql": sql, "database": "demo"})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "#/sql")
    body = {"sql": _text(FIRST, name="other"), "database": "demo", "name": "shop"}
    assert not pageviews.post("/v1/statements:validate", json=body).json()["valid"]


def test_inserts_of_several_applications_are_called_as_planned(pageviews: TestClient) -> None:
    """One configuration may make them in any order, and a plan has told their names."""
    shared = {"sql": FIRST.replace("one", "all_of_it"), "database": "demo", "store": "k"}
    _ok(pageviews.post("/v1/statements", json=shared))
    text = SECOND.replace("one", "all_of_it")
    bodies = {name: {"sql": _text(text, name=name), "database": "demo", "name": name} for name in ("a", "b")}
    told = {
        name: _ok(pageviews.post("/v1/statements:validate", json=body))["statements"][0]
        for name, body in bodies.items()
    }
    for name in ("b", "a"):
        del bodies[name]["name"]
        made = _ok(pageviews.put(f"/v1/applications/{name}", json=bodies[name]), 201)
        assert made["queries"] == [q["name"] for q in told[name]["plan"]["queries"]]
        assert made["queries"] == [f"{name}_insert_into_all_of_it"]


def test_planned_objects_are_seen(client: TestClient) -> None:
    """Terraform plans a store, a topic, a stream, a query, an application and a reader of it in one run."""
    assume = {
        "databases": [{"name": "d"}],
        "stores": [{"name": "k", "kafka": {"bootstrap_servers": "localhost:9092"}}],
        "entities": [{"store": "k", "name": "views", "kafka": {"partitions": 3, "replicas": 1}}],
        "relations": [
            {
                "database": "d", "schema": "public", "name": "views", "store": "k", "topic": "views",
                "columns": [{"name": "n", "type": "BIGINT"}], "value_format": "json",
            }
        ],
        "queries": [{"name": "q", "sql": "CREATE STREAM mid AS SELECT n FROM views", "database": "d", "store": "k"}],
    }  # fmt: skip
    declared = "CREATE STREAM again (n BIGINT) WITH ('topic'='views', 'value.format'='json')"
    text = _text(
        "CREATE STREAM one AS SELECT * FROM mid", declared, "INSERT INTO views SELECT 1 AS n FROM one"
    )
    body = {"sql": text, "database": "d", "name": "shop", "assume": assume}
    [told] = _ok(client.post("/v1/statements:validate", json=body))["statements"]
    assert told["problems"] == []
    assert [q["name"] for q in told["plan"]["queries"]] == ["one", "shop_insert_into_views"]
    sink = told["plan"]["queries"][0]["plan"]["sink"]
    assert sink["properties"]["topic.partitions"]["value"] == 3
    assert client.get("/v1/relations").json()["items"] == []
    assume["applications"] = [{"name": "shop", "sql": text, "database": "d"}]
    reader = {"sql": "CREATE STREAM r AS SELECT n FROM one", "database": "d", "store": "k", "assume": assume}
    for name in ("r", "shop"):
        assert _ok(client.post("/v1/statements:validate", json={**reader, "name": name}))["valid"]
    wrong = {**body, "sql": _text("CREATE STREAM one AS SELECT nothing FROM mid"), "assume": assume}
    [told] = _ok(client.post("/v1/statements:validate", json=wrong))["statements"]
    assert [p["code"] for p in told["problems"]] == ["unknown-column"]


def test_its_state_and_the_wait_for_it(pageviews: TestClient, fresh: Any) -> None:
    """The worst of its queries; a job of the version before does not count as running."""

    def state(wait: str = "running", timeout: str = "0s") -> str:
        found = pageviews.get(PATH, params={"wait_for": wait, "timeout": timeout}).json()
        return str(found["status"]["state"])

    _ok(_put(pageviews, FIRST, SECOND), 201)
    assert state() == "pending"
    for name in ("one", "shop_insert_into_one"):
        _set_status(fresh, name, state=QueryState.RUNNING, observed_generation=1, driver_id="d1")
    assert state(timeout="30s") == "running"
    for name, told in (("one", "running"), ("shop_insert_into_one", "completed")):
        _set_status(fresh, name, state=QueryState.COMPLETED)
        assert state() == told
    for name in ("one", "shop_insert_into_one"):
        _set_status(fresh, name, state=QueryState.RUNNING)
    changed = _ok(_put(pageviews, FIRST, SECOND.replace("< 1", "< 2")))
    assert (changed["status"]["state"], changed["status"]["observed_generation"]) == ("starting", 1)
    _set_status(fresh, "shop_insert_into_one", state=QueryState.FAILED, message="no more")
    failed = pageviews.get(PATH, params={"wait_for": "running,failed"}).json()["status"]
    assert (failed["state"], failed["message"]) == ("failed", "shop_insert_into_one: no more")


def test_a_stop_by_hand_lasts(pageviews: TestClient) -> None:
    """Of one query, until it changes; of all, as the application's desired state."""
    _ok(_put(pageviews, FIRST, SECOND), 201)

    def wanted() -> list[str]:
        return [q["desired_state"] for q in _queries(pageviews).values()]

    stop = {"content-type": "application/merge-patch+json"}
    assert (
        pageviews.patch("/v1/queries/one", json={"desired_state": "stopped"}, headers=stop).status_code == 200
    )
    assert pageviews.get(PATH).json()["status"]["state"] == "pending"
    _ok(_put(pageviews, FIRST, SECOND.replace("< 1", "< 2")))
    assert wanted() == ["stopped", "running"]
    _ok(_put(pageviews, FIRST.replace("> 1", "> 3"), SECOND))
    assert wanted() == ["running", "running"]
    stopped = _ok(_put(pageviews, FIRST, SECOND, desired_state="stopped"))
    assert (wanted(), stopped["desired_state"]) == (["stopped", "stopped"], "stopped")
    body = {"sql": "RESTART APPLICATION shop"}
    assert pageviews.post("/v1/statements", json=body).status_code == 200
    assert (wanted(), pageviews.get(PATH).json()["desired_state"]) == (["running", "running"], "running")


def test_it_ends_when_its_jobs_have(pageviews: TestClient, fresh: Any) -> None:
    """202 while a job is stopping; nothing else may be done to it; gone with the last of its queries."""
    _ok(_put(pageviews, FIRST, SECOND), 201)
    _set_status(fresh, "one", state=QueryState.RUNNING, observed_generation=1, driver_id="d1")
    going = _ok(pageviews.delete(PATH), 202)
    assert going["status"]["state"] == "stopping"
    assert list(_queries(pageviews)) == ["one"]
    assert _ok(pageviews.delete(PATH), 202)["generation"] == going["generation"]
    for answer in (
        _put(pageviews, FIRST),
        pageviews.post("/v1/statements", json={"sql": "RESTART APPLICATION shop"}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, "invalid-transition")
    dropped = pageviews.post("/v1/statements", json={"sql": "DROP APPLICATION shop"}).json()["results"][0]
    assert dropped["status"] == "running"
    _set_status(fresh, "one", state=QueryState.STOPPED, driver_id=None)
    assert pageviews.delete(PATH).status_code == 204
    assert (pageviews.get(PATH).status_code, _queries(pageviews)) == (404, {})
    _ok(_put(pageviews, FIRST), 201)


def test_a_heartbeat_in_between_is_no_conflict(pageviews: TestClient, fresh: Any) -> None:
    """Figures of a job that runs on are written once a second; planning many queries takes longer."""
    _ok(_put(pageviews, FIRST, SECOND), 201)
    _set_status(fresh, "one", state=QueryState.RUNNING, observed_generation=1, driver_id="d1")
    analyze = fresh.env.analyzer.analyze
    beats = 0

    def beating(*given: Any, **more: Any) -> Any:
        nonlocal beats
        beats += 1
        now = fresh.env.clock.now() + timedelta(minutes=beats)
        with fresh.env.open_unit(write=False) as unit:
            query = unit.queries.find("one")
        told = {"query_id": query.meta.id, "attempt": query.status.attempt, "state": "running"}
        told |= {"fencing_token": fencing_token(query), "log": [f"line {beats}"]}
        later = replace(fresh.env, clock=SimpleNamespace(now=lambda: now))
        heartbeat(later, "d1", {**told, "progress": {"rows_in": beats}})
        return analyze(*given, **more)

    fresh.env.analyzer.analyze = beating
    try:
        after = _ok(_put(pageviews, FIRST.replace("> 1", "> 2"), SECOND.replace("< 1", "< 2")))
    finally:
        fresh.env.analyzer.analyze = analyze
    assert [q["action"] for q in after["plan"]["queries"]] == ["change", "change"]
    with fresh.env.open_unit(write=False) as unit:
        status = unit.queries.find("one").status
    assert beats >= 2
    lines = tuple(f"line {i + 1}" for i in range(beats))
    assert (status.metrics, status.log_tail) == ({"rows_in": beats}, lines)
