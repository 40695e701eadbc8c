"""The pull protocol over a pretended transport, and the driver that lives by it."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import pytest

from leatstream.errors import JobError
from leatstream_jobs.attempt.attempt import Attempt
from leatstream_jobs.attempt.failures import Failure, refused
from leatstream_jobs.driver.loop import Driver
from leatstream_jobs.runtime.protocol import (
    ApiUnreachable,
    Client,
    Contact,
    Fenced,
    HttpTransport,
    NotKnown,
    TooLarge,
    as_sent,
)


class Scripted:
    """Answers from a list; an exception in it is raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.patience: list[float] = []

    def another(self) -> Scripted:
        return self

    def send(self, method: str, path: str, body: bytes, timeout: float) -> tuple[int, bytes]:
        self.patience.append(timeout)
        self.sent.append((path, json.loads(body)))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        status, data = answer
        return status, data if isinstance(data, bytes) else json.dumps(data).encode()


def client(*answers: Any) -> tuple[Client, Scripted]:
    transport = Scripted(*answers)
    return Client(transport, "d/1", Contact(0.2)), transport


def test_calls_go_where_the_protocol_says() -> None:
    api, transport = client(
        (200, {"work": None}),
        (200, {"directive": "stop", "query_name": "q now"}),
        (200, {}),
        (200, {"values": {"r": "v"}}),
    )
    assert api.poll({"state": "idle"}) is None
    assert api.heartbeat({"state": "running"}) == "stop"
    assert api.query_name == "q now"
    api.send_analysis("a b", {"columns": []})
    assert api.resolve_secrets(["r"]) == {"r": "v"}
    assert [path for path, _ in transport.sent] == [
        "/v1/drivers/d%2F1/poll",
        "/v1/drivers/d%2F1/heartbeat",
        "/v1/drivers/d%2F1/analysis/a%20b",
        "/v1/drivers/d%2F1/secrets",
    ]
    assert api.resolve_secrets([]) == {}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((401, {}), NotKnown),
        ((404, {}), NotKnown),
        ((410, {}), NotKnown),
        ((409, {}), Fenced),
        ((500, {}), ApiUnreachable),
        ((500, {"code": "secret-unreadable", "detail": "The secret s cannot be opened"}), JobError),
        ((413, {}), TooLarge),
        ((429, {}), ApiUnreachable),
        ((200, b"<html>"), ApiUnreachable),
        (ConnectionRefusedError(), ApiUnreachable),
        (http.client.RemoteDisconnected(), ApiUnreachable),
    ],
)
def test_answers_and_their_meaning(answer: Any, error: type[Exception]) -> None:
    api, _ = client(answer)
    with pytest.raises(error):
        api.heartbeat({})


def test_a_body_is_as_long_as_its_texts() -> None:
    """In UTF-8; what UTF-8 cannot hold arrives all the same."""
    assert as_sent("日é😀") == '"日é😀"'.encode()
    assert json.loads(as_sent(['"\ud800\\', "\udfff日"])) == ['"\ud800\\', "\udfff日"]


def test_the_address_is_read_anew_after_a_lost_connection(tmp_path: Path) -> None:
    url = tmp_path / "url"
    url.write_text("http://127.0.0.1:1/base/")
    transport = HttpTransport(url, "t")
    with pytest.raises(ConnectionRefusedError):
        transport.send("POST", "/x", b"{}", 1)
    url.write_text("http://127.0.0.1:2")
    with pytest.raises(ConnectionRefusedError):
        transport.send("POST", "/x", b"{}", 1)
    assert transport._prefix == ""


def spec_document() -> dict[str, Any]:
    store = {"name": "s", "kind": "kafka", "config": {"bootstrap_servers": "h:1"}}
    columns = [{"name": "a", "type": "BIGINT"}]
    relation = {"store": store, "entity": "t", "columns": columns, "value_format": "json"}
    return {
        "query_id": "q",
        "query_name": "q",
        "generation": 1,
        "attempt": 3,
        "fencing_token": "f",
        "sql": "SELECT 1",
        "sources": [relation | {"view": "v", "relation": "d.s.r"}],
        "sink": relation | {"relation": "d.s.o"},
        "mode": "micro_batch",
        "mode_reason": "",
        "checkpoint": "file:///nowhere",
    }


