"""What the service says of a body at plan time, as the plan shows it."""

from __future__ import annotations

from typing import Any

import pytest
from own_clock import set_clock

from leatstream_terraform import dry_run, rest
from leatstream_terraform.codec import UNKNOWN
from leatstream_terraform.diagnostics import Diagnostic
from leatstream_terraform.dry_run import check_deletion, check_health, check_object
from leatstream_terraform.rest import Answer, Client, ProblemError, ServiceDown
from leatstream_terraform.schema import complete, load
from leatstream_terraform.session import Session

RESOURCES = load().resources
STREAM, SOURCE = RESOURCES["leatstream_stream"], RESOURCES["leatstream_function_source"]
STORE = RESOURCES["leatstream_store"]
REFUSED_LOGIN = {"status": {"state": "errored", "message": "the login is refused"}}
BODY = {
    "database": "d",
    "schema": "s",
    "name": "t",
    "columns": [{"name": "a", "type": "BIGINT"}],
    "store": "k",
    "value_format": "json",
}


class Says(Client):
    """A service that answers every request in one way."""

    def __init__(self, answer: Any) -> None:
        super().__init__("http://s.test")
        self.answer, self.asked, self.paths = answer, [], []

    def _once(self, method: str, path: str, body: Any, headers: Any) -> Answer:
        self.asked.append(body)
        self.paths.append(path)
        if isinstance(self.answer, Exception):
            raise self.answer
        return Answer(200, self.answer, {})


def refusal(status: int, code: str, detail: str = "no", **more: Any) -> ProblemError:
    fault = {"code": code, "detail": detail, "pointer": more.pop("pointer", None)}
    return ProblemError(status, {"status": status, "code": code, "detail": detail, "errors": [fault], **more})


def checked(answer: Any, resource: Any = STREAM, **values: Any) -> tuple[Session, Any, Any]:
    session = Session(load(), client=Says(answer))
    config = complete(resource.attributes, (BODY if resource is STREAM else {}) | values)
    found, paths = check_object(session, resource, config, config)
    return session, found, paths


def test_a_fault_is_shown_at_its_attribute() -> None:
    session, found, paths = checked(refusal(422, "validation", "DOUBEL", pointer="#/columns/0/type"))
    assert [(one.severity, one.path) for one in found] == [("error", ("columns", 0, "type"))]
    assert paths == []
    asked = session.client.asked[0]  # type: ignore[union-attr]
    assert (asked["path"], asked["body"]["kind"]) == ("/v1/relations/d.s.t", "stream")


def test_what_cannot_change_in_place_is_replaced() -> None:
    assert checked(refusal(409, "requires-replacement", pointer="#/topic"))[1:] == ([], [("topic",)])


def test_a_topic_that_another_provider_may_make_is_a_warning() -> None:
    missing = refusal(
        422, "property-required", "topic.partitions must be given", pointer="#/properties/topic.partitions"
    )
    assert [one.severity for one in checked(missing)[1]] == ["warning"]
    missing = refusal(422, "property-required", "value.format must be given", pointer="#/value_format")
    assert [one.severity for one in checked(missing)[1]] == ["error"]


@pytest.mark.parametrize("code", ["no-such-path", "method-not-allowed"])
def test_a_service_without_the_check_is_asked_for_nothing_more(code: str) -> None:
    assert checked(refusal(404 if code == "no-such-path" else 405, code))[1:] == ([], [])


def test_what_is_not_known_yet_is_not_checked() -> None:
    session, found, _ = checked(refusal(422, "validation"), topic=UNKNOWN)
    assert (found, session.client.asked) == ([], [])  # type: ignore[union-attr]


def test_queries_that_new_code_restarts_are_named() -> None:
    found = checked({"restarts": ["q", "r"]}, SOURCE, name="f", file="f.py", content="x = 1")[1]
    assert [one.severity for one in found] == ["warning"] * 2
    assert ["query q" in found[0].summary, "query r" in found[1].summary] == [True, True]


def test_users_of_what_goes_are_named_unless_they_go_too() -> None:
    used = refusal(409, "has-dependents", dependents=["query q"])
    session = Session(load(), client=Says(used))
    (told,) = check_deletion(session, STREAM, BODY)
    assert (told.severity, "query q" in told.detail) == ("warning", True)
    session.leaving.note(RESOURCES["leatstream_query"], {"name": "q", "sink": "d.s.q"})
    assert check_deletion(session, STREAM, BODY) == []
    assert check_object(session, STREAM, complete(STREAM.attributes, BODY), BODY) == ([], [])


def store_health(answer: Any, **postgres: Any) -> tuple[Says, list[Diagnostic]]:
    """What a plan says of a new store, and the service that was asked."""
    given = {"host": "h", "database": "d", "username": "u", "password_wo": "wrong"} | postgres
    config = complete(STORE.attributes, {"name": "p", "postgres": given})
    planned = complete(STORE.attributes, {"name": "p", "postgres": given | {"password_wo": None}})
    service = Says(answer)
    return service, check_health(Session(load(), client=service), STORE, planned, config)


def test_a_store_that_refuses_the_login_is_a_warning_at_plan() -> None:
    service, found = store_health(REFUSED_LOGIN)
    assert [(one.severity, one.summary) for one in found] == [
        ("warning", "leatstream_store p would be errored")
    ]
    assert "the login is refused" in found[0].detail
    assert service.paths == ["/v1/stores/p?dry_run=true"], "no write"
    assert service.asked[0]["postgres"]["password"] == "wrong"
    assert store_health({"status": {"state": "ready"}})[1] == []


@pytest.mark.parametrize(
    "answer",
    [
        refusal(403, "forbidden"),
        refusal(422, "not-found", "Secret s does not exist."),
        ServiceDown("http://s.test", ConnectionRefusedError()),
    ],
)
def test_a_store_that_cannot_be_tried_is_left_to_the_apply(
    monkeypatch: pytest.MonkeyPatch, answer: Exception
) -> None:
    clock = iter(range(0, 1000, 2))
    set_clock(monkeypatch, rest, monotonic=lambda: float(next(clock)))
    set_clock(monkeypatch, dry_run, monotonic=lambda: 0.0)
    monkeypatch.setattr(Client, "sleep", lambda *_: None)
    service, found = store_health(answer)
    assert found == []
    assert len(service.asked) <= 4, "it is not waited for"


def test_a_store_of_which_something_is_not_known_yet_is_not_tried() -> None:
    for unknown in ("host", "password_wo"):
        service, found = store_health(REFUSED_LOGIN, **{unknown: UNKNOWN})
        assert (service.asked, found) == ([], [])
    config = complete(STREAM.attributes, BODY)
    service = Says(REFUSED_LOGIN)
    assert check_health(Session(load(), client=service), STREAM, config, config) == []
    assert service.asked == [], "only a store has such a status"
