"""Properties of a query's body count as those that its statement writes in QUERY WITH."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

SQL = "CREATE STREAM views AS SELECT * FROM pageviews"
QUERY = {"sql": SQL, "database": "demo", "schema": "public", "store": "k"}
PATH = "/v1/queries/views"
BATCH = {"mode": "micro_batch"}
WITH_BATCH = f"{SQL} QUERY WITH ('mode' = 'micro_batch')"


def _put(client: TestClient, **body: Any) -> Any:
    answer = client.put(PATH, json={**QUERY, **body})
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def _fault(answer: Any) -> tuple[str, str | None]:
    assert answer.status_code == 422, answer.text
    [fault] = answer.json()["errors"]
    return answer.json()["code"], fault["pointer"]


def _validated(client: TestClient, **body: Any) -> Any:
    answer = client.post("/v1/statements:validate", json={**QUERY, "name": "views", **body})
    assert answer.status_code == 200, answer.text
    [found] = answer.json()["statements"]
    return found


def test_they_are_planned_with(pageviews: TestClient, fresh: Any) -> None:
    made = _put(pageviews, properties={"Mode": "micro_batch", "query.driver": "shared"})
    assert made["plan"]["mode"] == "micro_batch"
    assert made["properties"] == {"Mode": "micro_batch", "query.driver": "shared"}
    with fresh.env.open_unit(write=False) as unit:
        assert unit.queries.find("views").job["driver"] == "shared"


def test_they_change_the_job(pageviews: TestClient) -> None:
    """With the class that the same words in the statement have; validate tells it, PUT and PATCH do it."""
    _put(pageviews, properties=BATCH)
    assert _validated(pageviews, properties=BATCH)["plan"]["change"]["class"] == "none"
    written = _validated(pageviews, sql=WITH_BATCH)["plan"]
    assert (written["mode"], written["change"]["class"]) == ("micro_batch", "hot")
    left_out = _validated(pageviews)["plan"]
    assert left_out["mode"] == "realtime"
    assert left_out["change"]["class"] != "none"
    shared = {**BATCH, "query.driver": "shared"}
    told = _validated(pageviews, properties=shared)["plan"]
    patched = pageviews.patch(PATH, json={"properties": {"query.driver": "shared"}}).json()
    assert patched["plan"] == told
    assert patched["properties"] == shared
    assert _put(pageviews, properties=None)["plan"]["mode"] == "realtime"


def test_a_statement_in_their_stead_changes_nothing(pageviews: TestClient) -> None:
    _put(pageviews, properties=BATCH)
    assert _put(pageviews, sql=WITH_BATCH)["plan"]["change"]["class"] == "hot"
    assert _put(pageviews, sql=WITH_BATCH, properties=BATCH)["plan"]["mode"] == "micro_batch"


@pytest.mark.parametrize(
    ("properties", "code", "pointer"),
    [
        ({"colour": "blue"}, "invalid-property", "#/properties/colour"),
        ({"a/b": "x"}, "invalid-property", "#/properties/a~1b"),
        ({"state.ttl.millis": "1"}, "unsupported", "#/properties/state.ttl.millis"),
        ({"mode": "fast"}, "invalid-property", "#/properties/mode"),
        ({"query.trigger": "available_now", "mode": "realtime"}, "unsupported", "#/properties/mode"),
        ({"query.driver": "shared", "mode": "realtime"}, "unsupported", "#/properties/query.driver"),
        ({"query.target.batch.seconds": "0"}, "invalid-property", "#/properties/query.target.batch.seconds"),
        ({"query.target.batch.seconds": "2"}, "unsupported", "#/properties/query.target.batch.seconds"),
        (
            {"query.batch.interval.seconds": "x"},
            "invalid-property",
            "#/properties/query.batch.interval.seconds",
        ),
        (
            {"query.trigger": "available_now", "query.batch.interval.seconds": "2"},
            "unsupported",
            "#/properties/query.batch.interval.seconds",
        ),
        ({"query.json.reader": "fast"}, "invalid-property", "#/properties/query.json.reader"),
        ({"query.json.reader": "workers"}, "unsupported", "#/properties/query.json.reader"),
        ({"from.savepoint": "s", "from.query": "q"}, "invalid-property", "#/properties/from.query"),
        ({"query.name": "others"}, "invalid-property", "#/properties/query.name"),
        ({"mode": "auto", "MODE": "realtime"}, "invalid-property", "#/properties/MODE"),
    ],
)
def test_what_is_wrong_with_them_points_at_them(
    pageviews: TestClient, properties: Any, code: str, pointer: str
) -> None:
    assert _fault(pageviews.put(PATH, json={**QUERY, "properties": properties})) == (code, pointer)
    assert pageviews.get(PATH).status_code == 404
    if "from.savepoint" not in properties:
        [problem] = _validated(pageviews, properties=properties)["problems"]
        assert (problem["code"], problem["pointer"]) == (code, pointer)


def test_one_property_has_one_value(pageviews: TestClient) -> None:
    """The statement and the body may say the same, and nothing else."""
    body = {**QUERY, "sql": WITH_BATCH, "properties": {"mode": "realtime"}}
    answer = pageviews.put(PATH, json=body)
    assert _fault(answer) == ("invalid-property", "#/properties/mode")
    assert "line 1" in answer.json()["detail"]
    [problem] = _validated(pageviews, sql=WITH_BATCH, properties={"mode": "realtime"})["problems"]
    assert (problem["code"], problem["pointer"]) == ("invalid-property", "#/properties/mode")


def test_what_replaces_a_query_is_planned_with_its_properties(pageviews: TestClient) -> None:
    """CREATE OR REPLACE changes the statement; what was said of the query elsewhere stays."""
    _put(pageviews, properties=BATCH)
    names = {name: QUERY[name] for name in ("database", "schema", "store")}
    text = SQL.replace("CREATE", "CREATE OR REPLACE") + " WHERE viewtime > 1"
    told = pageviews.post("/v1/statements:validate", json={"sql": text, **names}).json()["statements"][0]
    assert told["plan"]["mode"] == "micro_batch"
    assert pageviews.post("/v1/statements", json={"sql": text, **names}).status_code == 200
    now = pageviews.get(PATH).json()
    assert (now["plan"]["mode"], now["properties"]) == ("micro_batch", BATCH)


def test_a_replacement_beside_may_be_asked_for(pageviews: TestClient) -> None:
    properties = {**BATCH, "replace.mode": "blue_green"}
    sql = "CREATE MATERIALIZED VIEW views AS SELECT * FROM pageviews"
    _put(pageviews, sql=sql, properties=properties)
    changed = {**QUERY, "sql": f"{sql} WHERE viewtime > 1", "properties": properties}
    assert _fault(pageviews.put(PATH, json=changed)) == ("unsupported", "#/properties/replace.mode")
    text = f"{sql} WHERE viewtime > 1".replace("CREATE", "CREATE OR REPLACE")
    names = {name: QUERY[name] for name in ("database", "schema", "store")}
    answer = pageviews.post("/v1/statements", json={"sql": text, **names})
    assert answer.json()["results"][0]["query"] == "views__green", answer.text


def test_a_query_begins_with_what_they_name(pageviews: TestClient) -> None:
    answer = pageviews.put(PATH, json={**QUERY, "properties": {"from.savepoint": "nobody"}})
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


def test_a_dry_run_takes_them_for_one_query(pageviews: TestClient) -> None:
    for sql in ("LIST STREAMS", f"{SQL}; LIST STREAMS"):
        body = {**QUERY, "sql": sql, "properties": BATCH}
        answer = pageviews.post("/v1/statements:validate", json=body)
        assert _fault(answer) == ("validation", "#/properties")


@pytest.mark.parametrize("name", ["", "a\tb", "x" * 256, "${x}", "\x7f"])
def test_a_querys_name_is_a_name(pageviews: TestClient, name: str) -> None:
    """Nobody could say, in a path or in SQL, which query one without such a name is."""
    text = f"{SQL} QUERY WITH ('query.name' = '{name}')"
    body = {key: value for key, value in QUERY.items() if key != "sql"}
    for answer in (
        pageviews.post("/v1/statements", json={**body, "sql": text}),
        pageviews.put(PATH, json={**QUERY, "sql": text}),
    ):
        assert _fault(answer)[0] == "invalid-property"
        assert answer.json()["errors"][0]["position"]["line"] == 1
    assert pageviews.get("/v1/queries").json()["items"] == []


def test_a_querys_name_is_that_of_its_address(pageviews: TestClient) -> None:
    text = f"{SQL} QUERY WITH ('query.name' = 'other')"
    assert _fault(pageviews.put(PATH, json={**QUERY, "sql": text})) == ("invalid-property", "#/sql")
    [problem] = _validated(pageviews, sql=text)["problems"]
    assert problem["code"] == "invalid-property"
    own = text.replace("other", "views")
    assert _put(pageviews, sql=own)["name"] == "views"
    body = {"sql": text.replace("* FROM", "userid FROM")}
    assert _fault(pageviews.post(f"{PATH}:replace", json=body)) == ("invalid-property", "#/sql")


COUNTED = (
    "CREATE STREAM views AS SELECT userid, count(*) AS n, window_start FROM TUMBLE(pageviews, SIZE 5 SECONDS)"
)


def test_a_change_of_the_interval_between_batches_keeps_state(pageviews: TestClient, fresh: Any) -> None:
    counted = f"{COUNTED} GROUP BY userid, window_start, window_end"
    _put(pageviews, sql=counted)
    assert _interval(fresh) == 500
    for given, millis in (("2.5", 2500), ("0", 0)):
        made = _put(pageviews, sql=counted, properties={"query.batch.interval.seconds": given})
        assert made["plan"]["change"]["class"] == "restart-keep-state"
        assert _interval(fresh) == millis


def _interval(world: Any) -> int:
    with world.env.open_unit(write=False) as unit:
        return int(unit.queries.find("views").job["trigger_interval_ms"])
