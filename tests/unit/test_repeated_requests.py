"""The command line and the Terraform provider repeat the same requests, and none that could happen twice."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from own_clock import set_clock

from leatstream.cli import client as cli
from leatstream.cli.connection import Connection
from leatstream_terraform import rest as provider

AWAY = {"code": "catalog-unreachable", "detail": "away"}
MANY = {"code": "too-many-requests", "detail": "100 a second"}
BUSY = {"code": "catalog-busy", "detail": "busy"}
GONE = {"code": "not-found", "detail": "no such query"}
STALE = {"code": "stale", "detail": "changed"}
BROKEN = {"code": "store-unreachable", "detail": "k"}
Step = tuple[int, dict[str, Any]]


class OfCli:
    """The command line's client over answers that were laid out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pauses: list[float] = []
        monkeypatch.setattr(cli, "_sleep", self.pauses.append)

    def ask(
        self, method: str, path: str, *steps: Step, headers: dict[str, str] | None = None
    ) -> tuple[int, str | None]:
        left, asked = list(steps), []

        def handle(request: httpx2.Request) -> httpx2.Response:
            asked.append(request.method)
            status, body = left.pop(0) if len(left) > 1 else left[0]
            return httpx2.Response(status, json=body, headers={"Retry-After": "1"})

        made = cli.Client(Connection("http://s.test", "t", "a test"), httpx2.MockTransport(handle))
        try:
            made.call(method, path, body={} if method in ("PUT", "POST") else None, headers=headers)
        except cli.ProblemAnswer as answer:
            return len(asked), answer.problem["code"]
        return len(asked), None


