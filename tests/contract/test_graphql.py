"""GraphQL over POST: reading, running statements, what a caller may see, errors with places, limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

Ask = Callable[..., Any]
QUERY = "CREATE STREAM views_of_b AS SELECT * FROM pageviews WHERE userid = 'b'"


def ask(client: TestClient, document: str, **variables: Any) -> Any:
    """The answer to a document, whatever it is."""
    answer = client.post("/graphql", json={"query": document, "variables": variables})
    assert answer.status_code == 200, answer.text
    return answer.json()


def data(client: TestClient, document: str, **variables: Any) -> Any:
    """The data of an answer without errors."""
    answer = ask(client, document, **variables)
    assert "errors" not in answer, answer["errors"]
    return answer["data"]


def refused(client: TestClient, document: str, **variables: Any) -> tuple[str, str]:
    """Code and text of the first error."""
    error = ask(client, document, **variables)["errors"][0]
    return error["extensions"]["code"], error["message"]


@pytest.fixture
def shop(pageviews: TestClient) -> TestClient:
    """The client of a world with a stream and a query that reads it."""
    body = {"sql": QUERY, "database": "demo", "schema": "public", "store": "k"}
    assert pageviews.put("/v1/queries/of_b", json=body).status_code == 201
    return pageviews


class TestReading:
    def test_the_catalog_is_one_tree(self, shop: TestClient) -> None:
        found = data(
            shop,
            "{ databases { items { name schemas { items { name relations { items { fqn kind"
            " columns { name type } queries { name } } } } } } nextPageToken } }",
        )
        (database,) = found["databases"]["items"]
        (schema,) = database["schemas"]["items"]
        source = {
            "fqn": "demo.public.pageviews",
            "kind": "STREAM",
            "columns": [{"name": "viewtime", "type": "BIGINT"}, {"name": "userid", "type": "VARCHAR"}],
            "queries": [{"name": "of_b"}],
        }
        assert (database["name"], schema["name"]) == ("demo", "public")
        assert schema["relations"]["items"] == [source, {**source, "fqn": "demo.public.views_of_b"}]

    def test_a_query_shows_its_plan_with_origins(self, shop: TestClient) -> None:
        found = data(
            shop,
            "query($n: String!) { query(name: $n) { kind desiredState sink sourceRelations { fqn store } "
            "status { state metrics } history { generation sql } plan { mode sources { fqn leftMost }"
            " sink { entity properties { name value origin from } } } } }",
            n="of_b",
        )["query"]
        properties = {one.pop("name"): one for one in found["plan"]["sink"]["properties"]}
        assert properties["topic.partitions"] == {
            "value": "3",
            "origin": "LEFT_MOST_SOURCE",
            "from": "demo.public.pageviews",
        }
        assert found["status"] == {"state": "PENDING", "metrics": {}}
        assert found["history"] == [{"generation": 1, "sql": QUERY}]
        assert found["sourceRelations"] == [{"fqn": "demo.public.pageviews", "store": "k"}]

    def test_stores_show_their_entities(self, shop: TestClient) -> None:
        found = data(
            shop,
            '{ stores { items { name kind state entities(search: "PAGE") { items { name properties'
            " { name value } } } } } }",
        )
        (store,) = found["stores"]["items"]
        assert store["entities"]["items"][0]["name"] == "pageviews"
        assert {"name": "topic.partitions", "value": "3"} in store["entities"]["items"][0]["properties"]

    def test_the_server_and_the_caller(self, client: TestClient) -> None:
        found = data(client, "{ server { name features } me { role scope } }")
        assert "graphql" in found["server"]["features"]
        assert found["me"] == {"role": "sysadmin", "scope": "admin"}

    def test_pages_and_filters(self, shop: TestClient) -> None:
        page = "query($t: String) { relations(pageSize: 1, pageToken: $t) { items { name } nextPageToken } }"
        first = data(shop, page)["relations"]
        second = data(shop, page, t=first["nextPageToken"])["relations"]
        names = [one["name"] for one in first["items"] + second["items"]]
        assert (names, second["nextPageToken"]) == (["pageviews", "views_of_b"], None)
        # Pages that have nothing of what is searched are skipped.
        found = data(shop, '{ relations(search: "OF_B", pageSize: 1) { items { name } } }')
        assert found["relations"]["items"] == [{"name": "views_of_b"}]
        none = (
            '{ queries(state: FAILED) { items { name } } of: queries(database: "demo") { items { name } } }'
        )
        assert data(shop, none) == {"queries": {"items": []}, "of": {"items": [{"name": "of_b"}]}}
        assert refused(shop, "{ stores(pageSize: 0) { items { name } } }")[0] == "validation"

    def test_validation_has_places(self, pageviews: TestClient) -> None:
        document = (
            'query($s: String!) { validate(sql: $s, context: {database: "demo", store: "k"}) { valid statements'
            " { kind plan { sink { fqn } } problems { code hint sqlstate position { line column } } } } }"
        )
        assert data(pageviews, document, s=QUERY)["validate"]["valid"] is True
        found = data(pageviews, document, s="CREATE STREAM x AS SELECT usrid FROM pageviews")["validate"]
        (problem,) = found["statements"][0]["problems"]
        assert problem["position"] == {"line": 1, "column": 27}
        assert (problem["code"], problem["sqlstate"]) == ("unknown-column", "42703")
