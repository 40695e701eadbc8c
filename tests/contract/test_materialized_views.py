"""Materialized views as objects of the catalog: made by queries, indexed, listed, dropped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.errors import StoreError
from leatstream.model.objects import QueryState

CREATE = "CREATE MATERIALIZED VIEW v COMMENT 'all' WITH ('retention' = '7 days') AS SELECT * FROM pageviews;"
CONTEXT = {"database": "demo", "schema": "public", "store": "k"}


def sql(client: TestClient, text: str, status: int = 200) -> dict[str, Any]:
    answer = client.post("/v1/statements", json={"sql": text, **CONTEXT})
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.fixture
def view(pageviews: TestClient) -> TestClient:
    made = sql(pageviews, CREATE)["results"][0]
    assert (made["kind"], made["query"]) == ("create_materialized_view_as", "v")
    return pageviews


def test_it_is_a_relation_of_its_own_kind(view: TestClient) -> None:
    found = view.get("/v1/relations/demo.public.v").json()
    assert found["kind"] == "materialized_view"
    assert (found["store"], found["topic"], found["comment"]) == ("", None, "all")
    assert [c["name"] for c in found["columns"]] == ["viewtime", "userid"]
    assert {k: v["value"] for k, v in found["effective"].items()} == {
        "view.mode": "append",
        "retention": "7 days",
    }
    listed = sql(
        view, "LIST MATERIALIZED VIEWS; LIST STREAMS; SHOW MATERIALIZED VIEWS IN SCHEMA demo.public;"
    )
    names = [[row[0] for row in result["rows"]] for result in listed["results"]]
    assert names == [["demo.public.v"], ["demo.public.pageviews"], ["demo.public.v"]]


def test_the_job_is_told_where_to_write(view: TestClient, fresh: Any) -> None:
    from leatstream.services.driver_calls import build_spec

    sql(view, "CREATE INDEX by_user ON v (userid)")
    with fresh.units(write=False) as unit:
        query = unit.queries.find("v")
        spec = build_spec(fresh.env, unit, query)
    assert spec.delivery == "exactly_once"
    assert spec.sink.view is not None
    assert spec.sink.view.model_dump() == {
        "table": query.meta.id,
        "generation": 1,
        "database": {"kind": "sqlite", "location": fresh.env.views.database.location, "secret": None},
        "retention_ms": 7 * 86_400_000,
        "indexes": {"by_user": ["userid"]},
    }


def test_the_plan_names_view_key_and_mode(pageviews: TestClient) -> None:
    text = "CREATE MATERIALIZED VIEW v AS SELECT userid, viewtime FROM pageviews GROUP BY userid, viewtime"
    answer = pageviews.post("/v1/statements:validate", json={"sql": text, **CONTEXT}).json()
    assert answer["valid"], answer
    plan = answer["statements"][0]["plan"]
    assert (plan["sink"]["kind"], plan["sink"]["store_kind"]) == ("materialized_view", "view")
    assert plan["sink"]["primary_key"] == ["userid", "viewtime"]
    assert (plan["mode"], plan["delivery"], plan["output_mode"]) == ("micro_batch", "exactly_once", "update")


@pytest.mark.parametrize(
    ("properties", "code", "said"),
    [
        ("'topic' = 't'", "invalid-property", "'topic' is not a materialized view property."),
        ("'retention' = '7 parsecs'", "invalid-property", "a number and a unit"),
        ("'retention' = '0 days'", "invalid-property", "longer than nothing"),
        ("'retention' = '999999999 weeks'", "invalid-property", "at most 100 years"),
    ],
)
def test_properties_are_checked(pageviews: TestClient, properties: str, code: str, said: str) -> None:
    text = f"CREATE MATERIALIZED VIEW v WITH ({properties}) AS SELECT * FROM pageviews"
    problem = sql(pageviews, text, 422)
    assert problem["code"] == code
    assert said in problem["detail"]
    assert problem["errors"][0]["position"]["line"] == 1


def test_indexes(view: TestClient) -> None:
    sql(view, "CREATE INDEX i ON v (userid, viewtime); CREATE INDEX IF NOT EXISTS i ON v (viewtime)")
    assert view.get("/v1/relations/demo.public.v").json()["indexes"] == [
        {"name": "i", "columns": ["userid", "viewtime"]}
    ]
    assert sql(view, "DESCRIBE MATERIALIZED VIEW v")["results"][0]["object"]["indexes"] == {
        "i": ["userid", "viewtime"]
    }
    assert sql(view, "CREATE INDEX i ON v (userid)", 409)["code"] == "already-exists"
    problem = sql(view, "CREATE INDEX j ON v (usrid, viewtime, viewtime)", 422)
    assert [e["position"]["column"] for e in problem["errors"]] == [22, 29, 39]
    assert problem["errors"][0]["hint"] == "Did you mean userid?"
    assert sql(view, "CREATE INDEX j ON pageviews (userid)", 422)["code"] == "unsupported"
    sql(view, "DROP INDEX i; DROP INDEX IF EXISTS i")
    assert sql(view, "DROP INDEX i", 404)["code"] == "not-found"
    assert view.get("/v1/relations/demo.public.v").json()["indexes"] == []


def test_an_index_stays_as_it_was_where_the_views_database_does_not_follow(
    view: TestClient, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it could neither be made nor dropped again."""

    def locked(*_: Any) -> None:
        raise StoreError("store-unreachable", "another session has locked the view's table")

    def indexes() -> list[str]:
        return [i["name"] for i in view.get("/v1/relations/demo.public.v").json()["indexes"]]

    sql(view, "CREATE INDEX kept ON v (userid)")
    for change in ("add_index", "drop_index"):
        monkeypatch.setattr(fresh.env.views, change, locked)
    assert sql(view, "CREATE INDEX other ON v (viewtime)", 503)["code"] == "store-unreachable"
    assert sql(view, "DROP INDEX kept", 503)["code"] == "store-unreachable"
    assert indexes() == ["kept"]
    monkeypatch.undo()
    sql(view, "CREATE INDEX other ON v (viewtime); DROP INDEX kept")
    assert indexes() == ["other"]


