"""Applications: made all or none, virtual relations written into their readers, ended together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.model.objects import QueryState

APP = """BEGIN APPLICATION shop
  USE STORE k;
  CREATE STREAM pv2 (viewtime BIGINT, userid VARCHAR) WITH ('topic'='pageviews', 'value.format'='json');
  CREATE VIRTUAL STREAM virtual.public.late AS SELECT viewtime, userid FROM pageviews WHERE viewtime > 5;
  CREATE VIRTUAL STREAM virtual.public.mine AS SELECT * FROM virtual.public.late WHERE userid = 'a';
  CREATE STREAM kept WITH ('topic'='kept') AS SELECT * FROM virtual.public.mine;
  INSERT INTO kept SELECT l.viewtime, l.userid FROM virtual.public.late l;
END APPLICATION"""
LATE = "SELECT viewtime, userid FROM pageviews WHERE viewtime > 5"


def _send(client: TestClient, sql: str, **more: Any) -> Any:
    return client.post("/v1/statements", json={"sql": sql, "database": "demo", **more})


def _validate(client: TestClient, sql: str) -> Any:
    answer = client.post("/v1/statements:validate", json={"sql": sql, "database": "demo"})
    return answer.json()["statements"]


def _names(client: TestClient, noun: str) -> list[str]:
    return [item.get("fqn") or item["name"] for item in client.get(f"/v1/{noun}").json()["items"]]


def _of(parts: str, select: str) -> str:
    return f"BEGIN APPLICATION a USE STORE k; {parts}; {select}; END APPLICATION"


def test_all_of_it_is_made(pageviews: TestClient) -> None:
    """A query per statement, each with the virtual relations written in; the dry run changes nothing."""
    assert [s["problems"] for s in _validate(pageviews, f"{APP}; DROP STREAM kept")][:1] == [[]]
    assert _names(pageviews, "applications") == []
    answer = _send(pageviews, APP)
    assert answer.status_code == 200, answer.text
    made = answer.json()["results"][0]
    assert (made["kind"], made["status"], made["object"]["name"]) == ("create_application", "running", "shop")
    assert made["rows"] == [["kept", "demo.public.kept"], ["shop_insert_into_kept", "demo.public.kept"]]
    shown = pageviews.get("/v1/applications/shop").json()
    assert (shown["queries"], shown["relations"]) == (["kept", "shop_insert_into_kept"], ["demo.public.pv2"])
    assert shown["virtual_relations"] == ["virtual.public.late", "virtual.public.mine"]
    sql = pageviews.get("/v1/queries/kept").json()["sql"]
    assert sql == (
        f"CREATE STREAM kept WITH ('topic'='kept') AS WITH \"virtual.public.mine\" AS (WITH "
        f'"virtual.public.late" AS ({LATE}) SELECT * FROM "virtual.public.late" AS "late" WHERE userid = \'a\')'
        ' SELECT * FROM "virtual.public.mine" AS "mine"'
    )
    assert pageviews.get("/v1/queries/kept").json()["sources"] == ["demo.public.pageviews"]
    rows = _send(pageviews, "DESCRIBE APPLICATION shop").json()["results"][0]["rows"]
    assert [row[0] for row in rows] == ["virtual relation"] * 2 + ["relation"] + ["query"] * 2
    assert _send(pageviews, "SHOW APPLICATIONS").json()["results"][0]["rows"][0][0] == "shop"


def test_virtual_changelogs_are_taken_up(pageviews: TestClient) -> None:
    """Filters, groups and joins of one become those of the statements that read it, several times too."""
    text = """BEGIN APPLICATION shop USE STORE k;
      CREATE CHANGELOG users (userid VARCHAR, region VARCHAR, PRIMARY KEY (userid))
        WITH ('topic'='pageviews', 'value.format'='json');
      CREATE VIRTUAL CHANGELOG virtual.public.known AS SELECT userid, region FROM users WHERE region <> 'x';
      CREATE VIRTUAL CHANGELOG virtual.public.sizes AS
        SELECT region, count(*) AS n FROM virtual.public.known GROUP BY region;
      CREATE CHANGELOG large WITH ('topic'='large') AS SELECT * FROM virtual.public.sizes WHERE n > 5;
      CREATE CHANGELOG small WITH ('topic'='small') AS SELECT s.region, s.n FROM virtual.public.sizes s WHERE s.n < 3;
      CREATE STREAM seen WITH ('topic'='seen') AS
        SELECT p.viewtime, k.region FROM pageviews p LEFT JOIN virtual.public.known k ON p.userid = k.userid;
      CREATE STREAM moves WITH ('topic'='moves') AS SELECT * FROM virtual.public.known;
      CREATE MATERIALIZED VIEW shown AS SELECT * FROM virtual.public.sizes WHERE n > 1;
      END APPLICATION"""
    answer = _send(pageviews, text)
    assert answer.status_code == 200, answer.text
    shown = pageviews.get("/v1/applications/shop").json()
    assert shown["virtual_relations"] == ["virtual.public.known", "virtual.public.sizes"]
    plans = {name: pageviews.get(f"/v1/queries/{name}").json()["plan"] for name in shown["queries"]}
    assert {name: [j["kind"] for j in plan["joins"]] for name, plan in plans.items()} == {
        "large": [],
        "small": [],
        "seen": ["temporal-join-stream-changelog"],
        "moves": [],
        "shown": [],
    }
    assert plans["shown"]["sink"]["primary_key"] == ["region"]
    assert pageviews.get("/v1/relations/demo.public.large").json()["primary_key"] == ["region"]
    assert plans["large"]["sources"][0]["fqn"] == "demo.public.users"
    assert plans["moves"]["sink"]["kind"] == "stream"
    again = pageviews.put("/v1/applications/shop", json={"sql": text, "database": "demo"})
    assert again.status_code == 200, again.text


def test_what_failed_is_started_again_alone(pageviews: TestClient, fresh: Any) -> None:
    assert _send(pageviews, APP).status_code == 200
    with fresh.env.open_unit() as unit:
        for name, state in (("kept", QueryState.FAILED), ("shop_insert_into_kept", QueryState.RUNNING)):
            query = unit.queries.find(name)
            error = {"code": "job-failed", "detail": "boom", "hint": "Correct it."}
            status = replace(query.status, state=state, message="boom", log_tail=("a line",), error=error)
            unit.queries.update(replace(query, status=status))
        unit.commit()
    told = pageviews.get("/v1/applications/shop").json()["status"]
    assert (told["state"], told["hint"], told["has_run"]) == ("failed", "kept: Correct it.", False)
    assert pageviews.get("/v1/applications/shop/logs").json()["lines"] == ["kept: a line"]
    answer = pageviews.post("/v1/applications/shop:restart?only_failed=true")
    assert answer.status_code == 202, answer.text
    states = {one["name"]: one for one in answer.json()["status"]["queries"]}
    assert states["kept"]["state"] == "pending"
    assert states["shop_insert_into_kept"]["message"] == "boom", "it is left alone"
    pageviews.post("/v1/applications/shop:restart")
    told = pageviews.get("/v1/queries/shop_insert_into_kept").json()["status"]
    assert told["message"] != "boom"
    assert pageviews.post("/v1/applications/nope:restart").status_code == 404
    with fresh.env.open_unit() as unit:
        query = unit.queries.find("kept")
        unit.queries.update(replace(query, status=replace(query.status, never_ran=False)))
        unit.commit()
    assert pageviews.get("/v1/applications/shop").json()["status"]["has_run"] is True


def test_it_stops_starts_and_goes_as_one(pageviews: TestClient) -> None:
    """Its queries cannot be dropped alone; others' queries hold it."""
    assert _send(pageviews, APP).status_code == 200
    alone = _send(pageviews, "DROP QUERY kept")
    assert (alone.status_code, alone.json()["code"]) == (409, "has-dependents")
    assert "application shop" in alone.json()["detail"]

    def wanted() -> set[str]:
        return {q["desired_state"] for q in pageviews.get("/v1/queries").json()["items"]}

    assert _send(pageviews, "TERMINATE APPLICATION shop").status_code == 200
    assert wanted() == {"stopped"}
    assert _send(pageviews, "RESTART APPLICATION shop").status_code == 200
    assert wanted() == {"running"}
    other = "CREATE STREAM o WITH ('store'='k', 'query.x'='y') AS SELECT * FROM kept"
    assert _send(pageviews, other.replace(", 'query.x'='y'", "")).status_code == 200
    held = _send(pageviews, "DROP APPLICATION shop")
    assert held.json()["code"] == "has-dependents"
    assert _names(pageviews, "applications") == ["shop"]
    assert not any(q["deleting"] for q in pageviews.get("/v1/queries").json()["items"] if "deleting" in q)
    assert _send(pageviews, "DROP QUERY o; DROP APPLICATION shop").status_code == 200
    assert _names(pageviews, "applications") == []
    assert "demo.public.pv2" not in _names(pageviews, "relations")


