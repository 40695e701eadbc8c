"""Who may do what: roles, grants, accounts, tokens, and the audit log, over the REST API."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import fakes
import pytest
from starlette.testclient import TestClient

from leatstream.model.access import BUILT_IN, OBJECT_PRIVILEGES
from leatstream.model.registered import Savepoint
from leatstream.rest.schemas.access import Kind

Sign = Callable[..., TestClient]
STREAM = "demo.public.pageviews"


@pytest.fixture
def admin(fresh: Any, pageviews: TestClient) -> Iterator[TestClient]:
    """A client with the server's own token, over a world with a stream."""
    token = fakes.administrator(fresh)
    headers = {"Authorization": f"Bearer {token}"}
    with TestClient(pageviews.app, headers=headers, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def sign_in(admin: TestClient) -> Sign:
    """Makes a role with grants and an account with it, and gives a client with its token."""

    def make(role: str, *grants: dict[str, Any], scope: str = "write", inherits: Any = None) -> TestClient:
        if grants or inherits or admin.get(f"/v1/roles/{role}").status_code == 404:
            body = {"grants": list(grants), "inherits": inherits}
            assert admin.put(f"/v1/roles/{role}", json=body).status_code in (200, 201)
        account = f"{role}_{scope}"
        made = admin.put(f"/v1/service-accounts/{account}", json={"roles": [role]})
        assert made.status_code in (200, 201), made.text
        answer = admin.post(f"/v1/tokens/{account}", json={"account": account, "scope": scope})
        assert answer.status_code == 201, answer.text
        headers = {"Authorization": f"Bearer {answer.json()['value']}"}
        return TestClient(admin.app, headers=headers, raise_server_exceptions=False)

    return make


def on(privilege: str, kind: str, name: str | None = None, **more: Any) -> dict[str, Any]:
    """A grant as JSON."""
    return {"privilege": privilege, "on": kind, "name": name, **more}


READ = (
    on("usage", "database", "demo"),
    on("usage", "schema", "demo.public"),
    on("select", "relation", STREAM),
)


def run(client: TestClient, sql: str) -> Any:
    """The answer to a statement."""
    return client.post("/v1/statements", json={"sql": sql, "database": "demo", "store": "k"})


def code_of(answer: Any) -> str:
    """The code of a refusal."""
    return str(answer.json()["code"])


class TestVisibility:
    """What a role has no privilege on does not exist for it."""

    def test_nothing_is_seen_without_a_grant(self, sign_in: Sign) -> None:
        client = sign_in("nobody")
        for path in ("databases/demo", "stores/k", f"relations/{STREAM}", "databases/demo/schemas/public"):
            answer = client.get(f"/v1/{path}")
            assert (answer.status_code, code_of(answer)) == (404, "not-found"), path
        for path in ("databases", "stores", "relations", "queries", "secrets", "users"):
            answer = client.get(f"/v1/{path}")
            shown = [one for one in answer.json()["items"] if one["name"] != "nobody_write"]
            assert (answer.status_code, shown) == (200, []), path

    def test_a_hidden_name_is_no_hint(self, sign_in: Sign) -> None:
        answer = run(sign_in("nobody"), "SELECT * FROM demo.public.pageview")
        assert answer.status_code == 422
        assert "pageviews" not in answer.text.replace("pageview.", "").replace("pageview ", "")

    def test_a_relation_shows_its_containers_by_name(self, sign_in: Sign) -> None:
        client = sign_in("team", on("select", "relation", STREAM))
        assert client.get("/v1/databases/demo").status_code == 200
        assert [one["name"] for one in client.get("/v1/relations").json()["items"]] == ["pageviews"]
        assert client.get("/v1/stores/k").status_code == 404

    def test_pages_stay_full(self, admin: TestClient, sign_in: Sign) -> None:
        for number in range(30):
            admin.put(f"/v1/databases/d{number:02}", json={})
        client = sign_in("few", *(on("usage", "database", f"d{n:02}") for n in range(0, 30, 3)))
        first = client.get("/v1/databases", params={"page_size": 6}).json()
        second = client.get(
            "/v1/databases", params={"page_size": 6, "page_token": first["next_page_token"]}
        ).json()
        names = [one["name"] for one in first["items"] + second["items"]]
        assert names == [f"d{n:02}" for n in range(0, 30, 3)]
        assert (len(first["items"]), second["next_page_token"]) == (6, None)

    def test_dependents_that_are_hidden_are_not_named(self, admin: TestClient, sign_in: Sign) -> None:
        client = sign_in("keeper", on("create_database", "organization"))
        assert client.put("/v1/databases/mine", json={}).status_code == 201
        assert admin.put("/v1/databases/mine/schemas/canary", json={}).status_code == 201
        answer = client.delete("/v1/databases/mine")
        assert (answer.status_code, code_of(answer)) == (409, "has-dependents")
        assert "canary" not in answer.text


class TestStatements:
    """What each statement needs."""

    def test_select_needs_select_and_its_path(self, sign_in: Sign) -> None:
        client = sign_in("half", on("insert", "relation", STREAM))
        answer = run(client, f"CREATE STREAM x AS SELECT userid FROM {STREAM}")
        assert (answer.status_code, code_of(answer)) == (403, "permission-denied")
        detail = answer.json()["detail"]
        assert "SELECT on relation demo.public.pageviews" in detail
        assert "USAGE on database demo" in detail
        assert "USAGE on schema demo.public" in detail

    def test_create_stream_as_needs_each_of_its_privileges(self, sign_in: Sign) -> None:
        whole = (
            *READ,
            on("create_relation", "schema", "demo.public"),
            on("create_query", "organization"),
            on("usage", "store", "k"),
            on("create_entity", "store", "k"),
        )
        sql = f"CREATE STREAM made AS SELECT userid FROM {STREAM}"
        for left_out in range(len(whole)):
            client = sign_in(f"lacks{left_out}", *(g for i, g in enumerate(whole) if i != left_out))
            answer = run(client, sql)
            expected = {2: 422, 6: 403}.get(left_out, 403)
            assert answer.status_code == expected, (whole[left_out], answer.text)
            # The dry run says the same.
            checked = client.post(
                "/v1/statements:validate", json={"sql": sql, "database": "demo", "store": "k"}
            )
            told = checked.json() if checked.status_code != 200 else checked.json()["statements"][0]
            assert checked.status_code == expected or told["problems"], whole[left_out]
        answer = run(sign_in("whole", *whole), sql)
        assert answer.status_code == 200, answer.text

    def test_what_a_role_makes_is_its_own(self, admin: TestClient, sign_in: Sign) -> None:
        client = sign_in(
            "makers",
            *READ,
            on("create_relation", "schema", "demo.public"),
            on("create_query", "organization"),
            on("usage", "store", "k"),
            on("create_entity", "store", "k", entities="made*"),
        )
        assert run(client, f"CREATE STREAM other AS SELECT userid FROM {STREAM}").status_code == 403
        assert run(client, f"CREATE STREAM made AS SELECT userid FROM {STREAM}").status_code == 200
        assert client.get("/v1/relations/demo.public.made").json()["owner"] == "makers"
        assert run(client, "TERMINATE QUERY made").status_code == 200
        assert client.delete(f"/v1/relations/{STREAM}").status_code == 403
        assert admin.get("/v1/queries/made").json()["owner"] == "makers"

    def test_insert_needs_insert(self, sign_in: Sign) -> None:
        sql = f"INSERT INTO {STREAM} VALUES (1, 'ann')"
        assert run(sign_in("reads", *READ), sql).status_code == 403
        path = (on("usage", "database", "demo"), on("usage", "schema", "demo.public"))
        assert run(sign_in("writes", on("insert", "relation", STREAM), *path), sql).status_code == 200

    def test_entities_are_seen_by_pattern(self, admin: TestClient, sign_in: Sign) -> None:
        admin.put("/v1/stores/k/entities/orders", json={"kafka": {"partitions": 1, "replicas": 1}})
        client = sign_in("topics", on("read_entity", "store", "k", entities="page*"))
        names = [one["name"] for one in client.get("/v1/stores/k/entities").json()["items"]]
        assert names == ["pageviews"]
        assert client.get("/v1/stores/k/entities/orders").status_code == 404
        assert client.delete("/v1/stores/k/entities/pageviews").status_code == 403

    def test_a_secret_is_used_only_with_usage(self, admin: TestClient, sign_in: Sign) -> None:
        admin.put("/v1/secrets/pw", json={"value": "s3cret"})
        body = {
            "kafka": {
                "bootstrap_servers": "evil:9092",
                "sasl": {"mechanism": "plain", "username": "u", "password_secret": "pw"},
                "security_protocol": "sasl_ssl",
            }
        }
        changes = sign_in("rotates", on("modify", "secret", "pw"), on("create_store", "organization"))
        assert changes.put("/v1/secrets/pw", json={"value": "new"}).status_code == 200
        answer = changes.put("/v1/stores/evil", json=body)
        assert (answer.status_code, code_of(answer)) == (422, "validation")

    def test_a_log_of_undecodable_records_is_an_entity_that_the_role_may_write_to(
        self, admin: TestClient, sign_in: Sign
    ) -> None:
        entity = {"kafka": {"partitions": 1, "replicas": 1}}
        for name in ("theirs", "hidden", "mine"):
            assert admin.put(f"/v1/stores/k/entities/{name}", json=entity).status_code == 201
        made = [
            on("create_query", "organization"),
            on("create_relation", "schema", "demo.public"),
            on("usage", "store", "k"),
            on("create_entity", "store", "k", entities="o"),
            on("write_entity", "store", "k", entities="mine"),
            on("read_entity", "store", "k", entities="theirs"),
        ]
        client = sign_in("logs", *READ, *made)

        def create(topic: str) -> Any:
            handling = "'source.deserialization.error.handling'=IGNORE_AND_LOG"
            log = f"'source.deserialization.error.log.topic'='{topic}'"
            return run(client, f"CREATE STREAM o AS SELECT * FROM {STREAM} WITH ({handling}, {log})")

        refused = create("theirs")
        assert (refused.status_code, code_of(refused)) == (403, "permission-denied")
        assert "WRITE_ENTITY on store k entities 'theirs'" in refused.json()["detail"]
        hidden, missing = create("hidden"), create("missing")
        assert hidden.status_code == missing.status_code == 422
        assert hidden.json()["detail"].replace("hidden", "missing") == missing.json()["detail"]
        assert create("mine").status_code == 200, create("mine").text

    def test_a_registry_is_named_only_with_usage(self, admin: TestClient, sign_in: Sign) -> None:
        admin.put("/v1/schema-registries/sr", json={"type": "confluent", "uris": "http://localhost:1"})
        body = {"kafka": {"bootstrap_servers": "localhost:9092"}, "schema_registry": "sr"}
        create = on("create_store", "organization")
        answer = sign_in("moves", on("modify", "schema_registry", "sr"), create).put(
            "/v1/stores/n", json=body
        )
        assert (answer.status_code, code_of(answer)) == (403, "permission-denied")
        assert "USAGE on schema_registry sr" in answer.json()["detail"]
        user = sign_in("names", on("usage", "schema_registry", "sr"), create)
        assert user.put("/v1/stores/n", json=body).status_code == 201

    def test_code_for_drivers_is_brought_by_orgadmins(
        self, fresh: Any, admin: TestClient, sign_in: Sign
    ) -> None:
        """It runs with the account of the server, and could read the administrator's token."""
        body = {"file": "f.py", "content": "def grade(x: int) -> int:\n    return x\n"}
        other = {**body, "content": body["content"].replace("return x", "return -x")}
        fresh.env.settings = replace(fresh.env.settings, isolated_drivers=False)
        path = "/v1/function-sources/f"
        sql = "CREATE FUNCTION_SOURCE g WITH ('file' = 'g.py', 'content' = '')"
        coder = sign_in("coder", *READ, on("create_function", "organization"))
        sysadmin, orgadmin = sign_in("sysadmin"), sign_in("orgadmin")
        for client in (coder, sysadmin):
            assert client.put(path, json=body).status_code == 403
            for check in ("/v1/statements", "/v1/statements:validate"):
                assert "permission-denied" in client.post(check, json={"sql": sql}).text
        assert orgadmin.put(path, json=body).status_code == 201
        admin.post("/v1/ownership", json={"on": "function_source", "name": "f", "role": "coder"})
        assert coder.put(path, json={**body, "comment": "mine"}).status_code == 200
        for client in (coder, sysadmin):
            answer = client.put(path, json=other)
            assert (answer.status_code, code_of(answer)) == (403, "permission-denied")
        fresh.env.settings = replace(fresh.env.settings, isolated_drivers=True)
        assert coder.put(path, json=other).status_code == 403
        assert sysadmin.put(path, json=other).status_code == 200

    def test_statements_about_access(self, admin: TestClient) -> None:
        for sql in (
            "CREATE ROLE analyst COMMENT 'reads'",
            f"GRANT SELECT ON STREAM {STREAM} TO ROLE analyst",
            "GRANT USAGE ON ALL SCHEMAS IN DATABASE demo TO ROLE analyst WITH GRANT OPTION",
            "CREATE USER \"ann@example.com\" WITH ('roles' = 'analyst')",
            "CREATE SERVICE_ACCOUNT ci",
            "GRANT ROLE analyst TO SERVICE_ACCOUNT ci",
        ):
            assert run(admin, sql).status_code == 200, sql
        rows = run(admin, "SHOW GRANTS TO ROLE analyst").json()["results"][0]["rows"]
        assert rows == [
            ["analyst", "SELECT", "relation demo.public.pageviews", "false"],
            ["analyst", "USAGE", "all schemas in database demo", "true"],
        ]
        made = run(admin, "CREATE API_TOKEN ci WITH ('account' = 'ci', 'scope' = 'read')").json()["results"][
            0
        ]
        headers = {"Authorization": f"Bearer {made['rows'][0][-1]}"}
        with TestClient(admin.app, headers=headers, raise_server_exceptions=False) as client:
            assert run(client, f"CAN I SELECT ON STREAM {STREAM}").json()["results"][0]["rows"] == [["true"]]
            assert run(client, f"CAN I INSERT ON STREAM {STREAM}").json()["results"][0]["rows"] == [["false"]]
            assert run(client, "CAN I USAGE ON STORE k").json()["results"][0]["rows"] == [["false"]]
        run(admin, f"REVOKE SELECT ON STREAM {STREAM} FROM ROLE analyst")
        assert len(run(admin, "LIST GRANTS TO ROLE analyst").json()["results"][0]["rows"]) == 1
        answer = run(admin, "DROP ROLE analyst")
        assert (answer.status_code, code_of(answer)) == (409, "has-dependents")
        assert run(admin, "DROP API_TOKEN ci").status_code == 200


class TestGrants:
    """Who may give what away."""

    def test_only_owners_and_holders_of_the_option_grant(self, admin: TestClient, sign_in: Sign) -> None:
        grant = on("select", "relation", STREAM)
        sign_in("target")
        plain = sign_in("plain", *READ, scope="admin")
        assert plain.post("/v1/roles/target:grant", json={"grants": [grant]}).status_code == 403
        holder = sign_in("holder", {**grant, "grant_option": True}, scope="admin")
        assert holder.post("/v1/roles/target:grant", json={"grants": [grant]}).status_code == 200
        granted = admin.get("/v1/roles/target").json()["grants"]
        assert [one["privilege"] for one in granted] == ["select"]
        assert holder.post("/v1/roles/target:revoke", json={"grants": [grant]}).status_code == 200

    def test_nobody_gives_a_role_away_that_he_lacks(self, admin: TestClient, sign_in: Sign) -> None:
        manager = sign_in("members", on("manage_members", "organization"), scope="admin")
        for role in ("sysadmin", "orgadmin", "reader"):
            answer = manager.put("/v1/users/eve", json={"roles": [role]})
            assert (answer.status_code, code_of(answer)) == (403, "permission-denied"), role
        assert manager.put("/v1/users/eve", json={"roles": ["members"]}).status_code == 201
        security = sign_in("security", inherits=["securityadmin"], scope="admin")
        assert security.put("/v1/users/eve", json={"roles": ["sysadmin"]}).status_code == 403
        assert security.put("/v1/roles/sly", json={"inherits": ["sysadmin"]}).status_code == 403
        assert security.put("/v1/users/eve", json={"roles": ["reader"]}).status_code == 200

    def test_ownership_moves(self, admin: TestClient, sign_in: Sign) -> None:
        client = sign_in("heirs")
        body = {"on": "relation", "name": STREAM, "role": "heirs"}
        assert client.post("/v1/ownership", json=body).status_code == 403
        assert admin.post("/v1/ownership", json=body).status_code == 204
        assert client.get(f"/v1/relations/{STREAM}").json()["owner"] == "heirs"
        found = client.get("/v1/me/permissions", params={"on": "relation", "name": STREAM}).json()
        assert "ownership" in found["privileges"]

    def test_grants_on_all_hold_for_later_objects(self, admin: TestClient, sign_in: Sign) -> None:
        client = sign_in("all", {"privilege": "usage", "on": "database"})
        admin.put("/v1/databases/later", json={})
        assert client.get("/v1/databases/later").status_code == 200

    def test_a_role_cannot_inherit_itself(self, admin: TestClient) -> None:
        admin.put("/v1/roles/a", json={})
        admin.put("/v1/roles/b", json={"inherits": ["a"]})
        answer = admin.put("/v1/roles/a", json={"inherits": ["b"]})
        assert (answer.status_code, code_of(answer)) == (422, "validation")

    def test_grants_that_make_no_sense_are_refused(self, admin: TestClient) -> None:
        for grant in (
            on("select", "store", "k"),
            on("usage", "database", "absent"),
            on("ownership", "store", "k"),
            {"privilege": "usage", "on": "store", "in_schema": "demo.public"},
            on("usage", "database", "Demo"),
            on("select", "relation", "pageviews"),
        ):
            answer = admin.put("/v1/roles/odd", json={"grants": [grant]})
            assert answer.status_code == 422, grant
        assert admin.put("/v1/roles/sysadmin", json={}).status_code == 403
        assert admin.delete("/v1/roles/sysadmin").status_code == 403


def test_the_contract_knows_every_kind() -> None:
    assert set(get_args(Kind)) == set(OBJECT_PRIVILEGES)


class TestTokens:
    """Tokens are bound to a role and a scope, end, are rotated and revoked."""

    def test_scopes(self, sign_in: Sign) -> None:
        reads = sign_in("scoped", on("create_database", "organization"), scope="read")
        assert reads.put("/v1/databases/x", json={}).status_code == 403
        writes = sign_in("scoped", scope="write")
        assert writes.put("/v1/databases/x", json={}).status_code == 201
        answer = writes.post("/v1/tokens/more", json={"scope": "admin"})
        assert (answer.status_code, code_of(answer)) == (403, "permission-denied")

    def test_a_token_that_only_reads_may_plan_what_its_role_may_make(self, sign_in: Sign) -> None:
        column = {"name": "userid", "type": "VARCHAR"}
        body = {"columns": [column], "store": "k", "topic": "pageviews", "value_format": "json"}
        asked = {"path": "/v1/relations/demo.public.again", "body": body}
        client = sign_in("sysadmin", scope="read")
        answer = client.post("/v1/objects:validate", json=asked)
        assert answer.status_code == 200, answer.text
        assert client.get("/v1/relations/demo.public.again").status_code == 404
        assert client.put("/v1/relations/demo.public.again", json=body).status_code == 403
        # To plan with a store that is not there is to connect to an address that the caller chose.
        new = {"stores": [{"name": "mine", "kafka": {"bootstrap_servers": "evil:9092"}}]}
        there = {**asked, "body": {**body, "store": "mine"}, "assume": new}
        assert client.post("/v1/objects:validate", json=there).status_code == 403
        refused = sign_in("onlooker", *READ, on("usage", "store", "k"), scope="read").post(
            "/v1/objects:validate", json=asked
        )
        assert "CREATE_RELATION" in refused.text

    def test_rotation_keeps_the_old_value_for_a_while(self, admin: TestClient, sign_in: Sign) -> None:
        old = sign_in("rotated")
        answer = admin.post("/v1/tokens/rotated_write:rotate", json={"grace_minutes": 60})
        assert answer.json()["values"] == 2
        new = {"Authorization": f"Bearer {answer.json()['value']}"}
        assert (old.get("/v1/me").status_code, old.get("/v1/me", headers=new).status_code) == (200, 200)
        admin.post("/v1/tokens/rotated_write:rotate", json={"grace_minutes": 0})
        assert (old.get("/v1/me").status_code, old.get("/v1/me", headers=new).status_code) == (401, 401)

    def test_a_revoked_token_a_disabled_and_a_deleted_account(self, admin: TestClient, sign_in: Sign) -> None:
        client = sign_in("gone")
        admin.delete("/v1/tokens/gone_write")
        assert client.get("/v1/me").status_code == 401
        for change in ({"roles": ["gone"], "disabled": True}, None):
            client = sign_in("gone")
            if change is None:
                admin.delete("/v1/service-accounts/gone_write")
            else:
                admin.put("/v1/service-accounts/gone_write", json=change)
            assert client.get("/v1/me").status_code == 401
            admin.delete("/v1/tokens/gone_write")

    def test_a_lost_role_is_said(self, admin: TestClient, sign_in: Sign) -> None:
        client = sign_in("lost")
        admin.put("/v1/service-accounts/lost_write", json={"roles": ["reader"]})
        answer = client.get("/v1/me")
        assert answer.status_code == 403
        assert "no longer has role lost" in answer.json()["detail"]

    def test_revoked_grants_count_at_once(self, admin: TestClient, sign_in: Sign) -> None:
        client = sign_in("brief", *READ)
        assert client.get(f"/v1/relations/{STREAM}").status_code == 200
        admin.put("/v1/roles/brief", json={"grants": []})
        assert client.get(f"/v1/relations/{STREAM}").status_code == 404

    def test_an_expired_token(self, fresh: Any, admin: TestClient, sign_in: Sign) -> None:
        from dataclasses import replace

        client = sign_in("ended")
        with fresh.units() as unit:
            (row,) = unit.tokens.list("ended_write")
            unit.tokens.add(replace(row, expires_at=datetime.now(UTC) - timedelta(seconds=1)))
            unit.commit()
        assert client.get("/v1/me").status_code == 401

    def test_the_last_use_is_noted(self, admin: TestClient, sign_in: Sign) -> None:
        assert admin.get("/v1/tokens/used_write").status_code == 404
        sign_in("used").get("/v1/me")
        assert admin.get("/v1/tokens/used_write").json()["last_used_at"] is not None

    def test_the_servers_own_token_is_not_revoked(self, admin: TestClient) -> None:
        answer = admin.delete("/v1/tokens/admin")
        assert (answer.status_code, code_of(answer)) == (409, "invalid-transition")


class TestAudit:
    """Changes and refusals are in the log, each hash over the one before."""

    def test_changes_and_refusals(self, fresh: Any, admin: TestClient, sign_in: Sign) -> None:
        client = sign_in("watched", *READ)
        client.delete(f"/v1/relations/{STREAM}")
        admin.put("/v1/databases/new", json={})
        found = admin.get("/v1/audit-events", params={"page_size": 2}).json()
        assert {(one["operation"], one["kind"], one["name"]) for one in found["items"]} == {
            ("create", "database", "new"),
            ("create", "schema", "new.public"),
        }
        everything = admin.get("/v1/audit-events", params={"page_size": 1000}).json()["items"]
        denied = [one for one in everything if one["outcome"] == "denied"]
        assert denied[0]["principal"] == "watched_write"
        assert (denied[0]["operation"], denied[0]["name"]) == ("delete", f"/v1/relations/{STREAM}")
        assert {one["kind"] for one in everything} >= {"role", "account", "token", "database"}
        assert admin.get("/v1/audit-events", params={"account": "watched_write"}).json()["items"]
        with fresh.units(write=False) as unit:
            assert unit.audit.broken() is None

    def test_it_is_followed_behind_a_number(self, admin: TestClient) -> None:
        for number in range(3):
            admin.put(f"/v1/databases/f{number}", json={})
        every = admin.get("/v1/audit-events", params={"page_size": 1000}).json()["items"]
        oldest_first = [one["number"] for one in reversed(every)]
        last, read = 0, list[int]()
        while found := admin.get("/v1/audit-events", params={"after": last, "page_size": 2}).json()["items"]:
            read += [one["number"] for one in found]
            last = read[-1]
        assert read == oldest_first
        both = admin.get("/v1/audit-events", params={"after": 0, "page_token": "5"})
        assert (both.status_code, both.json()["code"]) == (400, "invalid-page-token")

    def test_it_is_filtered_and_its_pages_are_full(self, admin: TestClient, sign_in: Sign) -> None:
        client = sign_in("shopper", *READ)
        for number in range(3):
            client.delete(f"/v1/relations/{STREAM}")
            admin.put(f'/v1/databases/"Shop_{number}"', json={})
            admin.delete(f'/v1/databases/"Shop_{number}"')
        every = admin.get("/v1/audit-events", params={"page_size": 1000}).json()["items"]

        def found(**params: Any) -> list[int]:
            answer = admin.get("/v1/audit-events", params={"page_size": 1000, **params})
            assert answer.status_code == 200, answer.text
            return [one["number"] for one in answer.json()["items"]]

        def wanted(fits: Any) -> list[int]:
            return [one["number"] for one in every if fits(one)]

        assert found(outcome="denied") == wanted(lambda one: one["outcome"] == "denied") != []
        deleted = wanted(lambda one: (one["operation"], one["kind"]) == ("delete", "database"))
        assert found(operation="delete", kind="database") == deleted
        assert found(q="shop_1") == wanted(lambda one: "shop_1" in one["name"].lower()) != []
        assert found(q="shop%1") == []
        account = next(one["principal"] for one in every if one["outcome"] == "denied")
        assert found(account=account, outcome="denied", kind="request") == found(account=account) != []
        middle = every[len(every) // 2]
        assert found(since=middle["at"]) == wanted(lambda one: one["at"] >= middle["at"])
        assert found(until=middle["at"].removesuffix("Z")) == wanted(lambda one: one["at"] < middle["at"])
        assert found(outcome="denied", after=0) == found(outcome="denied")[::-1]
        first = admin.get("/v1/audit-events", params={"outcome": "denied", "page_size": 2}).json()
        token = first["next_page_token"]
        second = found(outcome="denied", page_size=2, page_token=token)
        assert [*(one["number"] for one in first["items"]), *second] == found(outcome="denied")[:4]
        assert admin.get("/v1/audit-events", params={"outcome": "refused"}).status_code == 422

    def test_a_changed_event_is_found(self, fresh: Any, admin: TestClient) -> None:
        import sqlalchemy as sa

        from leatstream.storage import tables

        for number in range(3):
            admin.put(f"/v1/databases/n{number}", json={})
        with fresh.units() as unit:
            numbers = [event.number for event in unit.audit.page()]
            table = tables.audit_events
            changed = sa.update(table).where(table.c.id == numbers[1]).values(principal="somebody")
            unit._connection.execute(changed)
            assert unit.audit.broken() == numbers[1]

    def test_only_auditors_read_it(self, sign_in: Sign) -> None:
        assert sign_in("curious", *READ).get("/v1/audit-events").status_code == 403
        assert sign_in("auditor", on("audit", "organization")).get("/v1/audit-events").status_code == 200

    def test_a_refused_change_is_not_noted_as_made(self, admin: TestClient) -> None:
        admin.put("/v1/databases/once", json={})
        before = len(admin.get("/v1/audit-events", params={"page_size": 1000}).json()["items"])
        assert admin.put("/v1/databases/once", json={}).status_code == 200  # unchanged
        after = admin.get("/v1/audit-events", params={"page_size": 1000}).json()["items"]
        assert len(after) == before


class TestEscalation:
    """Nobody gains rights by managing accounts, tokens, ownership or containers."""

    def test_account_managers_get_no_token_of_a_role_that_they_lack(
        self, admin: TestClient, sign_in: Sign
    ) -> None:
        admin.put("/v1/service-accounts/mighty", json={"roles": ["sysadmin"]})
        assert admin.post("/v1/tokens/mighty", json={"account": "mighty"}).status_code == 201
        manager = sign_in("members", on("manage_members", "organization"), scope="admin")
        for path, body in (
            ("/v1/tokens/stolen", {"account": "mighty"}),
            ("/v1/tokens/mighty:rotate", {}),
            ("/v1/tokens/admin:rotate", {}),
        ):
            assert manager.post(path, json=body).status_code in (403, 409), path
        assert manager.delete("/v1/tokens/mighty").status_code == 403
        body = {"roles": ["sysadmin"], "disabled": True}
        assert manager.put("/v1/service-accounts/mighty", json=body).status_code == 403

    def test_a_token_does_not_rotate_one_of_another_role(self, admin: TestClient, sign_in: Sign) -> None:
        sign_in("more", on("create_database", "organization"))
        client = sign_in("less")
        admin.put("/v1/service-accounts/less_write", json={"roles": ["less", "more"]})
        body = {"account": "less_write", "role": "more"}
        assert admin.post("/v1/tokens/second", json=body).status_code == 201
        assert client.post("/v1/tokens/third", json={"role": "more"}).status_code == 403
        assert client.post("/v1/tokens/second:rotate", json={}).status_code == 403

    def test_who_owns_a_schema_does_not_own_what_is_in_it(self, admin: TestClient, sign_in: Sign) -> None:
        owner = sign_in("owners", scope="admin")
        moved = {"on": "schema", "name": "demo.public", "role": "owners"}
        assert admin.post("/v1/ownership", json=moved).status_code == 204
        for one in (on("select", "relation", in_schema="demo.public"), on("select", "relation", STREAM)):
            answer = owner.post("/v1/roles/owners:grant", json={"grants": [one]})
            assert answer.status_code == 403, one
        one = on("usage", "schema", "demo.public")
        assert owner.post("/v1/roles/owners:grant", json={"grants": [one]}).status_code == 200

    def test_ownership_goes_to_no_role_that_the_owner_lacks(self, admin: TestClient, sign_in: Sign) -> None:
        """A query runs with the rights of its owner."""
        client = sign_in("givers", scope="admin")
        admin.post("/v1/ownership", json={"on": "relation", "name": STREAM, "role": "givers"})
        body = {"on": "relation", "name": STREAM, "role": "sysadmin"}
        assert client.post("/v1/ownership", json=body).status_code == 403

    def test_a_pattern_of_entities_belongs_to_one_store(self, admin: TestClient) -> None:
        for one in (on("read_entity", "store", entities="a*"), on("monitor", "organization", entities="a*")):
            assert admin.put("/v1/roles/odd", json={"grants": [one]}).status_code == 422, one

    def test_managers_of_grants_need_not_see_the_object(self, admin: TestClient, sign_in: Sign) -> None:
        security = sign_in("security", inherits=["securityadmin"], scope="admin")
        sign_in("target")
        body = {"grants": [on("select", "relation", STREAM)]}
        assert security.post("/v1/roles/target:grant", json=body).status_code == 200
        moved = {"on": "relation", "name": STREAM, "role": "target"}
        assert security.post("/v1/ownership", json=moved).status_code == 204
        assert security.get(f"/v1/relations/{STREAM}").status_code == 404

    def test_a_plan_connects_to_no_store_that_the_role_may_not_create(
        self, fresh: Any, admin: TestClient, sign_in: Sign
    ) -> None:
        """To plan with a store is to connect to it."""
        reached: list[str] = []
        connect = fresh.env.connect
        fresh.env.connect = lambda store: (reached.append(store.name), connect(store))[1]
        grants = (*READ, on("create_relation", "schema", "demo.public"), on("create_query", "organization"))
        body = {
            "sql": f"CREATE STREAM demo.public.x WITH ('store' = 'chosen') AS SELECT userid FROM {STREAM}",
            "assume": {"stores": [{"name": "chosen", "kafka": {"bootstrap_servers": "evil:9092"}}]},
        }
        told = sign_in("planner", *grants).post("/v1/statements:validate", json=body).json()
        assert told["statements"][0]["problems"][0]["code"] == "permission-denied"
        assert "chosen" not in reached
        creator = sign_in("creator", *grants, on("create_store", "organization"))
        answer = creator.post("/v1/statements:validate", json=body)
        assert "chosen" in reached, answer.text

    def test_a_dry_run_refuses_what_the_statement_would(self, admin: TestClient, sign_in: Sign) -> None:
        admin.put("/v1/users/canary", json={})
        client = sign_in("plain", *READ, scope="admin")
        for sql in (
            "CREATE ROLE r",
            "CREATE USER canary",
            "CREATE USER u",
            "DROP USER canary",
            "DROP ROLE plain",
            f"GRANT SELECT ON STREAM {STREAM} TO ROLE plain",
            "GRANT ROLE sysadmin TO ROLE plain",
            "CREATE API_TOKEN t WITH ('account' = 'canary')",
            f"GRANT OWNERSHIP ON STREAM {STREAM} TO ROLE plain",
        ):
            told = client.post("/v1/statements:validate", json={"sql": sql}).json()
            assert told["valid"] is False, sql
            ran = client.post("/v1/statements", json={"sql": sql}).json()
            assert {one["code"] for one in told["statements"][0]["problems"]} == {ran["code"]}, sql


def test_no_reading_operation_shows_what_is_hidden(fresh: Any, admin: TestClient, sign_in: Sign) -> None:
    """Every GET of the contract, for a role with nothing, over objects whose names are canaries."""
    names = {"database": "canary_d", "store": "canary_k", "secret": "canary_s", "role": "canary_r"}
    bodies: dict[str, Any] = {
        "databases/canary_d": {"comment": "canary"},
        "stores/canary_k": {"kafka": {"bootstrap_servers": "canary:9092"}},
        "stores/canary_k/entities/canary_e": {"kafka": {"partitions": 1, "replicas": 1}},
        "secrets/canary_s": {"value": "canary"},
        "roles/canary_r": {},
        "users/canary_u": {},
        "service-accounts/canary_a": {},
        "relations/canary_d.public.canary_t": {
            "columns": [{"name": "canary", "type": "BIGINT"}],
            "store": "canary_k",
            "topic": "canary_e",
            "value_format": "json",
        },
        "queries/canary_q": {
            "sql": "CREATE STREAM canary_o WITH ('store' = 'canary_k') AS SELECT * FROM canary_t",
            "database": "canary_d",
        },
    }
    for path, body in bodies.items():
        answer = admin.put(f"/v1/{path}", json=body)
        assert answer.status_code == 201, answer.text
    names |= {
        "schema": "public",
        "entity": "canary_e",
        "relation": "canary_d.public.canary_t",
        "query": "canary_q",
        "user": "canary_u",
        "service_account": "canary_a",
    }
    client, asked = sign_in("nobody"), 0
    for template, item in client.get("/openapi.json").json()["paths"].items():
        if "get" not in item or template.endswith(("/rows", "/records")):
            continue
        path = re.sub(r"\{(\w+)\}", lambda m: names.get(m[1], "canary_x"), template)
        params = {"on": "store", "name": "canary_k"} if path.endswith("/permissions") else {}
        if path == "/v1/events":
            params = {"tail": "200", "follow": "false"}
        text = client.get(path, params=params).text.replace(path, "")
        # What the caller wrote is repeated in the refusal.
        for name in sorted({*names.values(), "canary_x"}, key=len, reverse=True):
            if name in path or name in params.values():
                text = text.replace(name, "")
        assert "canary" not in text, (path, text)
        asked += 1
    assert asked > 40


def test_a_savepoint_belongs_to_its_query_not_to_the_name(
    fresh: Any, admin: TestClient, sign_in: Sign
) -> None:
    """Else who makes a query of a dropped one's name reads that one's state."""
    body = {"sql": f"CREATE STREAM o AS SELECT * FROM {STREAM}", "database": "demo", "store": "k"}
    before, after = (sign_in(role, *READ, scope="admin") for role in ("before", "after"))
    assert admin.put("/v1/queries/q", json={**body, "owner": "before"}).status_code == 201
    operator = sign_in("operator", on("operate", "query", "q"))
    watch = sign_in("watch", on("operate", "query"))
    with fresh.units() as unit:
        query = unit.queries.find("q")
        meta = replace(query.meta, id="svp_1", owner="before")
        unit.savepoints.add(
            Savepoint(
                meta=meta,
                name="sp",
                query="q",
                query_id=query.meta.id,
                query_generation=1,
                sql=query.sql,
                job=query.job,
                checkpoint_generation=1,
            )
        )
        unit.commit()

    def seen(client: TestClient) -> tuple[int, int]:
        listed = client.get("/v1/savepoints").json()["items"]
        return client.get("/v1/savepoints/sp").status_code, len(listed)

    assert [seen(one) for one in (before, after, operator, watch)] == [(200, 1), (404, 0), (200, 1), (200, 1)]
    assert admin.delete("/v1/queries/q").status_code in (202, 204)
    assert admin.put("/v1/queries/q", json={**body, "owner": "after"}).status_code == 201
    assert [seen(one) for one in (before, after, operator, watch)] == [(200, 1), (404, 0), (404, 0), (200, 1)]
    assert after.delete("/v1/savepoints/sp").status_code == 404
    assert admin.put("/v1/service-accounts/before_admin", json={"roles": ["public"]}).status_code == 200
    refused = admin.delete("/v1/roles/before")
    assert (refused.status_code, "savepoint sp" in refused.text) == (409, True)


def test_a_query_starts_with_the_rights_of_its_owner(fresh: Any, admin: TestClient, sign_in: Sign) -> None:
    """A privilege that was revoked fails the query at its next start, with what is missing."""
    from leatstream.services.queries.reconcile.reconciler import reconcile_all

    grants = (
        *READ,
        on("create_relation", "schema", "demo.public"),
        on("create_query", "organization"),
        on("usage", "store", "k"),
        on("create_entity", "store", "k"),
    )
    client = sign_in("runner", *grants)
    assert run(client, f"CREATE STREAM made AS SELECT userid FROM {STREAM}").status_code == 200
    admin.put("/v1/roles/runner", json={"grants": [g for g in grants if g["privilege"] != "select"]})
    for _ in range(3):
        reconcile_all(fresh.env)
    status = admin.get("/v1/queries/made").json()["status"]
    assert (status["state"], status["error"]["code"]) == ("failed", "permission-denied")
    assert "SELECT on relation demo.public.pageviews" in status["error"]["detail"]
    admin.put("/v1/roles/runner", json={"grants": list(grants)})
    assert admin.post("/v1/queries/made:restart", json={}).status_code == 202
    reconcile_all(fresh.env)
    assert admin.get("/v1/queries/made").json()["status"]["state"] in ("pending", "starting")


def test_old_events_are_deleted_and_the_chain_holds(fresh: Any, admin: TestClient) -> None:
    from dataclasses import replace

    from leatstream.services.nouns.audit import forget_old_events

    for number in range(3):
        admin.put(f"/v1/databases/n{number}", json={})
    forget_old_events(fresh.env)
    before = len(admin.get("/v1/audit-events", params={"page_size": 1000}).json()["items"])
    assert before >= 6
    fresh.env.settings = replace(fresh.env.settings, keep_events=0.0)
    forget_old_events(fresh.env)
    admin.put("/v1/databases/last", json={})
    with fresh.units(write=False) as unit:
        assert len(unit.audit.page()) == 3
        assert unit.audit.broken() is None


def test_an_owner_changes_its_function(admin: TestClient, sign_in: Sign) -> None:
    """Kinds without MODIFY are changed by their owner."""
    code = "def grade(x: int) -> int:\n    return x\n"
    assert admin.put("/v1/function-sources/f", json={"file": "f.py", "content": code}).status_code == 201
    client = sign_in("coders", on("usage", "function_source", "f"), on("create_function", "organization"))
    body = {
        "arguments": [{"name": "x", "type": "BIGINT"}],
        "returns": "BIGINT",
        "source": "f",
        "handler": "grade",
    }
    made = client.put("/v1/functions/grade", json=body)
    assert made.status_code == 201, made.text
    assert client.put("/v1/functions/grade", json={**body, "timeout_seconds": 5}).status_code == 200
    other = sign_in("users", on("usage", "function", "grade"), on("usage", "function_source", "f"))
    assert other.put("/v1/functions/grade", json={**body, "timeout_seconds": 6}).status_code == 403


def test_metrics_need_monitor(sign_in: Sign) -> None:
    assert sign_in("blind", *READ).get("/metrics").status_code == 403
    assert sign_in("watching", on("monitor", "organization")).get("/metrics").status_code == 200


def test_a_topic_that_was_there_before_is_dropped_only_with_drop_entity(
    admin: TestClient, sign_in: Sign
) -> None:
    """Deleting a topic that existed before the query needs the privilege; its own topic does not."""
    admin.put("/v1/stores/k/entities/found", json={"kafka": {"partitions": 1, "replicas": 1}})
    grants = (
        *READ,
        on("create_relation", "schema", "demo.public"),
        on("create_query", "organization"),
        *(on(p, "store", "k") for p in ("usage", "create_entity", "read_entity", "write_entity")),
    )
    client = sign_in("tidy", *grants)
    for name in ("found", "fresh"):
        assert run(client, f"CREATE STREAM {name} AS SELECT userid FROM {STREAM}").status_code == 200
    answers = [
        client.delete(f"/v1/queries/{name}", params={"delete_entity": "true"}) for name in ("found", "fresh")
    ]
    assert answers[0].status_code == 403
    assert "DROP_ENTITY" in answers[0].json()["detail"]
    assert answers[1].status_code in (202, 204)


def test_a_lost_topic_is_made_again_only_by_who_may(fresh: Any, admin: TestClient, sign_in: Sign) -> None:
    """The store is asked for nothing before it is known that the relation may be changed."""
    body = {
        "columns": [{"name": "viewtime", "type": "BIGINT"}, {"name": "userid", "type": "VARCHAR"}],
        "store": "k",
        "value_format": "json",
        "properties": {"topic.partitions": "1", "topic.replicas": "1"},
    }
    store = on("usage", "store", "k")
    clients = {
        "sees": sign_in("sees", *READ, store, on("create_entity", "store", "k")),
        "modifies": sign_in("modifies", *READ, store, on("modify", "relation", STREAM)),
    }
    del fresh.cluster.entities["pageviews"]
    for who, client in clients.items():
        answer = client.put(f"/v1/relations/{STREAM}", json=body)
        assert (answer.status_code, code_of(answer)) == (403, "permission-denied"), who
        assert "pageviews" not in fresh.cluster.entities, who
    both = sign_in("both", *READ, store, on("create_entity", "store", "k"), on("modify", "relation", STREAM))
    assert both.put(f"/v1/relations/{STREAM}", json=body).status_code == 200
    assert "pageviews" in fresh.cluster.entities


def test_the_list_of_roles_shows_which_are_built_in(admin: TestClient) -> None:
    """They need no grants; those of public are counted like a role of its own."""
    for role in ("public", "analysts"):
        assert admin.put(f"/v1/roles/{role}", json={"grants": [on("monitor", "organization")]}).is_success
    answer = admin.post("/v1/statements", json={"sql": "LIST ROLES;"}).json()["results"][0]
    (name, grants) = (["name", "inherits", "grants"].index(one) for one in ("name", "grants"))
    shown = {row[name]: row[grants] for row in answer["rows"]}
    built_in = {role: "built in" for role in BUILT_IN if role != "public"}
    assert shown == {**built_in, "public": "1", "analysts": "1"}


def test_a_hidden_topic_is_no_hint(admin: TestClient, sign_in: Sign) -> None:
    """Who declares a stream over a topic that is not there learns only the names that it may see."""
    for name in ("orders_secret", "orders_mine"):
        admin.put(f"/v1/stores/k/entities/{name}", json={"kafka": {"partitions": 1, "replicas": 1}})
    client = sign_in(
        "declares",
        on("usage", "database", "demo"),
        on("usage", "schema", "demo.public"),
        on("create_relation", "schema", "demo.public"),
        on("usage", "store", "k"),
        on("read_entity", "store", "k", entities="orders_m*"),
    )
    for near, shown in (("orders_secre", "secret"), ("orders_min", "orders_mine")):
        sql = f"CREATE STREAM x (n BIGINT) WITH ('topic' = '{near}', 'value.format' = 'json')"
        answer = run(client, sql)
        assert answer.status_code in (403, 422)
        assert (shown in answer.text) == (shown == "orders_mine"), answer.text


def test_a_query_over_a_relation_needs_no_privilege_on_its_store(admin: TestClient, sign_in: Sign) -> None:
    admin.put("/v1/stores/own", json={"kafka": {"bootstrap_servers": "localhost:9092"}})
    client = sign_in(
        "elsewhere",
        *READ,
        on("create_relation", "schema", "demo.public"),
        on("create_query", "organization"),
        on("usage", "store", "own"),
        on("create_entity", "store", "own"),
    )
    answer = run(client, f"CREATE STREAM taken WITH ('store' = 'own') AS SELECT userid FROM {STREAM}")
    assert answer.status_code == 200, answer.text
