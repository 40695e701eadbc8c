"""What flows where: upstream and downstream of an object, and no more than the caller sees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import fakes
import pytest
from scratch import memory_directory
from starlette.testclient import TestClient

from leatstream.rest.app import create_app

FIRST = {"sql": "CREATE STREAM one AS SELECT userid FROM pageviews", "database": "demo", "store": "k"}
SECOND = {"sql": "CREATE STREAM two AS SELECT userid FROM one", "database": "demo", "store": "k"}
STREAM = {
    "columns": [{"name": "viewtime", "type": "BIGINT"}, {"name": "userid", "type": "VARCHAR"}],
    "store": "k",
    "value_format": "json",
}
SINK = "relation:demo.public.one"


BODIES: dict[str, Any] = {
    "databases/demo": {},
    "stores/k": {"kafka": {"bootstrap_servers": "localhost:9092"}},
    "stores/k/entities/pageviews": {"kafka": {"partitions": 3, "replicas": 1}},
    "relations/demo.public.pageviews": STREAM,
    "queries/first": FIRST,
    "queries/second": SECOND,
    "stores/k/entities/two": {"kafka": {"partitions": 3, "replicas": 1}},
    "relations/demo.public.again": STREAM | {"topic": "two"},
}


@contextmanager
def a_flow() -> Iterator[TestClient]:
    """The client of a world in which two queries follow each other, and a stream reads the second's topic."""
    with memory_directory() as directory:
        world = fakes.make_world(Path(directory))
        headers = {"Authorization": f"Bearer {fakes.administrator(world)}"}
        with TestClient(create_app(world.env), headers=headers, raise_server_exceptions=False) as opened:
            for path, body in BODIES.items():
                answer = opened.put(f"/v1/{path}", json=body)
                assert answer.status_code == 201, answer.text
            yield opened
        world.units.close()


@pytest.fixture(scope="module")
def flow() -> Iterator[TestClient]:
    """A flow that no test changes."""
    with a_flow() as opened:
        yield opened


def graph(client: TestClient, root: str | None = None, depth: int | None = None) -> tuple[set[str], set[str]]:
    wanted = {"root": root, "depth": depth}
    answer = client.get("/v1/lineage", params={k: v for k, v in wanted.items() if v is not None})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    return {n["id"] for n in body["nodes"]}, {f"{e['from']} > {e['to']}" for e in body["edges"]}


UPSTREAM = {"store:k", "entity:k/pageviews", "relation:demo.public.pageviews", "query:first"}
DOWNSTREAM = {
    *("entity:k/one", "query:second", "relation:demo.public.two", "entity:k/two"),
    "relation:demo.public.again",
}


def test_the_whole_graph(flow: TestClient) -> None:
    nodes, edges = graph(flow)
    assert nodes == {*UPSTREAM, SINK, *DOWNSTREAM}
    assert edges == {
        "store:k > entity:k/pageviews",
        "entity:k/pageviews > relation:demo.public.pageviews",
        "relation:demo.public.pageviews > query:first",
        f"query:first > {SINK}",
        f"{SINK} > entity:k/one",
        f"{SINK} > query:second",
        "query:second > relation:demo.public.two",
        "relation:demo.public.two > entity:k/two",
        "entity:k/two > relation:demo.public.again",
        "store:k > entity:k/one",
        "store:k > entity:k/two",
    }


def test_upstream_and_downstream_of_a_relation(flow: TestClient) -> None:
    nodes, edges = graph(flow, "demo.public.one")
    assert nodes == {*UPSTREAM, SINK, *DOWNSTREAM}
    # The store holds the sinks too, which makes it no source of theirs.
    assert "store:k > entity:k/one" not in edges
    assert graph(flow, "query:first")[0] == {*UPSTREAM, SINK, *DOWNSTREAM}
    assert graph(flow, "entity:k/two")[0] >= {*UPSTREAM, "relation:demo.public.again"}


def test_depth_counts_edges(flow: TestClient) -> None:
    assert graph(flow, SINK, 1)[0] == {SINK, "query:first", "query:second", "entity:k/one"}
    assert graph(flow, "query:first", 1)[0] == {"query:first", SINK, "relation:demo.public.pageviews"}


def test_nodes_have_states_and_edges_their_query(flow: TestClient) -> None:
    body = flow.get("/v1/lineage", params={"root": SINK}).json()
    states = {node["id"]: node["state"] for node in body["nodes"]}
    assert (states["store:k"], states["query:first"], states[SINK]) == ("ready", "pending", None)
    assert {(e["to"], e["query"]) for e in body["edges"] if e["from"] == "query:first"} == {(SINK, "first")}


def test_nodes_count_the_edges_that_a_part_of_the_graph_leaves_out(flow: TestClient) -> None:
    body = flow.get("/v1/lineage", params={"root": SINK, "depth": 1}).json()
    counts = {node["id"]: (node["inputs"], node["outputs"]) for node in body["nodes"]}
    assert counts == {SINK: (1, 2), "query:first": (1, 1), "query:second": (1, 1), "entity:k/one": (2, 0)}


def test_the_lag_of_a_query_is_that_of_all_its_sources() -> None:
    with a_flow() as flow:
        env = flow.app.state.env  # type: ignore[attr-defined]
        cases: list[tuple[list[dict[str, Any]], int | None]] = [
            ([], None),
            ([{"lag": None}, {}], None),
            ([{"lag": 0}, {"lag": 7}, {"lag": 5}, {}], 12),
        ]
        for sources, lag in cases:
            with env.open_unit() as unit:
                query = unit.queries.find("first")
                status = replace(query.status, metrics={"sources": sources})
                unit.queries.update(replace(query, status=status))
                unit.commit()
            body = flow.get("/v1/lineage", params={"root": "query:first", "depth": 1}).json()
            assert {n["lag"] for n in body["nodes"] if n["id"] == "query:first"} == {lag}


@pytest.mark.parametrize(
    ("root", "status", "code"), [("nothing", 404, "not-found"), ("query:pageviews", 404, "not-found")]
)
def test_unknown_roots(flow: TestClient, root: str, status: int, code: str) -> None:
    answer = flow.get("/v1/lineage", params={"root": root})
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_cycles_names_of_two_kinds_and_what_the_caller_does_not_see() -> None:
    with a_flow() as flow:
        back = {"sql": "INSERT INTO demo.public.one SELECT userid FROM demo.public.two"}
        assert flow.put("/v1/queries/back", json=back).status_code == 201
        nodes, edges = graph(flow, SINK)
        assert "query:back" in nodes
        assert f"query:back > {SINK}" in edges
        grants = [
            {"privilege": "select", "on": "relation", "name": "demo.public.one"},
            {"privilege": "monitor", "on": "query", "name": "first"},
        ]
        flow.put("/v1/roles/few", json={"grants": grants})
        flow.put("/v1/service-accounts/few", json={"roles": ["few"]})
        token = flow.post("/v1/tokens/few", json={"account": "few"}).json()["value"]
        with TestClient(flow.app, headers={"Authorization": f"Bearer {token}"}) as few:
            assert graph(few) == ({"query:first", SINK}, {f"query:first > {SINK}"})
            assert few.get("/v1/lineage", params={"root": "store:k"}).status_code == 404
        assert (
            flow.put("/v1/queries/k", json=FIRST | {"sql": FIRST["sql"].replace("one", "k")}).status_code
            == 201
        )
        answer = flow.get("/v1/lineage", params={"root": "k"}).json()
        assert answer["errors"][0]["hint"] == "Write store:k or query:k."
