"""What the console does, the command line does too: each operation that it calls has a command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Result, Service

    Leat = Callable[..., Result]

CONSOLE = Path(__file__).parents[3] / "api/console/src"
CALL = re.compile(r"\.(GET|PUT|POST|PATCH|DELETE)\(\s*\"(/[^\"]+)\"")
COMMANDS = {
    "GET /v1/applications": "application list",
    "GET /v1/applications/{application}": "application get a",
    "PUT /v1/applications/{application}": "application apply a --no-wait -f FILE",
    "DELETE /v1/applications/{application}": "application delete a --no-wait",
    "GET /v1/applications/{application}/logs": "application logs a",
    "POST /v1/applications/{application}:restart": "application restart a",
    "GET /v1/audit-events": "audit",
    "GET /v1/catalog:export": "export",
    "GET /v1/databases": "database list",
    "GET /v1/databases/{database}/schemas": "schema list d",
    "GET /v1/drivers": "driver list",
    "GET /v1/function-sources/{function_source}": "function-source get f",
    "PUT /v1/function-sources/{function_source}": "function-source apply f -f FILE",
    "DELETE /v1/function-sources/{function_source}": "function-source delete f",
    "GET /v1/functions": "function list",
    "GET /v1/functions/{function}": "function get f",
    "DELETE /v1/functions/{function}": "function delete f",
    "GET /v1/lineage": "lineage",
    "GET /v1/me": "whoami",
    "GET /v1/queries": "query list",
    "GET /v1/queries/{query}": "query get q",
    "GET /v1/queries/{query}/events": "query events q",
    "GET /v1/queries/{query}/history": "query history q",
    "GET /v1/queries/{query}/progress": "query progress q",
    "PATCH /v1/queries/{query}": "query stop q",
    "POST /v1/queries/{query}:replace": "query replace q FILE",
    "POST /v1/queries/{query}:restart": "query restart q",
    "POST /v1/queries/{query}:rollback": "query rollback q",
    "POST /v1/queries/{query}:savepoint": "query stop q --savepoint s --no-wait",
    "GET /v1/relations": "relation list",
    "GET /v1/relations/{relation}": "relation get d.s.r",
    "GET /v1/relations/{relation}/sample": "relation sample d.s.r",
    "GET /v1/schema-registries": "schema-registry list",
    "GET /v1/schema-registries/{registry}": "schema-registry get sr",
    "DELETE /v1/schema-registries/{registry}": "schema-registry delete sr",
    "POST /v1/schema-registries/{registry}:test": "schema-registry test sr",
    "GET /v1/schema-registries/{registry}/subjects": "schema-registry subjects sr",
    "GET /v1/schema-registries/{registry}/subjects/{subject}/versions": "schema-registry versions sr s",
    "GET /v1/schema-registries/{registry}/subjects/{subject}/versions/{version}": (
        "schema-registry subject sr s"
    ),
    "GET /v1/roles": "role list",
    "GET /v1/roles/{role}": "role get r",
    "PUT /v1/roles/{role}": "role create r",
    "DELETE /v1/roles/{role}": "role delete r",
    "PUT /v1/roles/{role}/grants/{privilege}/{on}": "role grant r select relation:d.s.r",
    "DELETE /v1/roles/{role}/grants/{privilege}/{on}": "role revoke r select relation:d.s.r",
    "PUT /v1/roles/{role}/members/{member_kind}/{member}": "role add-member r user:ann@example.com",
    "DELETE /v1/roles/{role}/members/{member_kind}/{member}": "role remove-member r role:b",
    "GET /v1/secrets": "secret list",
    "POST /v1/secrets/{secret}:apply": "secret apply s",
    "GET /v1/secrets/{secret}": "secret get s",
    "DELETE /v1/secrets/{secret}": "secret delete s",
    "GET /v1/server": "server",
    "GET /v1/server/capabilities": "capabilities",
    "GET /v1/service-accounts": "service-account list",
    "PUT /v1/service-accounts/{service_account}": "service-account create s",
    "DELETE /v1/service-accounts/{service_account}": "service-account delete s",
    "POST /v1/statements": "sql SELECT",
    "POST /v1/statements:validate": "sql --dry-run SELECT",
    "GET /v1/stores": "store list",
    "GET /v1/stores/{store}": "store get k",
    "PUT /v1/stores/{store}": "store apply k -f FILE",
    "GET /v1/stores/{store}/entities": "entity list k",
    "GET /v1/stores/{store}/entities/{entity}": "entity get k/t",
    "POST /v1/stores/{store}:test": "store test k",
    "GET /v1/tokens": "api-token list",
    "POST /v1/tokens/{token}": "api-token create t",
    "POST /v1/tokens/{token}:rotate": "api-token rotate t",
    "DELETE /v1/tokens/{token}": "api-token delete t",
    "GET /v1/users": "user list",
    "PUT /v1/users/{user}": "user create u",
    "DELETE /v1/users/{user}": "user delete u",
}


def calls() -> set[str]:
    """The operations that the console calls."""
    texts = (path.read_text(encoding="utf-8") for path in CONSOLE.rglob("*.ts*"))
    return {f"{method} {path}" for text in texts for method, path in CALL.findall(text)}


def test_each_call_of_the_console_has_a_command() -> None:
    assert calls() == set(COMMANDS)


@pytest.mark.parametrize("operation", COMMANDS)
def test_the_command_sends_it(service: Service, leat: Leat, operation: str, tmp_path: Path) -> None:
    method, _, path = operation.partition(" ")
    file = tmp_path / "f.py"
    file.write_text("{}\n")
    service.answer("PUT", "/v1/stores/k", {"name": "k", "status": {"state": "ready"}})
    service.answer("GET", "/v1/queries/q", {"name": "q", "status": {"job": {"attempt": 1}}})
    leat(*COMMANDS[operation].replace("FILE", str(file)).split())
    form = re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)))
    sent = [(one.method, one.url.raw_path.decode().partition("?")[0]) for one in service.requests]
    assert any(verb == method and form.fullmatch(where) for verb, where in sent), sent


def test_a_grant_says_what_it_is_on(service: Service, leat: Leat) -> None:
    service.answer("PUT", "/v1/roles/analyst/grants/select/relation", {})
    done = leat("role", "grant", "analyst", "SELECT", "relation:demo.public.pageviews", "--with-grant-option")
    assert (done.status, done.err) == (
        0,
        "Granted SELECT on relation demo.public.pageviews to role analyst.\n",
    )
    assert dict(service.requests[-1].url.params) == {"name": "demo.public.pageviews"}
    assert service.last_body == {"grant_option": True}


def test_a_grant_may_be_on_all_of_a_kind(service: Service, leat: Leat) -> None:
    service.answer("PUT", "/v1/roles/analyst/grants/select/relation", {})
    done = leat("role", "grant", "analyst", "select", "relation", "--in-schema", "demo.shop")
    assert done.err == "Granted SELECT on every relation in schema demo.shop to role analyst.\n"
    assert dict(service.requests[-1].url.params) == {"in_schema": "demo.shop"}


def test_a_disabled_account_keeps_the_rest_and_is_not_written_over(service: Service, leat: Leat) -> None:
    account = {
        "name": "ci",
        "comment": "Plans",
        "default_role": "reader",
        "roles": ["reader"],
        "generation": 4,
    }
    service.answer("GET", "/v1/service-accounts/ci", account)
    service.answer("PUT", "/v1/service-accounts/ci", account)
    assert leat("service-account", "disable", "ci").err == "Tokens of ci are refused.\n"
    assert service.last_body == {"comment": "Plans", "default_role": "reader", "disabled": True}
    assert service.requests[-1].headers["if-match"] == '"4"'
    leat("service-account", "enable", "ci")
    assert service.last_body["disabled"] is False


@pytest.mark.parametrize(
    ("file", "content", "sent"), [("f.py", b"a = 1\r\n", "a = 1\n"), ("f.jar", b"\x00\xff", "AP8=")]
)
def test_the_code_of_a_function_is_that_of_a_file(
    service: Service, leat: Leat, tmp_path: Path, file: str, content: bytes, sent: str
) -> None:
    (tmp_path / file).write_bytes(content)
    service.answer("PUT", "/v1/function-sources/scores", {"name": "scores"})
    done = leat("function-source", "apply", "scores", "-f", str(tmp_path / file), "--no-restart")
    assert done.err == f"Function source scores has the code of {file}.\n"
    assert service.last_body == {"file": file, "content": sent, "comment": None, "restart_queries": False}


def test_an_application_restarts_what_has_failed(service: Service, leat: Leat) -> None:
    service.answer("POST", "/v1/applications/shop:restart", {"name": "shop"}, 202)
    assert leat("application", "restart", "shop", "--only-failed").status == 0
    assert dict(service.requests[-1].url.params) == {"only_failed": "true"}


def test_an_address_of_mail_needs_no_quotes(service: Service, leat: Leat) -> None:
    for path in ("users/%22ann%40example.com%22", "roles/analyst/members/user/%22ann%40example.com%22"):
        service.answer("PUT", f"/v1/{path}", {"name": "ann@example.com"})
    assert leat("user", "create", "ann@example.com").status == 0
    assert leat("role", "add-member", "analyst", "user:ann@example.com").status == 0


def test_a_member_has_a_kind(service: Service, leat: Leat) -> None:
    refused = leat("role", "add-member", "analyst", "ann")
    assert (refused.status, service.requests) == (2, [])
    assert "KIND:NAME" in refused.err


@pytest.mark.parametrize("noun", ["user", "service-account"])
def test_accounts_are_created_and_never_replaced(service: Service, leat: Leat, noun: str) -> None:
    service.answer("PUT", f"/v1/{noun}s/ci", {"name": "ci"})
    assert leat(noun, "create", "ci", "--role", "reader", "--role", "writer").status == 0
    assert service.last_body == {"roles": ["reader", "writer"], "default_role": None, "comment": None}
    assert service.requests[-1].headers["if-none-match"] == "*"


@pytest.mark.parametrize(("state", "warned"), [("ready", False), ("errored", True)])
def test_a_store_has_the_settings_of_a_file(
    service: Service, leat: Leat, tmp_path: Path, state: str, warned: bool
) -> None:
    settings = {"kafka": {"bootstrap_servers": "broker:9092", "sasl": {"mechanism": "plain"}}}
    (tmp_path / "k.json").write_text(json.dumps(settings))
    service.answer("PUT", "/v1/stores/k", {"name": "k", "status": {"state": state}})
    done = leat("store", "apply", "k", "-f", str(tmp_path / "k.json"), "-o", "json")
    assert (done.status, json.loads(done.out)["status"]["state"]) == (0, state)
    assert service.last_body == settings
    assert ("warning: Store k is kept" in done.err) is warned


@pytest.mark.parametrize("text", ['{"kafka": {"sasl": {"password": "hunter2"', '["hunter2"]', "'hunter2'"])
def test_settings_that_are_no_object_are_refused_and_not_shown(
    service: Service, leat: Leat, tmp_path: Path, text: str
) -> None:
    (tmp_path / "k.json").write_text(text)
    refused = leat("store", "apply", "k", "-f", str(tmp_path / "k.json"))
    assert (refused.status, service.requests) == (2, [])
    assert "JSON" in refused.err
    assert "hunter2" not in refused.out + refused.err


@pytest.mark.parametrize(("state", "status"), [("ready", 0), ("unreachable", 1)])
def test_a_tested_store_decides_the_exit_status(
    service: Service, leat: Leat, state: str, status: int
) -> None:
    service.answer("POST", "/v1/stores/k:test", {"name": "k", "status": {"state": state}})
    done = leat("store", "test", "k", "-o", "json")
    assert (done.status, json.loads(done.out)["status"]["state"]) == (status, state)


def test_progress_shows_the_lag_of_all_sources(service: Service, leat: Leat) -> None:
    metrics = {"input_rows_per_second": 12.5, "sources": [{"lag": 3}, {"lag": 4}, {"lag": None}]}
    item = {"at": "2026-01-31T12:00:00Z", "attempt": 1, "metrics": metrics}
    service.answer("GET", "/v1/queries/q/progress", {"items": [item]})
    assert leat("query", "progress", "q", "-o", "csv").out.splitlines() == [
        "at,attempt,in/s,out/s,lag",
        "2026-01-31T12:00:00Z,1,12.5,,7",
    ]
    assert json.loads(leat("query", "progress", "q", "-o", "json").out)["items"] == [item]


def test_progress_goes_back_as_far_as_asked(service: Service, leat: Leat) -> None:
    service.answer("GET", "/v1/queries/q/progress", {"items": []})
    leat("query", "progress", "q")
    leat("query", "progress", "q", "--since", "2026-01-31T09:00:00Z")
    leat("query", "progress", "q", "--since", "2026-01-31T09:00:00Z", "--limit", "3")
    asked = [dict(one.url.params) for one in service.requests]
    since = {"since": "2026-01-31T09:00:00Z"}
    assert asked == [{"limit": "20"}, {"limit": "600", **since}, {"limit": "3", **since}]


@pytest.mark.parametrize(("state", "status"), [("ready", 0), ("errored", 1)])
def test_settings_are_tried_before_a_store_is_created(
    service: Service, leat: Leat, tmp_path: Path, state: str, status: int
) -> None:
    settings = {"kafka": {"bootstrap_servers": "broker:9092", "sasl": {"password": "hunter2"}}}
    (tmp_path / "k.json").write_text(json.dumps(settings))
    service.answer("PUT", "/v1/stores/k", {"name": "k", "status": {"state": state}})
    done = leat("store", "test", "k", "-f", str(tmp_path / "k.json"), "-o", "json")
    assert (done.status, json.loads(done.out)["status"]["state"]) == (status, state)
    assert "hunter2" not in done.out + done.err
    (sent,) = service.requests
    assert (dict(sent.url.params), service.last_body) == ({"dry_run": "true"}, settings)
