"""Lists narrowed by part of the name, state, kind and place: full pages, and tokens that stay with their filters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fakes
import pytest
from scratch import memory_directory
from starlette.testclient import TestClient

from leatstream.cli.nouns import NOUNS
from leatstream.cli.output import look_up
from leatstream.rest.app import create_app

STREAM = {
    "columns": [{"name": "viewtime", "type": "BIGINT"}, {"name": "userid", "type": "VARCHAR"}],
    "store": "k",
    "topic": "pageviews",
    "value_format": "json",
}
KAFKA = {"kafka": {"bootstrap_servers": "localhost:9092"}}


def _query(sink: str, state: str = "running") -> dict[str, Any]:
    sql = f"CREATE STREAM {sink} AS SELECT userid FROM demo.public.pageviews"
    return {"sql": sql, "store": "k", "desired_state": state}


BODIES: dict[str, Any] = {
    **{f"databases/d{number:02}": {} for number in range(30)},
    "databases/demo": {},
    "databases/demo/schemas/shop": {},
    "stores/k": KAFKA,
    "stores/other": KAFKA,
    "stores/k/entities/pageviews": {"kafka": {"partitions": 3, "replicas": 1}},
    "stores/k/entities/orders": {"kafka": {"partitions": 3, "replicas": 1}},
    "relations/demo.public.pageviews": STREAM,
    "relations/demo.shop.pageviews": STREAM | {"store": "other"},
    'relations/demo.shop."Views"': STREAM | {"kind": "changelog", "primary_key": ["userid"]},
    "queries/first": _query("demo.public.one"),
    "queries/second": _query("demo.shop.two"),
    "queries/third": _query("d00.public.three", "stopped"),
    "applications/shop": {
        "sql": "BEGIN APPLICATION shop CREATE STREAM four AS SELECT userid FROM demo.public.pageviews; "
        "END APPLICATION",
        "database": "demo",
        "store": "k",
    },
    "secrets/key": {"value": "x"},
    "roles/analyst": {},
}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    """The client of a world that no test changes."""
    with memory_directory() as directory:
        world = fakes.make_world(Path(directory))
        headers = {"Authorization": f"Bearer {fakes.administrator(world)}"}
        with TestClient(create_app(world.env), headers=headers, raise_server_exceptions=False) as opened:
            for path, body in BODIES.items():
                answer = opened.put(f"/v1/{path}", json=body)
                assert answer.status_code in (200, 201), f"{path}: {answer.text}"
            yield opened
        world.units.close()


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("databases?q=D1", [f"d1{n}" for n in range(10)]),
        ("databases/demo/schemas?q=pub", ["public"]),
        ("stores?q=oth", ["other"]),
        ("stores?kind=kafka&state=ready", ["k", "other"]),
        ("stores?kind=postgres", []),
        ("stores?state=errored", []),
        ("stores/k/entities?q=ord", ["orders"]),
        ("relations?q=VIEW", ["pageviews", "Views", "pageviews"]),
        ("relations?q=demo", []),
        ("relations?kind=changelog", ["Views"]),
        ("relations?store=other&database=demo&schema=shop", ["pageviews"]),
        ("queries?q=ir", ["first", "third"]),
        ("queries?state=stopped", ["third"]),
        ("queries?database=demo", ["first", "four", "second"]),
        ("queries?database=demo&schema=shop&store=k&kind=create_stream_as", ["second"]),
        ("queries?store=other", []),
        ("queries?application=shop", ["four"]),
        ("queries?application=shop&database=d00", []),
        ("queries?application=nothing", []),
        ("secrets?q=e", ["key"]),
        ("roles?q=analyst", ["analyst"]),
        ("users?q=bo", ["bob"]),
        ("applications?state=running", []),
        ("savepoints?state=ready", []),
    ],
)
def test_lists_are_narrowed(client: TestClient, path: str, names: list[str]) -> None:
    answer = client.get(f"/v1/{path}")
    assert answer.status_code == 200, answer.text
    assert sorted(one["name"] for one in answer.json()["items"]) == sorted(names)


def test_pages_are_full_and_tokens_belong_to_their_filters(client: TestClient) -> None:
    found: list[str] = []
    wanted: dict[str, Any] = {"q": "1", "page_size": 5}
    sizes = []
    while True:
        page = client.get("/v1/databases", params=wanted).json()
        sizes.append(len(page["items"]))
        found += [one["name"] for one in page["items"]]
        if page["next_page_token"] is None:
            break
        wanted["page_token"] = page["next_page_token"]
        other = client.get("/v1/databases", params=wanted | {"q": "2"})
        assert (other.status_code, other.json()["code"]) == (400, "invalid-page-token")
        unfiltered = {key: value for key, value in wanted.items() if key != "q"}
        assert client.get("/v1/databases", params=unfiltered).status_code == 400
    assert sizes == [5, 5, 2]
    assert found == ["d01", *(f"d1{n}" for n in range(10)), "d21"]


@pytest.mark.parametrize(
    "path", ["queries?state=broken", "stores?state=1", "relations?kind=topic", "secrets?state=x"]
)
def test_unknown_values_and_filters_are_refused(client: TestClient, path: str) -> None:
    assert client.get(f"/v1/{path}").status_code == 422


def test_a_brief_list_of_relations_has_what_tables_show(client: TestClient) -> None:
    full, brief = (
        {one["fqn"]: one for one in client.get("/v1/relations", params={"view": view}).json()["items"]}
        for view in ("full", "brief")
    )
    assert full == {one["fqn"]: one for one in client.get("/v1/relations").json()["items"]}
    assert all(one["columns"] and one["statement"] and len(one["effective"]) > 1 for one in full.values())
    assert brief == {
        name: one | {"columns": [], "statement": "", "effective": {"topic": one["effective"]["topic"]}}
        for name, one in full.items()
    }
    (noun,) = (noun for noun in NOUNS if noun.name == "relation")
    for path in noun.columns:
        of = path.rpartition("=")[2]
        assert all(look_up(brief[name], of) == look_up(one, of) for name, one in full.items()), of


def test_a_brief_list_has_what_tables_show(client: TestClient) -> None:
    full, brief = (
        {one["name"]: one for one in client.get("/v1/queries", params={"view": view}).json()["items"]}
        for view in ("full", "brief")
    )
    assert full == {one["name"]: one for one in client.get("/v1/queries").json()["items"]}
    left_out = {"plan": None, "effective": {}, "statement_canonical": ""}
    assert all(one["plan"] and one["effective"] and one["statement_canonical"] for one in full.values())
    assert brief == {name: one | left_out for name, one in full.items()}
