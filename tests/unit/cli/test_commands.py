from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from leatstream.cli.client import Client, Unreachable
from leatstream.cli.connection import Connection
from leatstream.connectors.capabilities import Capabilities
from leatstream.connectors.capability_page import matrix
from leatstream.connectors.registry import PLANNED, connector_classes
from leatstream.errors import AccessError
from leatstream.model.bounds import LOG_LINES
from leatstream.rest.streams import EVENTS, failure

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Result, Service

    Leat = Callable[..., Result]

STORE = {
    "name": "kafka_store",
    "kind": "kafka",
    "status": {"state": "ready", "message": None},
    "owner": "admin",
}


def query(state: str, attempt: int = 1, **status: Any) -> dict[str, Any]:
    job = {"attempt": attempt, "mode": "realtime"}
    return {"name": "q", "sink": "demo.public.s", "status": {"state": state, "job": job, **status}}


def test_list_shows_a_table(service: Service, leat: Leat) -> None:
    service.answer("GET", "/v1/stores", {"items": [STORE], "next_page_token": None})
    result = leat("store", "list")
    assert result.status == 0
    assert result.out.splitlines()[0].split() == ["name", "kind", "state", "message", "owner"]
    assert result.out.splitlines()[2].split() == ["kafka_store", "kafka", "ready", "admin"]


def test_list_follows_pages_and_sends_the_token(service: Service, leat: Leat) -> None:
    service.answer("GET", "/v1/stores", {"items": [STORE], "next_page_token": "t1"})
    service.answer("GET", "/v1/stores", {"items": [{**STORE, "name": "b"}], "next_page_token": None})
    result = leat("store", "list", "-o", "json")
    assert [item["name"] for item in json.loads(result.out)["items"]] == ["kafka_store", "b"]
    assert service.requests[1].url.params["page_token"] == "t1"
    assert service.requests[0].headers["authorization"] == "Bearer leat_secret"


def test_get_json_is_the_answer_unchanged(service: Service, leat: Leat) -> None:
    service.answer("GET", "/v1/stores/kafka_store", STORE)
    assert json.loads(leat("store", "get", "kafka_store", "-o", "json").out) == STORE


@pytest.mark.parametrize(
    ("argv", "path"),
    [
        (("database", "get", '"Ünï /x"'), "/v1/databases/%22%C3%9Cn%C3%AF%20%2Fx%22"),
        (("schema", "get", 'Demo."P.q"'), "/v1/databases/demo/schemas/%22P.q%22"),
        (("entity", "get", "s/a.b-c"), "/v1/stores/s/entities/a.b-c"),
        (("entity", "get", '"a/b"/t'), "/v1/stores/%22a%2Fb%22/entities/t"),
        (("relation", "get", "d.s.r"), "/v1/relations/d.s.r"),
    ],
)
def test_names_become_path_segments(service: Service, leat: Leat, argv: tuple[str, ...], path: str) -> None:
    service.answer("GET", path, {"name": "x"})
    assert leat(*argv).status == 0, service.requests[-1].url.raw_path


@pytest.mark.parametrize(
    "argv", [("schema", "get", "demo"), ("entity", "get", "topic"), ("print", "a/b", "-o", "csv")]
)
def test_wrong_usage(service: Service, leat: Leat, argv: tuple[str, ...]) -> None:
    assert leat(*argv).status == 2
    assert not service.requests


@pytest.mark.parametrize(
    ("argv", "like"),
    [
        (("sql", "--url", "http://h", "LIST STORES"), "leat --url URL sql"),
        (("store", "list", "--url=http://h"), "leat --url URL store list"),
    ],
)
def test_the_server_after_the_command_is_told_where_it_stands(
    service: Service, leat: Leat, argv: tuple[str, ...], like: str
) -> None:
    result = leat(*argv)
    told = " ".join(result.err.replace("│", " ").split())
    assert (result.status, service.requests) == (2, [])
    assert f"No such option: --url. It stands before the command: {like} …" in told


def test_help_says_where_the_server_stands(leat: Leat) -> None:
    told = " ".join(leat("--help").out.split())
    assert "leat --url URL sql …" in told