class OfProvider:
    """The provider's client, likewise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pauses: list[float] = []
        self._patch = monkeypatch

    def ask(self, method: str, path: str, *steps: Step) -> tuple[int, str | None]:
        left, asked = list(steps), []

        def once(*_: Any) -> provider.Answer:
            asked.append(method)
            status, body = left.pop(0) if len(left) > 1 else left[0]
            if status >= 400:
                raise provider.ProblemError(status, body, "1")
            return provider.Answer(status, body, {})

        made = provider.Client("http://s.test")
        self._patch.setattr(made, "_once", once)
        self._patch.setattr(made, "sleep", self.pauses.append)
        try:
            made.request(method, path, {})
        except provider.ProblemError as error:
            return len(asked), error.code
        return len(asked), None


@pytest.fixture(params=[OfCli, OfProvider])
def client(request: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    return request.param(monkeypatch)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_what_may_happen_twice_is_sent_again_while_the_catalog_is_away(client: Any, method: str) -> None:
    assert client.ask(method, "/v1/queries/q", (503, AWAY), (503, AWAY), (200, {})) == (3, None)
    assert client.pauses == [1.0, 1.0], "as long as the service asks for"


def test_so_is_a_question_that_is_posted(client: Any) -> None:
    assert client.ask("POST", "/v1/statements:validate", (503, AWAY), (200, {})) == (2, None)


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/statements"), ("PATCH", "/v1/queries/q")])
def test_what_might_happen_twice_is_told(client: Any, method: str, path: str) -> None:
    assert client.ask(method, path, (503, AWAY), (200, {})) == (1, "catalog-unreachable")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST", "PATCH"])
def test_what_was_not_done_is_sent_again_whatever_it_is(client: Any, method: str) -> None:
    assert client.ask(method, "/v1/statements", (503, BUSY), (200, {})) == (2, None)


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH"])
def test_an_account_that_sends_too_many_requests_waits_and_goes_on(client: Any, method: str) -> None:
    assert client.ask(method, "/v1/statements", (429, MANY), (429, MANY), (200, {})) == (3, None)
    assert client.pauses == [1.0, 1.0]


def test_so_does_one_that_asks_for_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(cli, "_sleep", pauses.append)
    answers = [
        httpx2.Response(429, json=MANY, headers={"Retry-After": "3"}),
        httpx2.Response(200, text='{"n": 1}\n'),
    ]
    transport = httpx2.MockTransport(lambda _: answers.pop(0))
    made = cli.Client(Connection("http://s.test", "t", "a test"), transport)
    assert list(made.records("/v1/stores/k/entities/t")) == ['{"n": 1}']
    assert pauses == [3.0]


def test_the_command_line_reports_a_store_that_is_away_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = OfCli(monkeypatch).ask
    assert ask("PUT", "/v1/queries/q", (503, BROKEN), (200, {})) == (1, "store-unreachable")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_the_provider_asks_a_store_that_timed_out_again(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """One of 501 deletes failed with a broker's time-out of 4 s, and with it the run."""
    ask = OfProvider(monkeypatch).ask
    assert ask(method, "/v1/stores/k/entities/t", (503, BROKEN), (200, {})) == (2, None)
    assert ask("POST", "/v1/statements", (503, BROKEN), (200, {})) == (1, "store-unreachable")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/server"),
        ("POST", "/v1/statements:validate"),
        ("PUT", "/v1/queries/q"),
        ("DELETE", "/v1/q"),
    ],
)
def test_the_provider_waits_for_a_lost_service_with_every_request(
    monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    """Creates were ridden out; greetings, reads and dry runs failed at the first lost connection."""
    made, asked = provider.Client("http://s.test"), []
    monkeypatch.setattr(made, "sleep", lambda _: None)

    def once(*_: Any) -> Any:
        asked.append(method)
        if len(asked) < 3:
            raise provider.ServiceDown("http://s.test", ConnectionRefusedError("refused"))
        return provider.Answer(200, {}, {})

    monkeypatch.setattr(made, "_once", once)
    assert made.request(method, path).status == 200
    monkeypatch.setenv(provider.PATIENCE, "0")
    asked.clear()
    with pytest.raises(provider.ServiceDown):
        made.request(method, path)


def test_it_does_not_go_on_for_ever(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count(0.0, 7.0)
    for module in (cli, provider):
        set_clock(monkeypatch, module, monotonic=lambda: next(ticks))
    asked, code = client.ask("PUT", "/v1/queries/q", (503, AWAY))
    assert (2 < asked < 8, code) == (True, "catalog-unreachable")


def test_what_the_first_try_has_deleted_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider takes an object that is gone for deleted in any case."""
    ask: Callable[..., Any] = OfCli(monkeypatch).ask
    assert ask("DELETE", "/v1/queries/q", (503, AWAY), (404, GONE)) == (2, None)
    assert ask("DELETE", "/v1/queries/q", (404, GONE)) == (1, "not-found")
    assert ask("DELETE", "/v1/queries/q", (503, BUSY), (404, GONE)) == (2, "not-found")


def test_a_creation_that_may_have_happened_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one would find the object of the first, and report that it exists already."""
    ask: Callable[..., Any] = OfCli(monkeypatch).ask
    new = {"If-None-Match": "*"}
    answers = (503, AWAY), (409, {"code": "already-exists", "detail": "r"})
    assert ask("PUT", "/v1/roles/r", *answers, headers=new) == (1, "catalog-unreachable")
    assert ask("PUT", "/v1/roles/r", (503, BUSY), (200, {}), headers=new) == (2, None)


def test_the_provider_knows_that_an_earlier_try_may_have_been_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for first, doubtful in ((AWAY, True), (BUSY, False)):
        made = provider.Client("http://s.test")
        steps = [provider.ProblemError(503, first), provider.ProblemError(412, STALE)]

        def once(*_: Any, steps: list[Exception] = steps) -> Any:
            raise steps.pop(0)

        monkeypatch.setattr(made, "_once", once)
        monkeypatch.setattr(made, "sleep", lambda _: None)
        with pytest.raises(provider.ProblemError) as told:
            made.request("PUT", "/v1/queries/q", {}, {"If-Match": '"1"'})
        assert told.value.after_doubt is doubtful


@pytest.mark.parametrize(
    ("lost", "doubtful"),
    [
        (provider.ServiceDown("http://s.test", TimeoutError("late"), in_doubt=True), True),
        (provider.ServiceDown("http://s.test", ConnectionRefusedError("refused")), False),
        (provider.ProblemError(502, {"title": "Bad Gateway"}), True),
        (provider.ProblemError(504, {"title": "Gateway Timeout"}), True),
    ],
)
def test_the_provider_sends_a_put_again_whose_answer_is_lost(
    monkeypatch: pytest.MonkeyPatch, lost: Exception, doubtful: bool
) -> None:
    """A server that starts anew fails no create that is in flight, whatever the time it took to be gone."""
    made, asked = provider.Client("http://s.test"), []
    clock = itertools.count(0.0, 0.1)
    set_clock(monkeypatch, provider, monotonic=lambda: next(clock) + 90.0 * len(asked))
    monkeypatch.setattr(made, "sleep", lambda _: None)

    def once(method: str, *_: Any) -> Any:
        asked.append(method)
        raise lost if len(asked) == 1 else provider.ProblemError(412, STALE)

    monkeypatch.setattr(made, "_once", once)
    with pytest.raises(provider.ProblemError) as told:
        made.request("PUT", "/v1/queries/q", {}, {"If-Match": '"1"'})
    assert (told.value.code, told.value.after_doubt, asked) == ("stale", doubtful, ["PUT", "PUT"])
    asked.clear()
    with pytest.raises(type(lost)):
        made.request("POST", "/v1/statements", {})
    assert asked == ["POST"], "what might happen twice is told"


class Breaking:
    """A connection that breaks at one of its steps."""

    def __init__(self, broken: str) -> None:
        self.sock = None
        self._broken = broken

    def _step(self, name: str) -> None:
        if name == self._broken:
            raise ConnectionError(name)

    def connect(self) -> None:
        self._step("connect")

    def request(self, *_: Any, **__: Any) -> None:
        self._step("request")

    def getresponse(self) -> Any:
        self._step("getresponse")


@pytest.mark.parametrize(
    ("broken", "doubtful"), [("connect", False), ("request", True), ("getresponse", True)]
)
def test_what_was_never_sent_was_not_kept(
    monkeypatch: pytest.MonkeyPatch, broken: str, doubtful: bool
) -> None:
    made = provider.Client("http://s.test")
    monkeypatch.setattr(made, "_connection", lambda: Breaking(broken))
    with pytest.raises(provider.ServiceDown) as told:
        made._once("PUT", "/v1/queries/q", {}, {})
    assert told.value.in_doubt is doubtful
