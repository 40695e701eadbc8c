"""Grants, memberships and owners, each as an object of its own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fakes
import pytest
from scratch import memory_directory
from starlette.testclient import TestClient

from leatstream.rest.app import create_app

NEW = {"If-None-Match": "*"}
GRANT = "/v1/roles/web/grants/select/relation"
IN_SCHEMA = {"in_schema": "demo.public"}
BEFORE: dict[str, dict[str, Any]] = {
    "databases/demo": {},
    "stores/k": {"kafka": {"bootstrap_servers": "localhost:9092"}},
    "stores/k/entities/pageviews": {"kafka": {"partitions": 3, "replicas": 1}},
    "relations/demo.public.pageviews": {
        "columns": [{"name": "viewtime", "type": "BIGINT"}, {"name": "userid", "type": "VARCHAR"}],
        "store": "k",
        "value_format": "json",
    },
}
NOTHING: dict[str, dict[str, Any]] = {
    "roles/web": {"grants": [], "inherits": []},
    "roles/ops": {"grants": [], "inherits": []},
    "users/eve": {"roles": []},
}


@pytest.fixture(scope="module")
def whole() -> Iterator[TestClient]:
    """The administrator's client of a world with a store, a topic and a stream."""
    with memory_directory() as directory:
        world = fakes.make_world(Path(directory))
        headers = {"Authorization": f"Bearer {fakes.administrator(world)}"}
        with TestClient(create_app(world.env), headers=headers, raise_server_exceptions=False) as opened:
            for path, body in BEFORE.items():
                assert opened.put(f"/v1/{path}", json=body).status_code == 201
            yield opened
        world.units.close()


@pytest.fixture
def web(whole: TestClient) -> TestClient:
    """The same, with two roles and an account that have nothing."""
    for path in ("roles/web", "roles/ops", "users/eve"):
        assert whole.put(f"/v1/{path}", json=NOTHING[path]).status_code in (200, 201)
    return whole


def grants_of(client: TestClient, role: str = "web") -> Any:
    """The grants that a role shows."""
    return client.get(f"/v1/roles/{role}").json()["grants"]


class TestGrants:
    """``/v1/roles/{role}/grants/…``"""

    def test_one_grant_is_made_read_and_revoked(self, web: TestClient) -> None:
        other = {"privilege": "usage", "on": "store", "name": "k"}
        web.post("/v1/roles/web:grant", json={"grants": [other]})
        assert web.get(GRANT, params=IN_SCHEMA).status_code == 404
        made = web.put(GRANT, params=IN_SCHEMA, json={}, headers=NEW)
        assert (made.status_code, made.json()["in_schema"]) == (201, "demo.public")
        assert web.get(GRANT, params=IN_SCHEMA).json() == made.json()
        again = web.put(GRANT, params=IN_SCHEMA, json={}, headers=NEW)
        assert (again.status_code, again.json()["code"]) == (409, "already-exists")
        assert web.put(GRANT, params=IN_SCHEMA, json={"grant_option": True}).status_code == 200
        assert web.get(GRANT, params=IN_SCHEMA).json()["grant_option"] is True
        assert len(grants_of(web)) == 2
        assert web.delete(GRANT, params=IN_SCHEMA).status_code == 204
        assert web.delete(GRANT, params=IN_SCHEMA).json()["code"] == "not-found"
        assert [one["on"] for one in grants_of(web)] == ["store"]

    @pytest.mark.parametrize(
        "query", ["?name=pageviews", "?in_schema=demo.public&name=demo.public.pageviews", "?entities=a"]
    )
    def test_what_makes_no_sense_is_refused(self, web: TestClient, query: str) -> None:
        answer = web.put(GRANT + query, json={})
        assert (answer.status_code, answer.json()["code"]) == (422, "validation")

    def test_grants_made_at_once_are_all_kept(self, web: TestClient) -> None:
        names = [f"s{number}" for number in range(6)]
        for name in names:
            web.put(f"/v1/secrets/{name}", json={"value": "x"})
        paths = [f"/v1/roles/web/grants/usage/secret?name={name}" for name in names]
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda path: web.put(path, json={}).status_code, paths))
        assert answers == [201] * 6
        assert sorted(one["name"] for one in grants_of(web)) == names

    def test_a_role_that_names_no_grants_keeps_them(self, web: TestClient) -> None:
        web.put(GRANT, params=IN_SCHEMA, json={})
        web.put("/v1/roles/web/members/role/ops", json={})
        assert web.put("/v1/roles/web", json={"comment": "new"}).status_code == 200
        assert web.put("/v1/roles/ops", json={"comment": "new"}).status_code == 200
        assert len(grants_of(web)) == 1
        assert web.get("/v1/roles/ops").json()["inherits"] == ["web"]