def test_another_wrong_option_is_told_as_ever(leat: Leat) -> None:
    assert "before the command" not in leat("sql", "--urls", "x").err


def test_missing_object_ends_with_3(service: Service, leat: Leat) -> None:
    result = leat("store", "get", "nope")
    assert result.status == 3
    assert "error[not-found]" in result.err
    assert result.out == ""


def test_json_output_gives_the_problem_as_json(service: Service, leat: Leat) -> None:
    assert json.loads(leat("store", "get", "nope", "-o", "json").err)["code"] == "not-found"


def test_delete(service: Service, leat: Leat) -> None:
    service.answer("DELETE", "/v1/stores/s", status=204)
    assert leat("store", "delete", "s", "--yes").status == 0


def test_no_server_ends_with_69(leat: Leat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LEATSTREAM_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    result = leat("store", "list")
    assert result.status == 69
    assert "leat dev" in result.err


def test_unreachable_server_is_named() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("[Errno 111] Connection refused", request=request)

    client = Client(Connection("http://h:1", None, "--url"), httpx2.MockTransport(refuse))
    told = "http://h:1 \\(--url\\): Connection refused. Check the address, and that the server runs"
    with pytest.raises(Unreachable, match=told):
        client.call("GET", "/v1/server")


@pytest.mark.parametrize(
    ("url", "verified"), [("http://h", False), ("http://127.0.0.1:1", False), ("https://127.0.0.1:1", True)]
)
def test_authorities_are_read_for_tls_alone(
    monkeypatch: pytest.MonkeyPatch, url: str, verified: bool
) -> None:
    """It takes longer than most commands."""
    given: list[bool] = []
    whole = httpx2.Client
    monkeypatch.setattr(httpx2, "Client", lambda **more: given.append(more["verify"]) or whole(**more))
    Client(Connection(url, None, "--url"))
    assert given == [verified]


def test_sql_without_a_statement_is_wrong_usage(service: Service, leat: Leat) -> None:
    done = leat("sql", " ")
    assert (done.status, "the text of the statements is empty" in done.err) == (2, True)


def test_answer_that_is_no_problem_document_is_told_anyway(service: Service, leat: Leat) -> None:
    service.answers[("GET", "/v1/server")] = [httpx2.Response(502, text="<html>Bad gateway")]
    service.answers[("GET", "/v1/stores")] = service.answers[("GET", "/v1/server")]
    result = leat("store", "list")
    assert result.status == 1
    assert "Bad gateway" in result.err


def test_query_stop_patches_and_waits(service: Service, leat: Leat) -> None:
    service.answer("PATCH", "/v1/queries/q", query("stopping"))
    service.answer("GET", "/v1/queries/q", query("stopping"))
    service.answer("GET", "/v1/queries/q", query("stopped"))
    assert leat("query", "stop", "q").status == 0
    patch = service.requests[0]
    assert json.loads(patch.content) == {"desired_state": "stopped"}
    assert patch.headers["content-type"] == "application/merge-patch+json"
    assert service.requests[1].url.params["wait_for"] == "stopped,failed"


def test_query_start_that_fails_says_why(service: Service, leat: Leat) -> None:
    service.answer("PATCH", "/v1/queries/q", query("starting"))
    service.answer("GET", "/v1/queries/q", query("failed", error={"detail": "topic is gone"}))
    result = leat("query", "start", "q")
    assert result.status == 1
    assert "topic is gone" in result.err


def test_query_start_tries_a_failed_query_again(service: Service, leat: Leat) -> None:
    """It is wanted running already, so that wanting it did nothing and the old failure was told."""
    service.answer("PATCH", "/v1/queries/q", query("failed", error={"detail": "topic is gone"}))
    service.answer("POST", "/v1/queries/q:restart", query("starting"), status=202)
    service.answer("GET", "/v1/queries/q", query("starting", 1))
    service.answer("GET", "/v1/queries/q", query("running", 2))
    result = leat("query", "start", "q")
    assert (result.status, result.err) == (0, "Query q is running.\n")
    assert [r.method for r in service.requests[:2]] == ["PATCH", "POST"]


def test_query_wait_ends_with_7(service: Service, leat: Leat) -> None:
    service.answer("PATCH", "/v1/queries/q", query("starting"))
    service.answer("GET", "/v1/queries/q", query("starting"))
    assert leat("query", "start", "q", "--timeout", "0").status == 7


def test_query_restart_waits_for_a_new_attempt(service: Service, leat: Leat) -> None:
    service.answer("POST", "/v1/queries/q:restart", query("starting"), status=202)
    for attempt in (1, 1, 2):
        service.answer("GET", "/v1/queries/q", query("running", attempt))
    assert leat("query", "restart", "q").status == 0
    assert len(service.requests) == 4


def test_query_delete_waits_until_it_is_gone(service: Service, leat: Leat) -> None:
    service.answer("DELETE", "/v1/queries/q", query("stopping"), status=202)
    service.answer("GET", "/v1/queries/q", query("stopping"))
    service.answer("GET", "/v1/queries/q", {"code": "not-found", "status": 404}, status=404)
    assert leat("query", "delete", "q", "--yes", "--delete-entity").status == 0
    assert dict(service.requests[0].url.params) == {"delete_entity": "true"}


def test_query_logs(service: Service, leat: Leat) -> None:
    service.answer("GET", "/v1/queries/q/logs", {"lines": ["one", "two\x1b[0m"]})
    assert leat("query", "logs", "q").out == "one\ntwo\\x1b[0m\n"


def test_query_logs_as_they_come(service: Service, leat: Leat) -> None:
    events = ": idle\n\n" + "".join(
        f"event: log\ndata: {json.dumps({'line': line})}\n\n" for line in ("one", "two\x1b[0m")
    )
    answer = httpx2.Response(200, text=events + "event: end\ndata: {}\n\n")
    service.answers["GET", "/v1/queries/q/logs:follow"] = [answer]
    assert leat("query", "logs", "q", "--follow", "--tail", "7").out == "one\ntwo\\x1b[0m\n"
    assert dict(service.requests[0].url.params) == {"tail": "7"}


def test_query_logs_end_with_their_token(service: Service, leat: Leat) -> None:
    ended = AccessError("unauthenticated", "The token was revoked.", hint="Ask for another one.")
    text = f"event: log\ndata: {json.dumps({'line': 'one'})}\n\n" + failure(ended, EVENTS).decode()
    service.answers["GET", "/v1/queries/q/logs:follow"] = [httpx2.Response(200, text=text)]
    done = leat("query", "logs", "q", "--follow")
    assert (done.out, done.status) == ("one\n", 4)
    assert "The token was revoked." in done.err
    assert "Ask for another one." in done.err


def test_no_more_log_lines_are_asked_for_than_are_kept(service: Service, leat: Leat) -> None:
    assert leat("query", "logs", "q", "--tail", str(LOG_LINES + 1)).status == 2
    assert service.requests == []


def test_query_events_and_history(service: Service, leat: Leat) -> None:
    event = {
        "at": "2026-01-01T00:00:00Z",
        "state": "failed",
        "attempt": 2,
        "generation": 1,
        "reason": "gone\x1b",
    }
    service.answer("GET", "/v1/queries/q/events", {"items": [event]})
    told = leat("query", "events", "q", "--limit", "7").out
    assert "failed" in told
    assert "gone\\x1b" in told
    assert dict(service.requests[0].url.params) == {"limit": "7"}
    version = {"generation": 1, "at": "2026-01-01T00:00:00Z", "by": "ann", "change": None, "sql": "SELECT 1"}
    service.answer("GET", "/v1/queries/q/history", {"items": [version]})
    assert json.loads(leat("query", "history", "q", "-o", "ndjson").out) == version


def selected(**more: Any) -> dict[str, Any]:
    columns = [{"name": "who", "type": "VARCHAR"}, {"name": "n", "type": "BIGINT"}]
    thing = {"noun": "statement", "name": "stm_1", "changelog": False, **more}
    result = {"kind": "select", "status": "running", "object": thing, "columns": columns}
    return {"results": [result | {"rows": "/v1/statements/stm_1/rows"}], "context": {}}


ROW_LINES = """
{"op":"+I","row":{"who":"a\\nb","n":12345678901234567890.10}}

{"op":"-D","row":{"who":"c"}}
"""


def test_rows_of_a_select_are_written_as_they_come(service: Service, leat: Leat) -> None:
    path = ("GET", "/v1/statements/stm_1/rows")
    end = '{"end":{"reason":"limit","rows":2}}'
    service.answers[path] = [httpx2.Response(200, text=ROW_LINES + end + "\n")]
    service.answer("POST", "/v1/statements", selected(changelog=True))
    service.answer("POST", "/v1/statements", selected())
    result = leat("sql", "-e", "SELECT 1")
    assert (result.status, "2 rows: limit reached." in result.err) == (0, True)
    assert [line.split() for line in result.out.splitlines()] == [
        ["op", "|", "who", "|", "n"],
        ["--", "|", "----", "|", "-----------------------"],
        ["+I", "|", "a\\nb", "|", "12345678901234567890.10"],
        ["-D", "|", "c", "|"],
    ]
    assert leat("sql", "-e", "SELECT 1", "-o", "csv").out == 'who,n\n"a\nb",12345678901234567890.10\nc,\n'
    # Lines are the service's own: no number is read and written anew.
    for form in ("ndjson", "json"):
        assert leat("sql", "-e", "SELECT 1", "-o", form).out == ROW_LINES.strip().replace("\n\n", "\n") + "\n"


def test_a_select_that_fails_says_so_after_its_rows(service: Service, leat: Leat) -> None:
    failure = '{"error":{"code":"undecodable-record","detail":"offset 7","errors":[]}}'
    service.answers[("GET", "/v1/statements/stm_1/rows")] = [
        httpx2.Response(200, text=ROW_LINES + failure + "\n")
    ]
    service.answer("POST", "/v1/statements", selected())
    result = leat("sql", "-e", "SELECT 1", "-o", "ndjson")
    assert result.status == 1
    assert "offset 7" in result.err
    assert len(result.out.splitlines()) == 2


def record(offset: int) -> dict[str, Any]:
    return {"partition": 0, "offset": offset, "timestamp": 1000, "key": "k", "value": {"a": 1}, "headers": []}


def test_print_shows_records(service: Service, leat: Leat) -> None:
    body = "".join(json.dumps(record(n)) + "\n" for n in (1, 2))
    service.answers[("GET", "/v1/stores/s/entities/t/records")] = [httpx2.Response(200, text=body)]
    result = leat("print", "s/t", "--from-beginning", "--limit", "2")
    assert result.out.splitlines()[0].split(maxsplit=3) == [
        "0:1",
        "1970-01-01T00:00:01.000+00:00",
        "k",
        '{"a": 1}',
    ]
    assert dict(service.requests[0].url.params) == {"from": "beginning", "limit": "2"}


def test_print_ends_with_the_error_that_came_in_the_midst(service: Service, leat: Leat) -> None:
    failure = '{"error":{"code":"store-unreachable","detail":"broker left","errors":[]}}'
    body = json.dumps(record(1)) + "\n" + failure + "\n"
    service.answers[("GET", "/v1/stores/s/entities/t/records")] = [httpx2.Response(200, text=body)]
    result = leat("print", "s/t", "-o", "ndjson")
    assert json.loads(result.out) == record(1)
    assert result.status == 1
    assert "broker left" in result.err


CONTEXT = {"database": "demo", "schema": "public", "store": None, "role": None}
ROWS = {
    "kind": "list",
    "status": "succeeded",
    "columns": [{"name": "a"}, {"name": "b"}],
    "rows": [[1, None], ["x", {}]],
}


def test_sql_shows_rows_in_every_form(service: Service, leat: Leat) -> None:
    service.answer("POST", "/v1/statements", {"results": [ROWS], "context": CONTEXT})
    assert leat("sql", "-e", "LIST x;", "-o", "csv").out == "a,b\n1,\nx,{}\n"
    assert leat("sql", "-e", "LIST x;", "-o", "ndjson").out == '{"a": 1, "b": null}\n{"a": "x", "b": {}}\n'
    assert json.loads(leat("sql", "-e", "LIST x;", "-o", "json").out)["results"] == [ROWS]
    assert leat("sql", "-e", "LIST x;").out.splitlines()[0].split() == ["a", "b"]


def test_sql_sends_text_and_context(service: Service, leat: Leat, tmp_path: Path) -> None:
    done = {"kind": "create_database", "status": "succeeded", "object": {"name": "d"}}
    service.answer("POST", "/v1/statements", {"results": [done], "context": CONTEXT})
    file = tmp_path / "a.sql"
    file.write_text("CREATE DATABASE d;")
    result = leat("sql", "-f", str(file), "--database", "demo", "--store", "k")
    assert service.last_body == {
        "sql": "CREATE DATABASE d;",
        "database": "demo",
        "schema": None,
        "store": "k",
    }
    assert result.out == "CREATE DATABASE: succeeded (d)\n"


@pytest.mark.parametrize("form", ["table", "csv", "ndjson", "json"])
def test_sql_warns_of_a_store_that_does_not_answer(service: Service, leat: Leat, form: str) -> None:
    thing = {"noun": "store", "name": "k", "state": "errored", "message": "Store k: no broker\x1b answered."}
    made = {"kind": "create_store", "status": "succeeded", "object": thing}
    service.answer("POST", "/v1/statements", {"results": [made], "context": CONTEXT})
    result = leat("sql", "-e", "CREATE STORE k …", "-o", form)
    assert result.status == 0
    warning = "warning: the store is kept, but cannot be used yet. Store k: no broker\\x1b answered.\n"
    assert (warning in result.err) == (form in ("table", "csv"))
    assert ("errored" in result.out) == (form in ("ndjson", "json"))


def test_sql_does_not_warn_of_a_store_that_answers(service: Service, leat: Leat) -> None:
    thing = {"noun": "store", "name": "k", "state": "ready"}
    made = {"kind": "create_store", "status": "succeeded", "object": thing}
    service.answer("POST", "/v1/statements", {"results": [made], "context": CONTEXT})
    result = leat("sql", "-e", "CREATE STORE k …")
    assert (result.out, result.err) == ("CREATE STORE: succeeded (k)\n", "")


def test_sql_reads_a_pipe(service: Service, leat: Leat, monkeypatch: pytest.MonkeyPatch) -> None:
    service.answer("POST", "/v1/statements", {"results": [], "context": CONTEXT})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"LIST STORES;")))
    assert leat("sql").status == 0
    assert service.last_body["sql"] == "LIST STORES;"


