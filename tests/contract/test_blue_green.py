"""Blue-green replacement on the real services: who shows which rows, and what becomes of the others."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes import NamedColumns
from starlette.testclient import TestClient

from leatstream.connectors.entities import Entity
from leatstream.services import driver_calls as drivers
from leatstream.services.driver_calls import build_spec
from leatstream.services.environment import Principal, view_table
from leatstream.services.queries import catalog as queries
from leatstream.services.queries.reconcile.reconciler import reconcile_all
from leatstream.services.queries.replace.swap import caught_up
from leatstream.services.queries.views import keeper

ANN = Principal("ann", "sysadmin")
SET_UP = """CREATE STORE k WITH ('type'=KAFKA, 'uris'='b:1', 'tls.disabled'=TRUE); CREATE DATABASE d; USE DATABASE d;
CREATE STREAM a (n BIGINT, m BIGINT) WITH ('topic'='a', 'store'='k', 'value.format'='json');
CREATE MATERIALIZED VIEW v AS SELECT n FROM a; CREATE INDEX by_n ON v (n)"""
GREEN = "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT n, m FROM a QUERY WITH ('replace.mode'='blue_green')"


@pytest.fixture
def world(fresh: Any, client: TestClient) -> Any:
    """A materialized view whose query runs on the first of five drivers."""
    fresh.cluster.entities["a"] = Entity("a", {"topic.partitions": 1, "topic.replicas": 1})
    fresh.drivers.tokens.update({f"d{n}": "t" for n in range(1, 6)})
    fresh.env.analyzer = NamedColumns(fresh.env.analyzer)
    made = client.post("/v1/statements", json={"sql": SET_UP, "store": "k"})
    assert made.status_code == 200, made.text
    reconcile_all(fresh.env)
    beat(fresh, "v", 7)
    return fresh


def sql(client: TestClient, text: str) -> Any:
    return client.post("/v1/statements", json={"sql": text, "database": "d", "store": "k"})


def query(world: Any, name: str) -> Any:
    return queries.get_query(world.env, ANN, name)


def beat(world: Any, name: str, read: int | None = None, state: str = "running") -> dict[str, Any]:
    found = query(world, name)
    report: dict[str, Any] = {"query_id": found.meta.id, "attempt": found.status.attempt, "state": state}
    report["fencing_token"] = drivers.fencing_token(found)
    if read is not None:
        row = {"relation": "d.public.a", "entity": "a", "end_offsets": {"0": read}, "lag": 0}
        report["progress"] = {"sources": [row]}
    return drivers.heartbeat(world.env, found.status.driver_id, report)


def shown(world: Any) -> str:
    """Id of the query whose rows the view shows."""
    with world.env.open_unit(write=False) as unit:
        return view_table(keeper(unit, unit.relations.find("d.public.v")))


def names(client: TestClient) -> list[str]:
    return [q["name"] for q in client.get("/v1/queries").json()["items"]]


def replaced(world: Any, client: TestClient) -> None:
    """The changed query has taken over."""
    assert sql(client, GREEN).status_code == 200
    reconcile_all(world.env)
    beat(world, "v__green", 9)
    reconcile_all(world.env)
    assert "v__green" not in names(client)


def end(world: Any, name: str) -> None:
    """Its job obeys and ends."""
    reconcile_all(world.env)
    driver = query(world, name).status.driver_id
    beat(world, name, state="stopped")
    world.drivers.tokens.pop(driver)
    reconcile_all(world.env)


def test_it_takes_over_when_it_has_read_all_that_the_old_one_has(world: Any, client: TestClient) -> None:
    first = query(world, "v")
    told = sql(client, GREEN).json()["results"][0]
    assert told["rows"][0][:2] == ["v__green", "blue-green"]
    reconcile_all(world.env)
    beat(world, "v__green", 6)
    reconcile_all(world.env)
    green = query(world, "v__green")
    assert (shown(world), first.meta.id) == (first.meta.id, green.beside)
    conditions = {c["type"] for c in client.get("/v1/queries/v__green").json()["status"]["conditions"]}
    assert "TakingOver" in conditions
    # What it makes is not shown yet, and nobody else's business.
    assert [c["name"] for c in client.get("/v1/relations/d.public.v").json()["columns"]] == ["n"]
    beat(world, "v__green", 7)
    reconcile_all(world.env)
    assert names(client) == ["v", "v__blue"]
    lead, kept = query(world, "v"), query(world, "v__blue")
    assert (lead.meta.id, kept.meta.id, shown(world)) == (green.meta.id, first.meta.id, green.meta.id)
    assert lead.meta.generation == first.meta.generation + 1
    assert (lead.status.state, lead.status.driver_id) == ("running", green.status.driver_id)
    found = client.get("/v1/relations/d.public.v").json()
    assert ([c["name"] for c in found["columns"]], found["created_by_query"]) == (["n", "m"], lead.meta.id)
    # Its job is not touched, and the old one's is told to stop.
    assert beat(world, "v", 8).items() >= {"directive": "continue", "query_name": "v"}.items()
    assert query(world, "v").status.state == "running"
    assert beat(world, "v__blue", 8).items() >= {"directive": "stop", "query_name": "v__blue"}.items()
    end(world, "v__blue")
    kept = query(world, "v__blue")
    assert (kept.status.state, kept.desired_state) == ("stopped", "stopped")
    assert client.get("/v1/queries/v/history").json()["items"][-1]["change"] == "blue-green"
    assert [v["generation"] for v in client.get("/v1/queries/v/history").json()["items"]] == [1, 2]
    reasons = [e["reason"] for e in client.get("/v1/queries/v/events").json()["items"]]
    assert reasons[-1] == "it has taken over"


def test_the_version_before_takes_over_again(world: Any, client: TestClient) -> None:
    assert client.post("/v1/queries/v:rollback").status_code == 409
    first = query(world, "v").meta.id
    replaced(world, client)
    end(world, "v__blue")
    assert sql(client, "ROLLBACK QUERY v").status_code == 200
    refused = sql(client, GREEN.replace("n, m", "m"))
    assert "is being replaced by v__green" in refused.json()["detail"], refused.text
    reconcile_all(world.env)
    reconcile_all(world.env)
    assert (query(world, "v__green").status.state, query(world, "v__green").status.attempt) == ("starting", 2)
    beat(world, "v__green", 8)
    reconcile_all(world.env)
    assert shown(world) != first, "it has not read yet what the present one has"
    beat(world, "v__green", 9)
    reconcile_all(world.env)
    assert (shown(world), query(world, "v").meta.id) == (first, first)
    assert [c["name"] for c in client.get("/v1/relations/d.public.v").json()["columns"]] == ["n"]
    assert query(world, "v").meta.generation == 3


def test_what_is_kept_goes_after_its_time_or_with_the_query(world: Any, client: TestClient) -> None:
    replaced(world, client)
    end(world, "v__blue")
    lead = query(world, "v").meta.id
    with world.env.open_unit() as unit:
        kept = unit.queries.find("v__blue")
        unit.queries.update(replace(kept, kept_until=kept.kept_until - timedelta(days=2)))
        unit.commit()
    for _ in range(2):
        reconcile_all(world.env)
    assert (names(client), shown(world)) == (["v"], lead)
    assert client.post("/v1/queries/v:rollback").status_code == 409
    assert sql(client, GREEN.replace("n, m", "m, n")).status_code == 200
    assert names(client) == ["v", "v__green"]
    assert client.delete("/v1/queries/v").status_code == 202
    world.drivers.tokens.clear()
    for _ in range(3):
        reconcile_all(world.env)
    assert names(client) == []
    assert client.get("/v1/relations/d.public.v").status_code == 404


def test_it_can_be_called_off(world: Any, client: TestClient) -> None:
    first = query(world, "v").meta.id
    assert sql(client, GREEN).status_code == 200
    assert client.delete("/v1/queries/v__green").status_code in (202, 204)
    reconcile_all(world.env)
    assert (names(client), shown(world)) == (["v"], first)
    assert query(world, "v").status.state == "running"


def test_another_replacement_lets_go_of_what_was_kept(world: Any, client: TestClient) -> None:
    replaced(world, client)
    end(world, "v__blue")
    oldest = query(world, "v__blue").meta.id
    sent = client.post("/v1/queries/v:replace", json={"sql": GREEN.replace("n, m", "m, n")})
    assert (sent.status_code, sent.json()["name"]) == (202, "v__green")
    for _ in range(2):
        reconcile_all(world.env)
    beat(world, "v__green", 9)
    reconcile_all(world.env)
    assert query(world, "v__blue").meta.id != oldest
    assert [c["name"] for c in client.get("/v1/relations/d.public.v").json()["columns"]] == ["m", "n"]


def test_what_reads_from_now_on_begins_where_the_old_one_began(world: Any, client: TestClient) -> None:
    found = query(world, "v")
    place = Path(world.env.settings.checkpoint_root) / "queries" / found.meta.id / "g1" / "sources" / "0"
    place.mkdir(parents=True)
    (place / "0").write_text('v1\n{"a":{"0":3}}')
    assert sql(client, GREEN).status_code == 200
    with world.env.open_unit(write=False) as unit:
        spec = build_spec(world.env, unit, unit.queries.find("v__green"))
    assert (spec.sources[0].starting_position, spec.sources[0].starting_offsets) == ("offsets", {"0": 3})
    assert spec.sink.view is not None
    assert (spec.sink.view.table, spec.sink.view.indexes) == (
        query(world, "v__green").meta.id,
        {"by_n": ["n"]},
    )


def test_a_query_that_reads_a_column_which_goes_holds_it_back(world: Any, client: TestClient) -> None:
    gone = GREEN.replace("n, m FROM", "m FROM")
    assert sql(client, gone).status_code == 200
    reconcile_all(world.env)
    first = query(world, "v").meta.id
    with world.env.open_unit() as unit:  # what reads views continuously is not built, so one is made up
        reader = query(world, "v")
        meta = replace(reader.meta, id="qry_reader")
        unit.queries.add(replace(reader, meta=meta, name="r", sources=("d.public.v",), sink="d.public.r"))
        unit.commit()
    beat(world, "v__green", 9)
    reconcile_all(world.env)
    assert shown(world) == first
    assert "are read by query r" in query(world, "v__green").status.message


@pytest.mark.parametrize(
    ("text", "code", "part"),
    [
        (GREEN.replace("blue_green", "purple"), "invalid-property", "one of in_place, blue_green"),
        (
            "CREATE CHANGELOG s AS SELECT n, count(*) AS m FROM a GROUP BY n QUERY WITH ('replace.mode'='blue_green')",
            "unsupported",
            "keys that do not change any more",
        ),
        (
            GREEN.replace("'replace.mode'", "'query.trigger'='available_now', 'replace.mode'"),
            "unsupported",
            "this one completes",
        ),
    ],
)
def test_what_cannot_be_swapped_is_refused(
    world: Any, client: TestClient, text: str, code: str, part: str
) -> None:
    problem = sql(client, text).json()
    assert (problem["code"], part in problem["detail"]) == (code, True), problem
    assert names(client) == ["v"]


def test_put_changes_in_place_and_says_so(world: Any, client: TestClient) -> None:
    body = {"sql": GREEN, "database": "d", "store": "k"}
    problem = client.put("/v1/queries/v", json=body).json()
    assert (problem["code"], ":replace" in problem["errors"][0]["hint"]) == ("unsupported", True)
    # What leaves the job as it is needs none beside it.
    same = GREEN.replace("SELECT n, m", "SELECT n")
    assert sql(client, same).json()["results"][0]["rows"][0][1] == "hot"
    assert names(client) == ["v"]
    assert sql(client, GREEN).status_code == 200
    refused = client.put("/v1/queries/v__green", json=body | {"sql": GREEN.replace("n, m", "m")})
    assert refused.status_code in (409, 422), refused.text
    plain = "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT m FROM a"
    assert "is being replaced" in sql(client, plain).json()["detail"]


def test_lag_decides_where_the_old_one_has_told_nothing(world: Any, client: TestClient) -> None:
    sql(client, GREEN)
    reconcile_all(world.env)
    beat(world, "v__green", 9)
    green, blue = query(world, "v__green"), query(world, "v")
    silent = replace(blue, status=replace(blue.status, metrics={}))
    assert caught_up(green, silent)
    row = {"relation": "d.public.a", "entity": "a", "end_offsets": {"0": 5}, "lag": 2}
    behind = replace(green, status=replace(green.status, metrics={"sources": [row]}))
    assert not caught_up(behind, silent)
    assert not caught_up(replace(green, status=replace(green.status, metrics={})), silent)
    assert not caught_up(replace(green, status=replace(green.status, state="starting")), blue)


def test_a_query_that_was_stopped_meanwhile_stays_stopped(world: Any, client: TestClient) -> None:
    assert sql(client, GREEN).status_code == 200
    assert client.patch("/v1/queries/v", json={"desired_state": "stopped"}).status_code == 200
    end(world, "v")
    reconcile_all(world.env)
    beat(world, "v__green", 9)
    reconcile_all(world.env)
    lead = query(world, "v")
    assert shown(world) == lead.meta.id, "it has taken over"
    assert lead.desired_state == "stopped", "what the user has said of v counts for what is v now"
    end(world, "v")
    assert query(world, "v").status.state == "stopped"


def test_a_stopped_query_is_replaced_by_one_that_runs(world: Any, client: TestClient) -> None:
    assert client.patch("/v1/queries/v", json={"desired_state": "stopped"}).status_code == 200
    end(world, "v")
    assert sql(client, GREEN).status_code == 200
    reconcile_all(world.env)
    beat(world, "v__green", 9)
    reconcile_all(world.env)
    assert (query(world, "v").desired_state, query(world, "v").status.state) == ("running", "running")