def test_a_change_tells_what_becomes_of_the_rows(view: TestClient) -> None:
    same = sql(view, CREATE.replace("CREATE", "CREATE OR REPLACE"))["results"][0]
    assert same["rows"] == [["v", "hot", "the job stays the same: it is not restarted"]]
    other = CREATE.replace("CREATE", "CREATE OR REPLACE").replace("7 days", "8 days")
    changed = sql(view, other)["results"][0]
    assert (changed["kind"], changed["rows"][0][1]) == ("create_materialized_view_as", "new-state")
    assert "filled again" in changed["rows"][0][2]


def test_dropping_it_ends_the_query(view: TestClient) -> None:
    assert sql(view, "DROP STREAM v", 422)["errors"][0]["hint"] == "DROP MATERIALIZED VIEW demo.public.v"
    assert sql(view, "DROP MATERIALIZED VIEW pageviews", 422)["code"] == "validation"
    dropped = sql(view, "DROP MATERIALIZED VIEW v")["results"][0]
    assert (dropped["kind"], dropped["status"]) == ("drop_materialized_view", "succeeded")
    assert view.get("/v1/relations/demo.public.v").status_code == 404
    assert view.get("/v1/queries/v").status_code == 404
    sql(view, "DROP MATERIALIZED VIEW IF EXISTS v")
    sql(view, CREATE)
    sql(view, "DROP RELATION v")


def test_a_query_reads_streams_not_views(view: TestClient) -> None:
    problem = sql(view, "CREATE STREAM s AS SELECT * FROM v", 422)
    assert problem["code"] == "unsupported"
    assert "materialized view" in problem["detail"]