def test_bytes_that_are_no_utf8_are_named_with_their_place(
    service: Service, leat: Leat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "a.sql"
    file.write_bytes("LIST STORES; -- é\n-- ".encode() + b"\xe9\n")
    for arguments in (("sql", "-f", str(file)), ("query", "replace", "q", str(file))):
        result = leat(*arguments)
        assert result.status == 2
        said = " ".join(result.err.replace("│", " ").split())
        assert "is not UTF-8: byte 0xe9 at offset 22, line 2" in said
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfeL\0")))
    result = leat("sql")
    assert (result.status, "standard input is not UTF-8: byte 0xff at offset 0" in result.err) == (2, True)
    result = leat("sql", "-e", "LIST \udce9")
    assert (result.status, "byte 0xe9 at offset 5" in result.err) == (2, True)
    assert service.requests == []


def test_sql_takes_its_text_as_an_argument(service: Service, leat: Leat) -> None:
    service.answer("POST", "/v1/statements", {"results": [], "context": CONTEXT})
    assert leat("sql", "LIST STORES;").status == 0
    assert service.last_body["sql"] == "LIST STORES;"
    assert leat("sql", "LIST STORES;", "-e", "LIST DATABASES;").status == 2
    assert leat("sql", "LIST STORES;", "-f", "a.sql").status == 2


@pytest.mark.parametrize("code", ["not-grouped", "not-computable", "schema-incompatible", "sql-syntax"])
def test_sql_that_is_not_valid_has_a_status_of_its_own(service: Service, leat: Leat, code: str) -> None:
    service.answer("POST", "/v1/statements", {"status": 422, "code": code, "errors": []}, status=422)
    assert leat("sql", "-e", "SELECT 1;").status == 6


def test_sql_failure_shows_what_ran_before_and_a_caret(service: Service, leat: Leat) -> None:
    problem = {
        "status": 422,
        "code": "unknown-relation",
        "results": [{"kind": "create_database", "status": "succeeded", "object": {"name": "d"}}],
        "errors": [{"detail": "no x", "position": {"line": 2, "column": 15, "offset": 34, "length": 1}}],
    }
    service.answer("POST", "/v1/statements", problem, status=422)
    result = leat("sql", "-e", "CREATE DATABASE d;\nSELECT * FROM x;")
    assert result.status == 6
    assert result.out == "CREATE DATABASE: succeeded (d)\n"
    lines = result.err.splitlines()
    assert lines[3].index("x;") == lines[4].index("^")


def test_sql_file_that_is_not_there(service: Service, leat: Leat) -> None:
    assert leat("sql", "-f", "/nonexistent.sql").status == 2


def test_prompt_shows_the_context_and_runs_until_quit(service: Service) -> None:
    from leatstream.cli.output import Output
    from leatstream.cli.prompt import Prompt

    service.answer("POST", "/v1/statements", {"results": [], "context": {**CONTEXT, "store": "k"}})
    typed = iter(["USE STORE k\n;", "\\s", "\\quit"])
    seen: list[str] = []

    class Lines:
        def read(self, label: str) -> str:
            seen.append(label)
            return next(typed)

    Prompt(service.client(), {"database": None}, Output.TABLE, Lines()).run()
    assert [json.loads(request.content)["sql"] for request in service.requests] == [
        "USE STORE k\n;",
        "LIST STORES;",
    ]
    assert seen == ["leat> ", "demo.public(k)> ", "demo.public(k)> "]


@pytest.mark.parametrize(
    ("place", "body"),
    [
        ("earliest", {"from": "earliest"}),
        ("2026-01-31T12:00:00Z", {"from": "timestamp", "timestamp": "2026-01-31T12:00:00Z"}),
        ('{"a": {"0": 3}}', {"from": "offsets", "offsets": {"a": {"0": 3}}}),
    ],
)
def test_query_restart_from_a_place_tells_what_it_does(
    service: Service, leat: Leat, place: str, body: dict[str, Any]
) -> None:
    asked = query("starting")
    asked["status"]["message"] = "restart asked for, from there: nothing is lost"
    service.answer("GET", "/v1/queries/q", query("running", 1))
    service.answer("POST", "/v1/queries/q:restart", asked, status=202)
    said = leat("query", "restart", "q", "--from", place, "--no-wait")
    assert said.status == 0
    assert "nothing is lost" in said.err
    assert json.loads(service.requests[1].content) == body


def test_query_restart_from_offsets_that_are_no_json(service: Service, leat: Leat) -> None:
    service.answer("GET", "/v1/queries/q", query("running", 1))
    assert leat("query", "restart", "q", "--from", "{a").status == 2


def test_application_apply_puts_the_text_and_waits(service: Service, leat: Leat, tmp_path: Path) -> None:
    text = "BEGIN APPLICATION shop CREATE STREAM a AS SELECT 1; END APPLICATION"
    (tmp_path / "shop.sql").write_text(text)
    change = {"class": "new-state", "reason": "other keys"}
    queries = [{"name": "a", "action": "change", "plan": {"change": change}}]
    plan = {"queries": queries, "removed": ["b"]}
    made = {"name": "shop", "desired_state": "running", "plan": plan}
    service.answer("PUT", "/v1/applications/shop", made)
    service.answer("GET", "/v1/applications/shop", {**made, "status": {"state": "starting"}})
    service.answer("GET", "/v1/applications/shop", {**made, "status": {"state": "running"}})
    result = leat("application", "apply", "shop", "-f", str(tmp_path / "shop.sql"), "--database", "d")
    assert result.status == 0, result.err
    assert json.loads(service.requests[0].content) == {"sql": text, "database": "d"}
    assert service.requests[1].url.params["wait_for"] == "running,completed,failed"
    assert result.out.splitlines()[2].split() == ["a", "change", "new-state", "other", "keys"]
    assert result.out.splitlines()[3].split() == ["b", "remove"]
    assert "Application shop is running." in result.err


def test_application_that_fails_ends_with_1(service: Service, leat: Leat, tmp_path: Path) -> None:
    (tmp_path / "shop.sql").write_text("BEGIN …")
    plan = {"queries": [], "removed": []}
    made = {"name": "shop", "desired_state": "running", "plan": plan}
    service.answer("PUT", "/v1/applications/shop", made)
    failed = {"state": "failed", "message": "a: no more"}
    service.answer("GET", "/v1/applications/shop", {**made, "status": failed})
    result = leat("application", "apply", "shop", "-f", str(tmp_path / "shop.sql"))
    assert (result.status, "Application shop is failed. a: no more" in result.err) == (1, True)


def test_application_delete_waits_until_it_is_gone(service: Service, leat: Leat) -> None:
    service.answer("DELETE", "/v1/applications/shop", {"name": "shop"}, status=202)
    service.answer("GET", "/v1/applications/shop", {"status": {"state": "stopping"}})
    gone = {"code": "not-found", "title": "t", "detail": "d", "status": 404, "errors": []}
    service.answer("GET", "/v1/applications/shop", gone, status=404)
    result = leat("application", "delete", "shop", "--yes")
    assert (result.status, "Deleted application shop." in result.err) == (0, True)


@pytest.mark.parametrize("output", ["table", "csv"])
def test_capabilities_tell_all_that_the_service_tells(service: Service, leat: Leat, output: str) -> None:
    rows = matrix(connector_classes())
    service.answer("GET", "/v1/server/capabilities", {"items": rows})
    result = leat("capabilities", "-o", output)
    assert result.status == 0
    texts = ("delivery", "verified_on", "unverified")
    names = [one.name for one in fields(Capabilities) if one.name not in texts]
    if output == "csv":
        told = {row["kind"]: row for row in csv.DictReader(io.StringIO(result.out))}
        assert {kind: row["built"] == "yes" for kind, row in told.items()} == {
            row["kind"]: row["built"] for row in rows
        }
    else:
        lines = [[cell.strip() for cell in re.split(r"  +", line)] for line in result.out.splitlines()]
        kinds = [row["kind"] for row in rows if row["built"]]
        assert lines[0][-len(kinds) :] == kinds
        width = [result.out.splitlines()[0].index(f" {kind}") + 1 for kind in kinds]
        told = {kind: {} for kind in kinds}
        for line in result.out.splitlines()[2:]:
            for kind, at in zip(kinds, width, strict=True):
                told[kind][line.split()[0]] = re.split(r"  +", line[at:])[0].strip()
        assert all(kind in result.err for kind in PLANNED)
    for row in rows:
        if row["built"]:
            assert {n: told[row["kind"]][n] for n in names} == {n: "yes" if row[n] else "" for n in names}
            assert told[row["kind"]]["delivery"] == ", ".join(one["name"] for one in row["delivery"])
            assert told[row["kind"]]["experimental"] == ("yes" if row["unverified"] else "")
            assert told[row["kind"]]["properties"] == ", ".join(row["properties"])


def test_query_restart_past_a_record(service: Service, leat: Leat) -> None:
    service.answer("GET", "/v1/queries/q", query("failed"))
    service.answer("POST", "/v1/queries/q:restart", query("pending"), status=202)
    assert leat("query", "restart", "q", "--skip-record", "orders:3:42", "--no-wait").status == 0
    assert service.last_body == {"skip_record": "orders:3:42"}


@pytest.mark.parametrize(
    ("options", "body"),
    [
        (("--failed-by", "source-gone"), {"failed_by": "source-gone", "skip_record": False}),
        (("--skip-record", "orders:3:42"), {"failed_by": "orders:3:42", "skip_record": True}),
    ],
)
def test_restart_of_all_queries_of_one_cause(
    service: Service, leat: Leat, options: tuple[str, ...], body: dict[str, Any]
) -> None:
    told = {"queries": ["q", "r"], "other_causes": []}
    service.answer("POST", "/v1/queries:restart", told, status=202)
    said = leat("query", "restart", *options, "--no-wait")
    assert (said.status, json.loads(service.requests[0].content)) == (0, body)
    assert "q, r" in said.err
    service.answer("GET", "/v1/queries/q", query("running"))
    service.answer("GET", "/v1/queries/r", query("failed"))
    waited = leat("query", "restart", *options)
    assert waited.status != 0
    assert "Query r is failed" in waited.err


def test_restart_of_queries_of_which_there_are_none(service: Service, leat: Leat) -> None:
    told = {"queries": [], "other_causes": ["orders:3:42"]}
    service.answer("POST", "/v1/queries:restart", told, status=202)
    said = leat("query", "restart", "--failed-by", "source-gnoe")
    assert said.status == 3
    assert "No query has failed by source-gnoe. Queries have failed by orders:3:42." in said.err


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--failed-by", "x", "--skip-record", "t:0:1"),
        ("--skip-record", "t:0:1", "--from", "earliest"),
        ("q", "--failed-by", "x"),
    ],
)
def test_restarts_that_say_too_little_or_too_much(
    service: Service, leat: Leat, options: tuple[str, ...]
) -> None:
    assert leat("query", "restart", *options).status == 2
    assert service.requests == []