@pytest.mark.parametrize(
    ("text", "code", "at"),
    [
        (
            _of("CREATE STREAM one AS SELECT * FROM pageviews", "INSERT INTO one SELECT userid FROM nowhere"),
            "unknown-relation",
            "nowhere",
        ),
        (
            _of(
                "CREATE VIRTUAL STREAM virtual.public.v AS SELECT userid FROM pageviews",
                "CREATE STREAM one AS SELECT nothing FROM virtual.public.v",
            ),
            "unknown-column",
            "nothing",
        ),
        (
            _of(
                "CREATE VIRTUAL STREAM virtual.public.v AS SELECT wrong FROM pageviews",
                "CREATE STREAM one AS SELECT * FROM pageviews",
            ),
            "unknown-column",
            "wrong",
        ),
        (
            _of(
                "CREATE STREAM zero AS SELECT * FROM pageviews",
                "CREATE STREAM one AS SELECT * FROM virtual.a.b",
            ),
            "unknown-relation",
            "virtual.a.b",
        ),
        (
            _of(
                "CREATE VIRTUAL STREAM v AS SELECT userid FROM pageviews",
                "INSERT INTO pageviews SELECT 1, 'a' FROM x",
            ),
            "sql-syntax",
            "v",
        ),
        (
            _of(
                "CREATE VIRTUAL CHANGELOG virtual.public.v AS SELECT userid FROM pageviews",
                "CREATE CHANGELOG one AS SELECT * FROM virtual.public.v",
            ),
            "unsupported",
            "SELECT userid FROM pageviews",
        ),
        (
            _of(
                "CREATE VIRTUAL CHANGELOG virtual.public.v AS SELECT userid, count(*) AS n FROM pageviews GROUP BY"
                " userid",
                "CREATE STREAM one AS SELECT * FROM virtual.public.v",
            ),
            "unsupported",
            "CREATE STREAM one",
        ),
        (
            _of(
                "CREATE VIRTUAL CHANGELOG virtual.public.v AS SELECT userid, count(*) AS n FROM pageviews GROUP BY"
                " userid",
                "CREATE CHANGELOG one AS SELECT n, count(*) AS users FROM virtual.public.v GROUP BY n",
            ),
            "unsupported",
            "GROUP BY userid",
        ),
        (
            _of(
                "CREATE VIRTUAL CHANGELOG virtual.public.v AS SELECT userid, count(*) AS n FROM pageviews GROUP BY"
                " userid",
                "CREATE CHANGELOG one AS SELECT * FROM virtual.public.v;"
                " CREATE CHANGELOG two AS SELECT * FROM virtual.public.v",
            ),
            "unsupported",
            "CREATE CHANGELOG two",
        ),
        (
            _of(
                "CREATE CHANGELOG users (userid VARCHAR, n BIGINT, PRIMARY KEY (userid)) WITH"
                " ('topic'='pageviews', 'value.format'='json'); CREATE VIRTUAL STREAM virtual.public.v AS SELECT *"
                " FROM users",
                "CREATE CHANGELOG one AS SELECT userid, count(*) AS c FROM virtual.public.v GROUP BY userid",
            ),
            "unsupported",
            "CREATE VIRTUAL STREAM virtual.public.v",
        ),
        (
            _of(
                "CREATE VIRTUAL STREAM virtual.public.v AS SELECT uuid() AS u, userid FROM pageviews",
                "CREATE STREAM one AS SELECT * FROM virtual.public.v;"
                " CREATE STREAM two AS SELECT * FROM virtual.public.v",
            ),
            "unsupported",
            "CREATE STREAM two AS SELECT * FROM virtual.public.v",
        ),
        (
            _of(
                "CREATE VIRTUAL STREAM virtual.public.v AS SELECT l.userid FROM pageviews l JOIN pageviews r"
                " WITHIN 1 MINUTE ON l.userid = r.userid",
                "CREATE STREAM one AS SELECT a.userid FROM virtual.public.v a JOIN virtual.public.v b"
                " WITHIN 1 MINUTE ON a.userid = b.userid",
            ),
            "unsupported",
            "CREATE STREAM one",
        ),
        (
            _of(
                "CREATE VIRTUAL STREAM virtual.public.v AS SELECT userid FROM pageviews; USE DATABASE demo",
                "CREATE STREAM one AS SELECT * FROM virtual.public.v",
            ),
            "unsupported",
            "USE DATABASE demo",
        ),
        (
            _of(
                "CREATE STREAM fresh (a BIGINT) WITH ('topic'='fresh', 'value.format'='json',"
                " 'topic.partitions'=1, 'topic.replicas'=1)",
                "CREATE STREAM one AS SELECT * FROM pageviews",
            ),
            "unsupported",
            "CREATE STREAM fresh",
        ),
    ],
)
def test_none_of_it_is_made(pageviews: TestClient, fresh: Any, text: str, code: str, at: str) -> None:
    """The fault has its place in the text as it was written; the dry run says the same."""
    topics = dict(fresh.cluster.entities)
    answer = _send(pageviews, f"LIST STORES;\n{text}")
    problem = answer.json()
    assert problem["code"] == code, answer.text
    place = problem["errors"][0]["position"]
    assert f"LIST STORES;\n{text}"[place["offset"] :].startswith(at)
    assert place["line"] == 2
    [dry] = _validate(pageviews, text)
    assert dry["problems"][0]["code"] == code
    assert text[dry["problems"][0]["position"]["offset"] :].startswith(at)
    assert (_names(pageviews, "applications"), _names(pageviews, "queries")) == ([], [])
    assert _names(pageviews, "relations") == ["demo.public.pageviews"]
    assert fresh.cluster.entities == topics


def test_inside_an_atomic_text(pageviews: TestClient) -> None:
    """An application is one statement of it."""
    assert _send(pageviews, f"CREATE DATABASE d; {APP}; DROP STREAM x", atomic=True).status_code == 404
    assert _names(pageviews, "databases") == ["demo"]
    assert _names(pageviews, "queries") == []
    assert _send(pageviews, f"CREATE DATABASE d; {APP}", atomic=True).status_code == 200
    assert _send(pageviews, APP).json()["code"] == "already-exists"


def test_places_in_a_text_of_several_statements(pageviews: TestClient) -> None:
    """A query's fault stands where it is in the whole text, not in its own statement's."""
    text = "LIST STORES;\n  CREATE STREAM o WITH ('store'='k') AS SELECT a FROM nowhere"
    place = _send(pageviews, text).json()["errors"][0]["position"]
    assert (place["line"], place["offset"]) == (2, text.index("nowhere"))
