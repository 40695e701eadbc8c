"""USE ROLE, and the role of a request: who may act in which, and what is made then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fakes
import pytest
from scratch import memory_directory
from starlette.testclient import TestClient

from leatstream.errors import AccessError
from leatstream.model.access import Scope
from leatstream.rest.app import create_app
from leatstream.services.environment import Context, Principal
from leatstream.services.environment.authorization import rights_in
from leatstream.services.statements.execution import execute

CREATES = {"privilege": "create_database", "on": "organization"}


@pytest.fixture(scope="module")
def world() -> Iterator[Any]:
    """A new, empty world."""
    with memory_directory() as directory:
        made = fakes.make_world(Path(directory))
        yield made
        made.units.close()


@pytest.fixture(scope="module")
def whole(world: Any) -> Iterator[TestClient]:
    """The server's own token, in a world with the roles web ⊂ leads, and finance."""
    headers = {"Authorization": f"Bearer {fakes.administrator(world)}"}
    with TestClient(create_app(world.env), headers=headers, raise_server_exceptions=False) as opened:
        for role, inherits in (("web", []), ("leads", ["web"]), ("finance", [])):
            body = {"grants": [CREATES], "inherits": inherits}
            assert opened.put(f"/v1/roles/{role}", json=body).status_code == 201
        body = {"roles": ["leads", "finance"], "default_role": "leads"}
        assert opened.put("/v1/users/lea", json=body).status_code == 201
        yield opened


@pytest.fixture
def admin(whole: TestClient) -> Iterator[TestClient]:
    """The same; what a test has made is deleted."""
    yield whole
    for name in "abcd":
        whole.delete(f"/v1/databases/{name}")
    whole.delete("/v1/tokens/t")


def with_token(admin: TestClient, **body: Any) -> TestClient:
    """A client with a new token."""
    made = admin.post("/v1/tokens/t", json=body)
    assert made.status_code == 201, made.text
    headers = {"Authorization": f"Bearer {made.json()['value']}"}
    return TestClient(admin.app, headers=headers, raise_server_exceptions=False)


def run(client: TestClient, sql: str, **more: Any) -> Any:
    """The answer to a text."""
    return client.post("/v1/statements", json={"sql": sql, **more})


def owner(admin: TestClient, name: str) -> str:
    """The role that owns a database."""
    return str(admin.get(f"/v1/databases/{name}").json()["owner"])


def test_what_is_made_belongs_to_the_role_in_use(admin: TestClient) -> None:
    client = with_token(admin, account="lea")
    answer = run(
        client, "CREATE DATABASE a; USE ROLE web; CREATE DATABASE b; USE ROLE leads; CREATE DATABASE c"
    )
    assert answer.status_code == 200, answer.text
    assert [owner(admin, name) for name in "abc"] == ["leads", "web", "leads"]
    assert answer.json()["context"]["role"] == "leads"
    # The context of an answer is sent with the next request.
    assert run(client, "CREATE DATABASE d", role="web").status_code == 200
    assert owner(admin, "d") == "web"
    events = admin.get("/v1/audit-events").json()["items"]
    assert {e["name"]: e["role"] for e in events if e["principal"] == "lea"}["d"] == "web"


def test_a_role_that_is_not_in_use_gives_nothing(admin: TestClient) -> None:
    client = with_token(admin, account="lea")
    assert run(client, "CREATE DATABASE a").status_code == 200
    assert client.get("/v1/databases/a").status_code == 200
    answer = run(client, "USE ROLE web; USE DATABASE a")
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    assert run(client, "DROP DATABASE a", role="web").status_code == 404
    told = client.post("/v1/statements:validate", json={"sql": "DROP DATABASE a", "role": "web"}).json()
    assert told["statements"][0]["problems"][0]["code"] == "not-found"
    text = "USE ROLE web; DROP DATABASE a; USE ROLE leads; DROP DATABASE a"
    told = client.post("/v1/statements:validate", json={"sql": text}).json()
    assert [bool(one["problems"]) for one in told["statements"]] == [False, True, False, False]


@pytest.mark.parametrize("role", ["finance", "sysadmin", "nowhere", "reader"])
def test_a_token_stays_in_its_role_and_what_that_inherits(admin: TestClient, role: str) -> None:
    client = with_token(admin, account="lea", role="leads")
    for answer in (run(client, f"USE ROLE {role}"), run(client, "CREATE DATABASE a", role=role)):
        assert (answer.status_code, answer.json()["code"]) == (403, "permission-denied")
        assert f"lea may not act in role {role}" in answer.json()["detail"]
    told = client.post("/v1/statements:validate", json={"sql": f"USE ROLE {role}; CREATE DATABASE a"}).json()
    assert told["statements"][0]["problems"][0]["code"] == "permission-denied"
    assert admin.get("/v1/databases/a").status_code == 404


def test_who_signed_in_without_a_role_has_those_of_the_account(world: Any, admin: TestClient) -> None:
    with world.units(write=False) as unit:
        lea = Principal("lea", "leads", rights_in(unit, "leads", Scope.WRITE))
    execute(world.env.seen_by(lea), lea, "USE ROLE finance; CREATE DATABASE a", Context())
    assert owner(admin, "a") == "finance"
    with pytest.raises(AccessError, match="lea may not act in role reader"):
        execute(world.env.seen_by(lea), lea, "USE ROLE reader", Context())


def test_a_switch_widens_no_scope(admin: TestClient) -> None:
    client = with_token(admin, account="lea", scope="read")
    answer = run(client, "USE ROLE web; CREATE DATABASE a")
    assert (answer.status_code, answer.json()["code"]) == (403, "permission-denied")


def test_the_administrator_acts_in_every_role(admin: TestClient) -> None:
    assert (
        run(admin, "USE ROLE finance; CREATE DATABASE a; USE ROLE sysadmin; DROP ROLE web").status_code == 409
    )
    assert owner(admin, "a") == "finance"
    assert run(admin, "USE ROLE nowhere").status_code == 403


def test_an_atomic_text_has_one_role(admin: TestClient) -> None:
    client = with_token(admin, account="lea")
    answer = run(client, "USE ROLE web; CREATE DATABASE a", atomic=True)
    assert (answer.status_code, answer.json()["code"]) == (422, "unsupported")
    assert run(client, "CREATE DATABASE a", atomic=True, role="web").status_code == 200
    assert owner(admin, "a") == "web"


@pytest.mark.parametrize("atomic", [False, True])
def test_a_refusal_is_audited_in_the_role_in_use(admin: TestClient, atomic: bool) -> None:
    client = with_token(admin, account="lea")
    answer = run(client, "CREATE ROLE x", role="web", atomic=atomic)
    assert answer.status_code == 403, answer.text
    event = admin.get("/v1/audit-events").json()["items"][0]
    assert (event["principal"], event["role"], event["outcome"]) == ("lea", "web", "denied")
    if atomic:
        return
    assert run(client, "USE ROLE web; CREATE ROLE x").status_code == 403
    assert admin.get("/v1/audit-events").json()["items"][0]["role"] == "web"
    assert run(client, "CREATE ROLE x").status_code == 403
    assert admin.get("/v1/audit-events").json()["items"][0]["role"] == "leads"
    document = 'mutation { runStatements(sql: "CREATE ROLE x", context: {role: "web"}) { context { role } } }'
    answer = client.post("/graphql", json={"query": document})
    assert answer.json()["errors"][0]["extensions"]["code"] == "permission-denied", answer.text
    assert admin.get("/v1/audit-events").json()["items"][0]["role"] == "web"