def driver(api: Client, tmp_path: Path) -> Driver:
    return Driver(api, role="dedicated", slots=1, work_dir=tmp_path, warm_up_kafka=None)


def attempt(api: Client, tmp_path: Path) -> Attempt:
    return Attempt(driver(api, tmp_path), None, spec_document())  # type: ignore[arg-type]


def test_a_heartbeat_says_who_and_what(tmp_path: Path) -> None:
    api, transport = client((200, {"directive": "continue"}))
    running = attempt(api, tmp_path)
    running._fail(Failure("job-failed", "password=geheim broke"))
    running._beat()
    _, body = transport.sent[0]
    assert (body["query_id"], body["attempt"], body["fencing_token"]) == ("q", 3, "f")
    assert body["state"] == "failed"
    assert body["error"] == {"code": "job-failed", "detail": "password=*** broke", "retryable": True}
    assert "progress" not in body


def test_a_secret_that_cannot_be_opened_is_told_by_its_code() -> None:
    """Else a lost key ring looks like a query that Spark refuses."""
    problem = {"code": "secret-unreadable", "detail": "The secret s cannot be opened"}
    api, _ = client((500, problem))
    with pytest.raises(JobError) as raised:
        api.resolve_secrets(["r"])
    assert refused(raised.value).as_json() == {
        "code": "job-rejected",
        "detail": problem["detail"],
        "retryable": False,
        "condition": "secret-unreadable",
    }


def test_another_attempt_that_has_taken_over_ends_this_one(tmp_path: Path) -> None:
    api, _ = client((409, {}))
    with pytest.raises(Fenced):
        attempt(api, tmp_path)._beat()


def test_the_server_that_is_there_tells_how_long_a_job_goes_on_without_it() -> None:
    """Others take its queries over by the setting that it has now, not by that of the driver's start."""
    api, transport = client((200, {"directive": "continue", "orphan_seconds": 5}), (200, {}))
    assert api.contact.left() < 1
    api.heartbeat({})
    assert 4 < api.contact.left() <= 5
    api.heartbeat({})
    assert api.contact.limit == 5
    assert transport.patience == [1.0, pytest.approx(5, abs=0.5)], (
        "who is about to be lost waits for no answer"
    )


def test_polls_that_are_answered_do_not_count_for_a_query_whose_heartbeats_are_refused() -> None:
    """Its lease runs out meanwhile, and another server starts it."""
    api, _ = client((200, {"work": None}))
    api.contact.limit = 60.0
    one = api.another("q")
    one.contact.limit = -1.0
    api.poll({})
    assert (api.contact.is_lost(), one.contact.is_lost()) == (False, True)


def test_an_api_that_is_away_does_not_stop_a_query(tmp_path: Path) -> None:
    api, _ = client(ConnectionRefusedError(), (200, {"directive": "stop"}))
    running = attempt(api, tmp_path)
    running._beat()
    assert running._directive == "continue"
    running._beat()
    assert running._directive == "stop"


def test_a_driver_without_an_api_ends_after_its_limit(tmp_path: Path) -> None:
    api, _ = client(*[ConnectionRefusedError()] * 50)
    lonely = driver(api, tmp_path)
    assert lonely._ask("idle") is None
    lonely.client.contact.limit = -1
    with pytest.raises(NotKnown):
        lonely._ask("idle")


def test_log_lines_wait_for_an_answer(tmp_path: Path) -> None:
    import logging

    api, transport = client(ConnectionRefusedError(), (200, {}))
    running = attempt(api, tmp_path)
    tail = running._driver.tail
    tail.emit(logging.LogRecord("x", logging.INFO, "", 0, "hello", None, None))
    running._beat()
    running._beat()
    assert transport.sent[1][1]["log"][0].endswith("INFO hello")
    assert tail.take() == []