def test_graphql_writes_data_and_fails_by_errors(service: Service, leat: Leat) -> None:
    service.answer("POST", "/graphql", {"data": {"server": {"name": "leatstream"}}})
    result = leat("graphql", "query Q($n: Int) { server { name } }", "--var", "n=1", "--var", "t=a b")
    assert (result.status, json.loads(result.out)) == (0, {"server": {"name": "leatstream"}})
    assert service.last_body["variables"] == {"n": 1, "t": "a b"}
    service.answers.clear()
    wrong = {"code": "not-found", "status": 404, "hint": "Look at the list."}
    errors = [{"message": "Database no does not exist.", "extensions": wrong}]
    service.answer("POST", "/graphql", {"data": None, "errors": errors})
    result = leat("graphql", '{ database(name: "no") { name } }')
    assert result.status == 3
    assert "Database no does not exist." in result.err
    assert "Look at the list." in result.err
    assert leat("graphql").status == 2


def test_lists_pass_their_filters_on(service: Service, leat: Leat) -> None:
    service.answer("GET", "/v1/queries", {"items": [], "next_page_token": None})
    assert leat("query", "list", "--q", "ord", "--state", "failed").status == 0
    sent = dict(service.requests[-1].url.params)
    assert sent == {"q": "ord", "state": "failed", "page_size": "1000", "view": "brief"}
    assert leat("query", "list", "-o", "json").status == 0
    assert dict(service.requests[-1].url.params) == {"page_size": "1000"}, "programs get everything"
    service.answer("GET", "/v1/relations", {"items": [], "next_page_token": None})
    assert leat("relation", "list", "--kind", "stream").status == 0
    assert dict(service.requests[-1].url.params) == {"kind": "stream", "page_size": "1000", "view": "brief"}
    assert leat("secret", "list", "--state", "failed").status == 2


def test_vocabulary_lists_words_with_signatures(service: Service, leat: Leat) -> None:
    function = {"name": "chr", "signature": "chr(code)", "returns": "VARCHAR"}
    words = {"statements": ["create"], "clauses": ["as"], "types": ["BIGINT"], "functions": [function]}
    service.answer("GET", "/v1/sql/vocabulary", words | {"properties": {"store": ["uris"]}})
    assert leat("vocabulary", "-o", "csv").out.splitlines() == [
        "kind,word,returns",
        "statement,create,",
        "clause,as,",
        "type,BIGINT,",
        "function,chr(code),VARCHAR",
        "store property,uris,",
    ]
