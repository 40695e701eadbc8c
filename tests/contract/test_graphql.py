"""GraphQL over POST: reading, running statements, what a caller may see, errors with places, limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import fakes
import pytest
import schemathesis
from graphql import get_introspection_query
from hypothesis import HealthCheck, given, seed, settings
from starlette.testclient import TestClient

from leatstream.rest.graphql import request as graphql_request

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

    def test_what_many_objects_share_is_read_once(
        self, shop: TestClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(3):
            body = {"sql": QUERY.replace("of_b", f"of_{number}"), "database": "demo", "store": "k"}
            assert shop.put(f"/v1/queries/q{number}", json=body).status_code == 201
        asked, read = [], graphql_request.relations.get_relation
        monkeypatch.setattr(
            graphql_request.relations,
            "get_relation",
            lambda *given: asked.append(given[-1].name) or read(*given),
        )
        found = data(
            shop,
            "{ queries { items { sourceRelations { fqn queries { name sourceRelations { fqn } } } "
            "sinkRelation { fqn } } } }",
        )["queries"]["items"]
        assert [len(one["sourceRelations"][0]["queries"]) for one in found] == [4] * 4
        assert Counter(asked) == {"pageviews": 1, **{f"views_of_{n}": 1 for n in ("b", 0, 1, 2)}}

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

    def test_lineage(self, shop: TestClient) -> None:
        document = "query($r: String, $d: Int) { lineage(root: $r, depth: $d) { nodes { id state } edges { from to query } } }"
        found = data(shop, document, r="demo.public.views_of_b", d=1)["lineage"]
        assert {"from": "query:of_b", "to": "relation:demo.public.views_of_b", "query": "of_b"} in found[
            "edges"
        ]
        assert {"id": "query:of_b", "state": "pending"} in found["nodes"]
        assert len(data(shop, document)["lineage"]["nodes"]) > len(found["nodes"])
        assert refused(shop, document, r="nowhere")[0] == "not-found"
        assert refused(shop, document, d=0)[0] == "validation"

    def test_of_several_operations_one_is_named(self, shop: TestClient) -> None:
        body = {"query": "query A { me { role } } query B { server { name } }"}
        (error,) = shop.post("/graphql", json=body).json()["errors"]
        assert (error["extensions"]["code"], "operationName" in error["message"]) == ("validation", True)
        answer = shop.post("/graphql", json={**body, "operationName": "B"}).json()
        assert answer == {"data": {"server": {"name": "leatstream"}}}
        wrong = shop.post("/graphql", json={**body, "operationName": "C"}).json()["errors"][0]
        assert wrong["message"] == "The document has no such operation."

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


class TestStatements:
    RUN = "mutation($s: String!, $a: Boolean! = false) { runStatements(sql: $s, atomic: $a) { results { kind query columns { name } rows } context { database } } }"

    def test_a_text_runs(self, client: TestClient) -> None:
        found = data(client, self.RUN, s="CREATE DATABASE shop; USE DATABASE shop; LIST DATABASES;")
        first, _, listed = found["runStatements"]["results"]
        assert (first["kind"], found["runStatements"]["context"]) == ("create_database", {"database": "shop"})
        assert listed["rows"][0][0] == "shop"
        assert client.get("/v1/databases/shop").status_code == 200

    def test_what_ran_before_a_failure_is_returned(self, client: TestClient) -> None:
        answer = ask(client, self.RUN, s="CREATE DATABASE one; CREATE DATABASE one;")
        (error,) = answer["errors"]
        assert answer["data"] is None
        assert error["extensions"]["code"] == "already-exists"
        assert [one["kind"] for one in error["extensions"]["results"]] == ["create_database"]

    def test_a_token_that_reads_changes_nothing(self, fresh: Any, client: TestClient) -> None:
        client.headers["Authorization"] = f"Bearer {fresh.reader_token}"
        assert refused(client, self.RUN, s="CREATE DATABASE shop;")[0] == "permission-denied"
        assert data(client, "{ databases { items { name } } }") == {"databases": {"items": []}}


class TestErrors:
    def test_each_fault_has_its_place(self, pageviews: TestClient) -> None:
        document = 'mutation { runStatements(sql: "CREATE STREAM x AS SELECT a, b FROM pageviews;", context: {database: "demo", store: "k"}) { results { kind } } }'
        answer = pageviews.post("/graphql", json={"query": document}, headers={"X-Request-Id": "r1"})
        errors = answer.json()["errors"]
        assert [one["message"] for one in errors] == ["There is no column a.", "There is no column b."]
        for error, column in zip(errors, (27, 30), strict=True):
            extensions = error["extensions"]
            assert (extensions["code"], extensions["sqlstate"]) == ("unknown-column", "42703")
            assert (extensions["position"]["line"], extensions["position"]["column"]) == (1, column)
            assert (error["path"], extensions["requestId"]) == (["runStatements"], "r1")

    def test_the_document_itself(self, client: TestClient) -> None:
        (error,) = ask(client, "{ server { nmae } }")["errors"]
        assert (error["extensions"]["code"], error["locations"]) == (
            "validation",
            [{"line": 1, "column": 12}],
        )
        assert refused(client, "{ server {")[0] == "validation"
        # One who knows the specification's own media type gets its status.
        headers = {"Accept": "application/graphql-response+json"}
        answer = client.post("/graphql", json={"query": "{ nothing }"}, headers=headers)
        assert (answer.status_code, answer.headers["content-type"]) == (400, headers["Accept"])
        for body in ({"query": ""}, {"qurey": "{ server { name } }"}, []):
            assert client.post("/graphql", json=body).status_code == 422
        assert client.get("/graphql").status_code == 405

    def test_a_missing_object_leaves_the_others(self, client: TestClient) -> None:
        assert refused(client, '{ database(name: "no") { name } }') == (
            "not-found",
            "Database no does not exist.",
        )

    def test_the_unexpected_is_masked(
        self, client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def broken(*_: Any) -> Any:
            raise ZeroDivisionError("sesame")

        monkeypatch.setattr("leatstream.services.nouns.server.describe_server", broken)
        answer = ask(client, "{ server { name } }")
        assert "sesame" not in str(answer)
        assert answer["errors"][0]["extensions"]["code"] == "internal"
        assert answer["errors"][0]["extensions"]["requestId"] in caplog.text
        assert "ZeroDivisionError: sesame" in caplog.text


def nested(levels: int) -> str:
    """A document of so many levels."""
    inside = "name"
    for _ in range(levels - 1):
        inside = f"queries {{ sinkRelation {{ {inside} }} }}"
    return f'{{ relation(fqn: "demo.public.pageviews") {{ {inside} }} }}'


class TestLimits:
    @pytest.mark.parametrize(
        ("document", "word"),
        [
            (nested(6), "depth"),
            ("{ " + " ".join(f"a{n}: server {{ name }}" for n in range(16)) + " }", "aliases"),
            ("{ server { " + "name " * 2_000 + "} }", "tokens"),
        ],
    )
    def test_of_the_document(self, pageviews: TestClient, document: str, word: str) -> None:
        code, text = refused(pageviews, document)
        assert code == "validation"
        assert word in text

    def test_of_what_is_read(self, shop: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
        document = "{ databases { items { schemas { items { relations { items { name } } } } } } }"
        monkeypatch.setattr(graphql_request, "MOST_NODES", 7)
        assert data(shop, document)  # three calls, four objects
        monkeypatch.setattr(graphql_request, "MOST_NODES", 6)
        assert refused(shop, document)[0] == "too-complex"

    def test_of_time(self, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(graphql_request, "SECONDS", -1.0)
        assert refused(client, "{ server { name } }")[0] == "too-complex"

    def test_introspection_needs_a_token(self, client: TestClient) -> None:
        document = get_introspection_query()
        assert data(client, document)["__schema"]["queryType"]["name"] == "QueryRoot"
        client.headers["Authorization"] = "Bearer leat_none"
        assert client.post("/graphql", json={"query": document}).status_code == 401


class TestVisibility:
    """A role sees here what REST shows it."""

    EVERYTHING = (
        "{ databases { items { name schemas { items { name relations { items { fqn queries { name } } } } } } }"
        " relations { items { fqn } } stores { items { name entities { items { name } } } }"
        " queries { items { name sql } } }"
    )

    @pytest.fixture
    def nobody(self, fresh: Any, shop: TestClient) -> Iterator[TestClient]:
        """The client of a role without grants; nothing that it sees may name the canaries."""
        admin = {"Authorization": f"Bearer {fakes.administrator(fresh)}"}
        for path, body in {"roles/nobody": {}, "service-accounts/nobody": {"roles": ["nobody"]}}.items():
            assert shop.put(f"/v1/{path}", json=body, headers=admin).status_code == 201
        body = {"account": "nobody", "scope": "write"}
        value = shop.post("/v1/tokens/nobody", json=body, headers=admin).json()["value"]
        headers = {"Authorization": f"Bearer {value}"}
        with TestClient(shop.app, headers=headers) as client:
            yield client

    def test_nothing_is_seen_without_a_grant(self, shop: TestClient, nobody: TestClient) -> None:
        seen = str(data(shop, self.EVERYTHING))
        for canary in ("pageviews", "views_of_b", "of_b", "demo", "'k'"):
            assert canary in seen
        found = data(nobody, self.EVERYTHING)
        assert all(page == {"items": []} for page in found.values())
        for field in ('database(name: "demo")', 'store(name: "k")', 'query(name: "of_b")'):
            assert refused(nobody, f"{{ {field} {{ name }} }}")[0] == "not-found"
        sql = "SELECT * FROM demo.public.pageviews"
        verdict = f'{{ validate(sql: "{sql}") {{ statements {{ problems {{ code }} }} }} }}'
        assert data(nobody, verdict)["validate"]["statements"] == [
            {"problems": [{"code": "unknown-relation"}]}
        ]

    def test_denials_are_in_the_audit_log(self, fresh: Any, shop: TestClient, nobody: TestClient) -> None:
        document = 'mutation { runStatements(sql: "CREATE DATABASE mine;") { results { kind } } }'
        assert refused(nobody, document)[0] == "permission-denied"
        with fresh.units(write=False) as unit:
            events = unit.audit.page(limit=1)
        assert [(e.principal, e.name, e.outcome) for e in events] == [
            ("nobody", "/graphql/runStatements", "denied")
        ]


def test_generated_documents_are_answered(shop: TestClient) -> None:
    """Each field with arguments and selections of all kinds: data, or an error that somebody raised."""
    headers = dict(shop.headers)
    schema = schemathesis.graphql.from_asgi("/graphql", shop.app, headers=headers)
    codes: Counter[str] = Counter()
    for found in schema.get_all_operations():

        @seed(24)
        @settings(max_examples=2, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(case=found.ok().as_strategy())
        def run(case: Any) -> None:
            answer = ask(shop, case.body)
            codes.update(error["extensions"]["code"] for error in answer.get("errors", ()))
            codes["data"] += answer["data"] is not None

        run()
    assert codes["data"] >= 3
    assert codes["internal"] == 0