def fill(client: TestClient, world: Any, *rows: tuple[Any, ...]) -> None:
    """What the job would do: claim the view, and apply one batch."""
    from leatstream.services.driver_calls import build_spec
    from leatstream.views.base import Batch
    from leatstream.views.opening import view_writer

    with world.units(write=False) as unit:
        spec = build_spec(world.env, unit, unit.queries.find("v"))
    writer = view_writer(spec)
    writer.open()
    now = int(world.env.clock.now().timestamp() * 1_000_000)
    assert writer.apply(Batch(3, [(*row, None) for row in rows], [], now))
    writer.close()


def test_select_answers_with_its_freshness(view: TestClient, fresh: Any) -> None:
    assert sql(view, "SELECT * FROM v", 503)["code"] == "view-not-ready"
    fill(view, fresh, (1, "a"), (2, "b"), (2**60, None))
    found = sql(view, "SELECT userid, viewtime FROM v ORDER BY viewtime DESC LIMIT 2")["results"][0]
    assert (found["kind"], found["status"], found["truncated"]) == ("select", "succeeded", False)
    assert found["columns"] == [{"name": "userid", "type": "VARCHAR"}, {"name": "viewtime", "type": "BIGINT"}]
    assert found["rows"] == [[None, 2**60], ["b", 2]]
    (told,) = found["freshness"]
    assert (told["view"], told["batch_id"], told["watermark"]) == ("demo.public.v", 3, None)
    assert told["batch_time"].startswith("20")


def test_select_is_checked_before_it_runs(view: TestClient) -> None:
    def problems(text: str) -> list[str]:
        answer = view.post("/v1/statements:validate", json={"sql": text, **CONTEXT}).json()
        return [p["code"] for s in answer["statements"] for p in s["problems"]]

    assert problems("SELECT count(*) AS c FROM v") == []
    assert problems("SELECT usrid, vewtime FROM v") == ["unknown-column", "unknown-column"]


def test_a_view_and_a_stream_do_not_mix(view: TestClient) -> None:
    problem = sql(view, "SELECT v.userid FROM v JOIN pageviews p ON p.userid = v.userid", 422)
    assert problem["code"] == "unsupported"
    assert problem["errors"][0]["position"]["column"] == 29
    assert "no end" in problem["detail"]