class TestMemberships:
    """``/v1/roles/{role}/members/…``"""

    @pytest.mark.parametrize(("kind", "member"), [("user", "eve"), ("role", "ops")])
    def test_one_role_is_given_and_taken(self, web: TestClient, kind: str, member: str) -> None:
        path = f"/v1/roles/web/members/{kind}/{member}"
        assert web.get(path).json()["code"] == "not-found"
        made = web.put(path, json={}, headers=NEW)
        assert (made.status_code, made.json()["member"]) == (201, member)
        assert web.get(path).json() == made.json()
        assert web.put(path, json={}, headers=NEW).status_code == 409
        assert web.put(path, json={}).status_code == 200
        assert web.delete(path).status_code == 204
        assert web.delete(path).json()["code"] == "not-found"

    def test_roles_given_at_once_are_all_kept(self, web: TestClient) -> None:
        names = [f"r{number}" for number in range(6)]
        for name in names:
            web.put(f"/v1/roles/{name}", json={})
        with ThreadPoolExecutor(6) as pool:
            paths = [f"/v1/roles/{name}/members/user/eve" for name in names]
            answers = list(pool.map(lambda path: web.put(path, json={}).status_code, paths))
        assert answers == [201] * 6
        assert sorted(web.get("/v1/users/eve").json()["roles"]) == names

    def test_no_role_inherits_itself(self, web: TestClient) -> None:
        web.put("/v1/roles/web/members/role/ops", json={})
        answer = web.put("/v1/roles/ops/members/role/web", json={})
        assert (answer.status_code, answer.json()["code"]) == (422, "validation")


QUERY = {"sql": "CREATE STREAM made AS SELECT userid FROM pageviews", "database": "demo", "store": "k"}
OWNED: dict[str, dict[str, Any]] = {
    "databases/d": {},
    "databases/demo/schemas/s": {},
    "stores/other": {"kafka": {"bootstrap_servers": "localhost:9092"}},
    "secrets/pw": {"value": "x"},
    "schema-registries/sr": {"type": "confluent", "uris": "http://localhost:1"},
    "function-sources/f": {"file": "f.py", "content": "def grade(x: int) -> int:\n    return x\n"},
    "relations/demo.public.copy": {
        "columns": [{"name": "userid", "type": "VARCHAR"}],
        "store": "k",
        "topic": "pageviews",
        "value_format": "json",
    },
    "queries/made": QUERY,
    "applications/app": {
        **QUERY,
        "sql": "BEGIN APPLICATION app CREATE STREAM made2 AS SELECT userid FROM pageviews; END APPLICATION",
    },
}


class TestOwners:
    """``owner`` of a body."""

    @pytest.mark.parametrize("path", OWNED)
    def test_an_owner_is_set_changed_and_left(self, web: TestClient, path: str) -> None:
        body, path = OWNED[path], f"/v1/{path}"
        made = web.put(path, json={**body, "owner": "web"})
        assert (made.status_code, made.json().get("owner")) == (201, "web"), made.text
        assert web.get(path).json()["owner"] == "web"
        generation = made.json()["generation"]
        given = web.put(path, json={**body, "owner": "ops"}, headers={"If-Match": f'"{generation}"'})
        assert (given.status_code, given.json()["owner"]) == (200, "ops")
        assert web.put(path, json=body).json()["owner"] == "ops"
        assert web.get(path).json()["generation"] == generation

    def test_what_was_made_with_it_goes_along(self, web: TestClient) -> None:
        web.put("/v1/databases/e", json={"owner": "web"})
        web.put(
            "/v1/queries/made3", json={**QUERY, "sql": QUERY["sql"].replace("made", "made3"), "owner": "web"}
        )
        text = OWNED["applications/app"]["sql"].replace("app", "app2").replace("made2", "made4")
        web.put("/v1/applications/app2", json={**QUERY, "sql": text, "owner": "ops"})
        owners = {
            path: web.get(f"/v1/{path}").json()["owner"]
            for path in (
                "databases/e/schemas/public",
                "relations/demo.public.made3",
                "relations/demo.public.made4",
                "relations/demo.public.pageviews",
            )
        }
        assert list(owners.values()) == ["web", "web", "ops", "sysadmin"]

    def test_what_cannot_be_given_is_not_made(self, web: TestClient) -> None:
        answer = web.put("/v1/databases/n", json={"owner": "nowhere"})
        assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
        grant = {"privilege": "create_database", "on": "organization"}
        web.put("/v1/roles/web", json={"grants": [grant]})
        web.put("/v1/users/eve", json={"roles": ["web"]})
        token = web.post("/v1/tokens/a", json={"account": "eve", "scope": "admin"}).json()["value"]
        eve = TestClient(web.app, headers={"Authorization": f"Bearer {token}"})
        answer = eve.put("/v1/databases/n", json={"owner": "ops"})
        assert (answer.status_code, answer.json()["code"]) == (403, "permission-denied")
        assert web.get("/v1/databases/n").status_code == 404
        assert eve.put("/v1/databases/n", json={"owner": "web"}).status_code == 201
