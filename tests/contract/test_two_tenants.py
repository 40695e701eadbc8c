"""Two tenants on one server: no answer to one holds anything of the other, nor says that it is there."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import fakes
import pytest
from fastapi.routing import APIRoute
from scratch import memory_directory
from starlette.testclient import TestClient

from leatstream.rest.app import ROUTERS, create_app

CREATES = ("database", "store", "secret", "schema_registry", "function", "query", "application")
LISTS = (
    "databases",
    "schemas",
    "stores",
    "relations",
    "streams",
    "queries",
    "secrets",
    "schema_registries",
    "functions",
    "function_sources",
    "applications",
    "savepoints",
    "roles",
    "users",
    "service_accounts",
    "api_tokens",
    "invitations",
)


class Tenant:
    """One tenant: a role, an account, and objects whose names and comments hold its canary."""

    def __init__(self, admin: TestClient, name: str, contexts: ExitStack) -> None:
        self.canary = c = f"canary{name}"
        grants = [{"privilege": f"create_{kind}", "on": "organization"} for kind in CREATES]
        put(admin, f"roles/{c}_role", {"grants": grants})
        put(admin, f"service-accounts/{c}_account", {"roles": [f"{c}_role"]})
        invited = admin.post(
            f'/v1/invitations/"{c}@example.com"', json={"roles": [f"{c}_role"], "comment": c}
        )
        invited.raise_for_status()
        made = admin.post(f"/v1/tokens/{c}_token", json={"account": f"{c}_account", "scope": "admin"})
        headers = {"Authorization": f"Bearer {made.json()['value']}"}
        self.client = contexts.enter_context(
            TestClient(admin.app, headers=headers, raise_server_exceptions=False)
        )
        self.context = {"database": f"{c}_d", "schema": "public", "store": f"{c}_k"}
        put(admin, f"function-sources/{c}_fs", {"file": f"{c}.py", "content": CODE, "owner": f"{c}_role"})
        for path, body in self.objects().items():
            put(self.client, path, body)

    def objects(self) -> dict[str, dict[str, Any]]:
        """What it makes itself; relations have the same names in both databases."""
        c = self.canary
        kafka = {"bootstrap_servers": f"{c}:9092"}
        columns = [{"name": "n", "type": "BIGINT"}, {"name": f"{c}_column", "type": "VARCHAR"}]
        relation = {"columns": columns, "store": f"{c}_k", "topic": f"{c}_topic", "value_format": "json"}
        text = f"BEGIN APPLICATION {c}_app CREATE STREAM {c}_o2 AS SELECT * FROM r; END APPLICATION"
        return {
            f"databases/{c}_d": {"comment": c},
            f"secrets/{c}_s": {"value": c, "comment": c},
            f"schema-registries/{c}_sr": {"type": "confluent", "uris": f"http://{c}:1"},
            f"stores/{c}_k": {"kafka": kafka, "comment": c},
            f"stores/{c}_k/entities/{c}_topic": {"kafka": {"partitions": 1, "replicas": 1}},
            f"relations/{c}_d.public.r": {**relation, "comment": c},
            f"functions/{c}_f": {**FUNCTION, "source": f"{c}_fs"},
            f"queries/{c}_q": {"sql": f"CREATE STREAM {c}_o AS SELECT * FROM r", **self.context},
            f"applications/{c}_app": {"sql": text, **self.context},
        }

    def names(self) -> dict[str, str]:
        """What stands for the names in the paths of operations."""
        c = self.canary
        return {
            "database": f"{c}_d",
            "schema": "public",
            "store": f"{c}_k",
            "entity": f"{c}_topic",
            "relation": f"{c}_d.public.r",
            "secret": f"{c}_s",
            "registry": f"{c}_sr",
            "source": f"{c}_ds",
            "function_source": f"{c}_fs",
            "function": f"{c}_f",
            "query": f"{c}_q",
            "application": f"{c}_app",
            "savepoint": f"{c}_sp",
            "role": f"{c}_role",
            "user": f"{c}_account",
            "service_account": f"{c}_account",
            "token": f"{c}_token",
            "invitation": f'"{c}@example.com"',
            "member": f"{c}_account",
            "member_kind": "service_account",
            "privilege": "create_store",
            "on": "organization",
            "statement": f"{c}_1",
            "code": "not-found",
            "subject": f"{c}-value",
            "version": "1",
        }


CODE = "def grade(x: int) -> int:\n    return x\n"
FUNCTION = {"arguments": [{"name": "x", "type": "BIGINT"}], "returns": "BIGINT", "handler": "grade"}


def put(client: TestClient, path: str, body: dict[str, Any]) -> None:
    """Make an object."""
    answer = client.put(f"/v1/{path}", json=body)
    assert answer.status_code == 201, answer.text


@pytest.fixture(scope="module")
def tenants() -> Iterator[tuple[Tenant, Tenant]]:
    """Two of them, alike but for the canary."""
    with memory_directory() as directory:
        world = fakes.make_world(Path(directory))
        headers = {"Authorization": f"Bearer {fakes.administrator(world)}"}
        clusters: dict[str, fakes.Cluster] = {}
        connect = world.env.connect

        def connect_apart(store: Any) -> Any:
            connector: Any = connect(store)
            connector.cluster = clusters.setdefault(store.name, fakes.Cluster())
            return connector

        world.env.connect = connect_apart
        app = create_app(world.env)
        with ExitStack() as contexts:
            admin = contexts.enter_context(TestClient(app, headers=headers, raise_server_exceptions=False))
            yield Tenant(admin, "one", contexts), Tenant(admin, "two", contexts)
        world.units.close()


@pytest.fixture(params=(0, 1), ids=("one", "two"))
def pair(request: Any, tenants: tuple[Tenant, Tenant]) -> tuple[Tenant, Tenant]:
    """Who asks, and whose the canary is."""
    return tenants[request.param], tenants[1 - request.param]


def told(answer: Any) -> str:
    """All that an answer says, its page token as text too."""
    text = f"{answer.headers} {answer.text}"
    for token in re.findall(r'"next_page_token": ?"([^"]+)"', answer.text):
        text += base64.urlsafe_b64decode(token + "==").decode("utf-8", "replace")
    return text


OPERATIONS = [
    (method, route.path)
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute) and route.include_in_schema
    for method in route.methods
]


def test_reading_shows_nothing_of_the_other(pair: tuple[Tenant, Tenant]) -> None:
    mine, other = pair
    shown = 0
    for method, template in OPERATIONS:
        if method != "GET" or template.endswith((":follow", "/rows", "/records")):
            continue
        path = filled(template, mine.names())
        params: dict[str, Any] = {"on": "store", "name": f"{mine.canary}_k"} if "permissions" in path else {}
        if path == "/v1/events":
            params = {"tail": 200, "follow": "false"}
        answer = mine.client.get(path, params=params)
        assert other.canary not in told(answer), path
        shown += mine.canary in answer.text
        if "page_token" in answer.text:
            first = mine.client.get(path, params={"page_size": 1})
            assert other.canary not in told(first), path
    assert shown >= 30


def test_statements_show_nothing_of_the_other(pair: tuple[Tenant, Tenant]) -> None:
    mine, other = pair
    near = other.canary[:-1]
    texts = [f"LIST {noun}" for noun in LISTS]
    texts += [
        f"SELECT n FROM {near}_d.public.r",
        f"SELECT {near}_column FROM r",
        f"SELECT {near}_f(n) FROM r",
        f"CREATE STREAM x AS SELECT * FROM {near}_o",
        f"CREATE STREAM x (n BIGINT) WITH ('store' = '{near}_k', 'topic' = 'x', 'value.format' = 'json')",
        f"CREATE STREAM x (n BIGINT) WITH ('topic' = '{near}_topic', 'value.format' = 'json')",
        f"PRINT ENTITY {near}_topic",
        f"USE DATABASE {near}_d",
        f"USE STORE {near}_k",
        f"USE ROLE {near}_role",
        f"DESCRIBE QUERY {near}_q",
        f"TERMINATE QUERY {near}_q",
        f"DROP STORE {near}_k",
        f"DROP FUNCTION {near}_f",
        "LIST GRANTS ON ORGANIZATION",
        f"LIST GRANTS TO ROLE {near}_role",
        f"GRANT USAGE ON STORE {near}_k TO ROLE {mine.canary}_role",
        f"GRANT ROLE {near}_role TO ROLE {mine.canary}_role",
        f"CREATE USER x WITH ('roles' = '{near}_role')",
    ]
    for text in texts:
        for path in ("statements", "statements:validate"):
            answer = mine.client.post(f"/v1/{path}", json={"sql": text, **mine.context})
            assert other.canary not in told(answer), (path, text)


def test_what_is_hidden_answers_like_what_is_not_there(pair: tuple[Tenant, Tenant]) -> None:
    """Each request for an object of the other is answered as for a name that nobody has."""
    mine, other = pair
    compared = 0
    absent = {noun: name.replace(other.canary, "canaryxyz") for noun, name in other.names().items()}
    for method, template in OPERATIONS:
        named = re.findall(r"\{(\w+)", template)
        # Who owns an object may grant it to a role that it does not see, so a role's name is no secret to it.
        if template.startswith("/v1/roles/{role}") and method in ("POST", "DELETE"):
            continue
        if (
            method in ("PUT", "PATCH")
            or not named
            or named == ["code"]
            or template.endswith("/tokens/{token:noun}")
        ):
            continue
        answers = []
        for names in (other.names(), absent):
            body = {} if method == "POST" else None
            answer = mine.client.request(method, filled(template, names), json=body)
            text = re.sub(r'"request_id":"\w+"', "", answer.text)
            answers.append((answer.status_code, text.replace(other.canary, "canaryxyz")))
        assert answers[0] == answers[1], (method, template)
        assert answers[0][0] >= 400 or "schemas" in template, (method, template)
        compared += 1
    assert compared >= 50


def test_dependents_of_the_other_are_not_named(tenants: tuple[Tenant, Tenant]) -> None:
    """Who owns what others use learns that it is used, and by how many."""
    one, two = tenants
    grants = [
        {"privilege": "usage", "on": "database", "name": f"{one.canary}_d"},
        {"privilege": "usage", "on": "schema", "name": f"{one.canary}_d.public"},
        {"privilege": "select", "on": "relation", "name": f"{one.canary}_d.public.r"},
    ]
    given = one.client.post(f"/v1/roles/{two.canary}_role:grant", json={"grants": grants})
    assert given.status_code == 200, given.text
    assert two.canary in given.text  # who grants names the role
    body = {"sql": f"CREATE STREAM {two.canary}_x AS SELECT n FROM {one.canary}_d.public.r", **two.context}
    put(two.client, f"queries/{two.canary}_x", body)
    relation = f"/v1/relations/{one.canary}_d.public.r"
    shape = {**one.objects()[relation.removeprefix("/v1/")], "columns": [{"name": "m", "type": "BIGINT"}]}
    for answer in (
        one.client.delete(relation),
        one.client.put(relation, json=shape),
        one.client.post("/v1/objects:validate", json={"path": relation}),
        one.client.post("/v1/statements", json={"sql": "DROP STREAM r", **one.context}),
        one.client.post("/v1/statements:validate", json={"sql": "DROP STREAM r", **one.context}),
    ):
        assert two.canary not in told(answer), answer.text
        assert "that the role may not see" in answer.text
    stripped = one.client.post(f"/v1/roles/{two.canary}_role:revoke", json={"grants": grants})
    assert stripped.status_code == 200


def filled(template: str, names: dict[str, str]) -> str:
    """A path with its names."""
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda m: names[m[1]], template)