def test_too_many_rows_are_cut_and_said(
    view: TestClient, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leatstream.services.selects.snapshots.MOST_ROWS", 2)
    fill(view, fresh, (1, "a"), (2, "b"), (3, "c"))
    found = sql(view, "SELECT viewtime FROM v ORDER BY 1")["results"][0]
    assert (found["rows"], found["truncated"]) == ([[1], [2]], True)


def test_a_reader_may_select_and_not_index(view: TestClient, fresh: Any) -> None:
    fill(view, fresh, (1, "a"))
    bob = {"Authorization": f"Bearer {fresh.reader_token}"}
    for text, status in (("SELECT * FROM v", 200), ("CREATE INDEX i ON v (userid)", 403)):
        answer = view.post("/v1/statements", json={"sql": text, **CONTEXT}, headers=bob)
        assert answer.status_code == status, answer.text


USERS = (
    "CREATE CHANGELOG users (viewtime BIGINT, userid VARCHAR, PRIMARY KEY (userid))"
    " WITH ('topic'='pageviews','value.format'='json');"
    "CREATE CHANGELOG others (viewtime BIGINT, userid VARCHAR, PRIMARY KEY (userid))"
    " WITH ('topic'='pageviews','value.format'='json')"
)


@pytest.mark.parametrize(
    ("select", "kind", "key"),
    [
        (
            "SELECT viewtime, max(userid) AS userid FROM users GROUP BY viewtime",
            "changelog-aggregate",
            ["viewtime"],
        ),
        (
            "WITH n AS (SELECT viewtime, max(userid) AS userid FROM users GROUP BY viewtime)"
            " SELECT * FROM n WHERE userid > 'a'",
            "changelog-aggregate",
            ["viewtime"],
        ),
        (
            "SELECT u.viewtime, u.userid FROM users u LEFT JOIN others o ON u.userid = o.userid",
            "changelog-join",
            ["userid"],
        ),
        (
            "SELECT p.viewtime, p.userid FROM pageviews p JOIN users u ON p.userid = u.userid",
            "temporal-join",
            [],
        ),
        (
            "SELECT * FROM pageviews MATCH_RECOGNIZE (ORDER BY rowtime MEASURES a.viewtime AS viewtime, LAST(b.userid) AS userid"
            " PATTERN (a b) WITHIN 5 MINUTES DEFINE b AS viewtime > 1)",
            "match-recognize",
            [],
        ),
    ],
)
def test_what_is_worked_off_batch_by_batch_is_kept_too(
    pageviews: TestClient, fresh: Any, select: str, kind: str, key: list[str]
) -> None:
    sql(pageviews, USERS)
    text = f"CREATE MATERIALIZED VIEW v AS {select}"
    answer = pageviews.post("/v1/statements:validate", json={"sql": text, **CONTEXT}).json()
    assert answer["valid"], answer
    plan = answer["statements"][0]["plan"]
    assert (plan["sink"]["primary_key"], plan["delivery"], plan["output_mode"]) == (
        key,
        "exactly_once",
        "append",
    )
    sql(pageviews, text)
    mode = pageviews.get("/v1/relations/demo.public.v").json()["effective"]["view.mode"]["value"]
    assert mode == ("upsert" if key else "append")
    with fresh.units(write=False) as unit:
        job = unit.queries.find("v").job
    assert job["operator"]["kind"] == kind


def test_filtered_groups_of_a_stream_are_kept_by_their_key(pageviews: TestClient) -> None:
    """Also where the SELECT around the groups has no GROUP BY of its own."""
    inner = "SELECT viewtime, max(userid) AS userid FROM pageviews GROUP BY viewtime"
    text = f"CREATE MATERIALIZED VIEW v AS SELECT * FROM ({inner}) g WHERE userid > 'a'"
    answer = pageviews.post("/v1/statements:validate", json={"sql": text, **CONTEXT}).json()
    assert answer["valid"], answer
    assert answer["statements"][0]["plan"]["sink"]["primary_key"] == ["viewtime"]


def test_views_that_cannot_be_kept_are_refused_and_no_password_is_given(view: TestClient, fresh: Any) -> None:
    """As where the catalog's role may make no role for them: the catalog's own password stays with the server."""
    from leatstream.views.postgresql_store import PASSWORD, UnusableViews

    fresh.env.views = UnusableViews("the catalog's role may not make one")
    again = view.post("/v1/statements:validate", json={"sql": CREATE.replace(" v ", " w "), **CONTEXT}).json()
    (problem,) = again["statements"][0]["problems"]
    assert (problem["code"], problem["position"]["column"]) == ("unsupported", 26)
    assert "Materialized views cannot be kept" in problem["detail"]
    fresh.drivers.tokens["d"] = "t"
    with fresh.units() as unit:
        query = unit.queries.find("v")
        status = replace(query.status, state=QueryState.STARTING, driver_id="d", attempt=1)
        unit.queries.update(replace(query, status=status))
        unit.commit()
    fresh.drivers.queries["d"] = query.meta.id
    asked = {"references": [PASSWORD], "query_id": query.meta.id}
    headers = {"Authorization": "Bearer t"}
    answer = view.post("/v1/drivers/d/secrets", json=asked, headers=headers)
    # With this code the job fails for good, and its error tells the same.
    assert (answer.status_code, answer.json()["code"]) == (500, "secret-unreadable")
    assert "LEATSTREAM_VIEWS_URL" in answer.json()["errors"][0]["hint"]
    selected = view.post("/v1/statements", json={"sql": "SELECT * FROM v", **CONTEXT})
    assert (selected.status_code, selected.json()["code"]) == (502, "store-auth-failed")
