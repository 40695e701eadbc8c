"""Applying: what is kept and told when the service answers as a script says."""

from __future__ import annotations

from typing import Any

import pytest
from own_clock import set_clock

from leatstream_terraform import applying, leaving, rest
from leatstream_terraform.applying import Applied, apply
from leatstream_terraform.plan import forget, propose, templates
from leatstream_terraform.planning import plan
from leatstream_terraform.rest import Answer, Cancelled, Client, ProblemError, ServiceDown
from leatstream_terraform.schema import complete, load
from leatstream_terraform.session import Private, Session

RESOURCES = load().resources
QUERY, DATABASE, ENTITY, APPLICATION = (
    RESOURCES[f"leatstream_{name}"] for name in ("query", "database", "entity", "application")
)
SQL = "CREATE STREAM a AS SELECT * FROM b"
LOST = ServiceDown("http://s.test", TimeoutError("timed out"), in_doubt=True)
REFUSED = ServiceDown("http://s.test", ConnectionRefusedError("Connection refused"))
GATEWAY = ProblemError(504, {"status": 504, "title": "Gateway Timeout", "detail": "late"})
EXISTS = ProblemError(409, {"status": 409, "code": "already-exists", "detail": "it exists already"})
STALE = ProblemError(412, {"status": 412, "code": "stale", "detail": "it has changed"})
GONE = ProblemError(404, {"status": 404, "code": "not-found", "detail": "no such thing"})


class Script(Client):
    """A service that answers one request after another as was laid out; the last of them for ever.

    What a text names is looked for in the line of the request; waiting takes no time.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *steps: tuple[str, Any]) -> None:
        super().__init__("http://s.test")
        self.steps, self.asked, self.now = list(steps), [], 0.0
        for module in (rest, applying, leaving):
            set_clock(monkeypatch, module, monotonic=lambda: self.now)

    def _once(self, method: str, path: str, body: Any, headers: Any) -> Answer:
        self.asked.append((method, path, body))
        line, answer = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        assert line in f"{method} {path}", f"{line} was to be asked, not {method} {path}"
        if isinstance(answer, Exception):
            raise answer
        return Answer(200, answer, {})

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.stop.is_set():
            raise Cancelled

    def lines(self) -> list[str]:
        """What was asked, without what it waited for."""
        return [f"{method} {path.partition('?')[0]}" for method, path, _ in self.asked]


def query(generation: int = 1, state: str = "running", **values: Any) -> dict[str, Any]:
    """A query as the service tells it."""
    status = {"state": state, "observed_generation": generation}
    base = {"name": "q", "sql": SQL, "desired_state": "running", "generation": generation, "status": status}
    return base | values


def applied(
    service: Client,
    given: dict[str, Any],
    prior: dict[str, Any] | None = None,
    resource: Any = QUERY,
    private: Private | None = None,
) -> Applied:
    """Plan without a service, and apply with it."""
    config = complete(resource.attributes, given)
    before = None if prior is None else complete(resource.attributes, prior)
    planned = propose(resource.attributes, config, before)
    templates(resource, planned)
    if prior is not None:
        forget(resource, planned, inferred=False)
    session = Session(load(), client=service)
    return apply(session, resource, before, planned, config, private or Private())


def errors(done: Applied) -> str:
    """What it says, on one line."""
    return " ".join(f"{one.severity}: {one.summary}: {one.detail}" for one in done.diagnostics)


@pytest.mark.parametrize("lost", [LOST, GATEWAY])
def test_a_create_whose_answer_is_lost_is_found_again(
    monkeypatch: pytest.MonkeyPatch, lost: Exception
) -> None:
    """A running query outside of the state would be billed and written to by nobody's will."""
    service = Script(
        monkeypatch,
        ("PUT /v1/queries/q", lost),
        ("PUT /v1/queries/q", EXISTS),
        ("GET /v1/queries/q", query(state="starting")),
        ("GET /v1/queries/q?wait_for", query()),
    )
    done = applied(service, {"name": "q", "sql": SQL})
    assert done.diagnostics == []
    assert done.state is not None
    assert done.state["generation"] == 1


def test_a_create_rides_out_a_server_that_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Script(monkeypatch, ("PUT", REFUSED), ("PUT", REFUSED), ("PUT", REFUSED), ("PUT", query()))
    done = applied(service, {"name": "q", "sql": SQL})
    assert (done.diagnostics, service.now < 10) == ([], True)


def test_what_was_there_before_a_refused_connection_is_not_taken_for_ones_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = Script(monkeypatch, ("PUT", REFUSED), ("PUT", EXISTS))
    done = applied(service, {"name": "q", "sql": SQL})
    assert done.state is None
    assert "terraform import ADDRESS 'q'" in errors(done)


def test_a_topic_whose_answer_is_lost_is_known_by_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = {"partitions": 2, "replicas": 1}
    found = {"store": "k", "name": "t", "kafka": kafka, "effective": kafka | {"configs": {}}}
    for told, kept in ((found, True), (found | {"kafka": kafka | {"partitions": 3}}, False)):
        service = Script(monkeypatch, ("PUT", LOST), ("PUT", EXISTS), ("GET", told))
        done = applied(service, {"store": "k", "name": "t", "kafka": kafka}, None, ENTITY)
        assert (done.state is not None, "import it" in errors(done)) == (kept, not kept)


def test_a_create_without_any_answer_says_that_it_may_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    done = applied(Script(monkeypatch, ("", LOST)), {"name": "q", "sql": SQL})
    assert done.state is None
    assert "not known" in errors(done)
    assert "terraform import ADDRESS 'q'" in errors(done)
    done = applied(Script(monkeypatch, ("", REFUSED)), {"name": "q", "sql": SQL})
    assert "import" not in errors(done), "nothing was sent"


@pytest.mark.parametrize("lost", [LOST, GATEWAY])
def test_an_update_whose_answer_is_lost_is_found_again(
    monkeypatch: pytest.MonkeyPatch, lost: Exception
) -> None:
    service = Script(monkeypatch, ("PUT", lost), ("PUT", STALE), ("GET", query(2, comment="new")))
    done = applied(service, query() | {"comment": "new"}, query())
    assert (done.diagnostics, done.private.unsettled) == ([], False)
    assert done.state is not None
    assert done.state["generation"] == 2


@pytest.mark.parametrize("lost", [LOST, GATEWAY])
def test_an_update_without_any_answer_is_awaited_by_the_next_apply(
    monkeypatch: pytest.MonkeyPatch, lost: Exception
) -> None:
    """The next plan reads what was kept: without the mark it would be empty, though the job may have failed."""
    prior = query()
    done = applied(Script(monkeypatch, ("", lost)), prior | {"comment": "new"}, prior)
    assert done.private.unsettled
    assert done.state is not None
    assert done.state["comment"] is None
    assert "The next plan shows it" in errors(done)
    done = applied(Script(monkeypatch, ("", lost)), {"name": "d", "comment": "new"}, {"name": "d"}, DATABASE)
    assert not done.private.unsettled, "nobody waits for a database"


def test_a_create_that_is_stopped_in_doubt_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Script(monkeypatch, ("PUT", LOST), ("GET", query(state="starting")))
    service.stop.set()
    done = applied(service, {"name": "q", "sql": SQL})
    assert done.state is not None
    assert done.private.unsettled
    assert [one.severity for one in done.diagnostics] == ["warning"]


def test_a_failed_query_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Script(
        monkeypatch,
        ("PUT", query(2, "failed", desired_state="stopped")),
        ("wait_for=stopped&", query(2, "failed", desired_state="stopped")),
        ("wait_for=stopped&", query(2, "stopped", desired_state="stopped")),
    )
    done = applied(service, query() | {"desired_state": "stopped"}, query(1, "failed"))
    assert (done.diagnostics, done.private.unsettled) == ([], False)


@pytest.mark.parametrize("written", [False, True])
def test_what_failed_before_is_started_again_by_an_apply(
    monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    """The operator has mended the cause; the service itself tries no more."""
    seen = ("PUT", query(2, "failed", comment="new")) if written else ("GET", query(1, "failed"))
    now = query(2, comment="new") if written else query()
    service = Script(
        monkeypatch,
        seen,
        ("POST /v1/queries/q:restart", now | {"status": {"state": "pending"}}),
        ("GET", now),
    )
    given = query() | ({"comment": "new"} if written else {})
    done = applied(service, given, query(1, "failed"), QUERY, Private(unsettled=not written))
    assert (done.diagnostics, done.private.unsettled) == ([], False)


def test_what_fails_anew_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = query(2, "failed", comment="new")
    bad["status"] |= {"error": {"code": "job-failed", "detail": "boom"}, "hint": "CREATE ENTITY t."}
    started = ("PUT", query(2, "pending", comment="new"))
    done = applied(
        Script(monkeypatch, started, ("GET", bad), ("/logs", {})), query() | {"comment": "new"}, query()
    )
    assert done.private.unsettled
    assert "boom" in errors(done)
    assert "What to do: CREATE ENTITY t." in errors(done)
    assert "the next apply starts it again" in errors(done)
    sql = "BEGIN APPLICATION q CREATE STREAM a AS SELECT * FROM b; END APPLICATION"
    prior = bad | {"sql": sql, "comment": "new"}
    service = Script(
        monkeypatch,
        ("GET", prior),
        ("POST /v1/applications/q:restart?only_failed=true", prior | {"status": {"state": "pending"}}),
        ("GET", prior),
        ("/logs", {"lines": ["a: java.lang.Boom"]}),
    )
    done = applied(service, prior, prior, APPLICATION)
    assert "boom" in errors(done)
    assert "a: java.lang.Boom" in errors(done)
    assert done.private.unsettled


@pytest.mark.parametrize(
    ("has_run", "said"),
    [
        (False, "the next apply replaces it. Its job has not run, so no state is lost."),
        (True, "the next apply replaces it, and deletes its checkpoint and state."),
        (None, "the next apply replaces it, and deletes its checkpoint and state."),
    ],
)
def test_a_creation_that_failed_is_kept_with_its_cause_and_says_what_comes_next(
    monkeypatch: pytest.MonkeyPatch, has_run: bool | None, said: str
) -> None:
    bad = query(1, "failed")
    bad["status"] |= {"message": "boom", "hint": "CREATE ENTITY t.", "has_run": has_run}
    service = Script(monkeypatch, ("PUT", query(state="pending")), ("GET", bad), ("/logs", {}))
    done = applied(service, {"name": "q", "sql": SQL})
    assert f"What to do: CREATE ENTITY t.\n\nTerraform marks it as tainted: {said}" in errors(done)
    assert "terraform untaint ADDRESS" in errors(done)
    assert done.state is not None
    kept = done.state["status"]
    assert (kept["state"], kept["message"], kept["hint"]) == ("failed", "boom", "CREATE ENTITY t.")


def test_a_creation_that_timed_out_says_how_to_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = query(state="starting")
    done = applied(Script(monkeypatch, ("PUT", slow), ("", slow)), {"name": "q", "sql": SQL})
    assert "It keeps trying" in errors(done)
    assert "with all that it has done by then. To keep it" in errors(done)
    assert done.state is not None
    assert done.state["status"]["state"] == "starting"
    # What exists is not tainted.
    service = Script(monkeypatch, ("PUT", query(2, "starting", comment="new")), ("", slow))
    done = applied(service, query() | {"comment": "new"}, query())
    assert "It keeps trying" in errors(done)
    assert "taint" not in errors(done)


@pytest.mark.parametrize("resource", [QUERY, APPLICATION])
def test_a_plan_that_starts_what_failed_shows_the_cure(resource: Any) -> None:
    status = {"state": "failed", "message": "boom", "hint": "CREATE ENTITY t."}
    prior = complete(resource.attributes, {"name": "q", "sql": SQL, "desired_state": "running"})
    prior |= {"status": status}
    config = complete(resource.attributes, {"name": "q", "sql": SQL})
    found = plan(Session(load()), resource, prior, config, Private())
    (warning,) = (one for one in found.diagnostics if one.severity == "warning")
    assert "boom\n\nWhat to do: CREATE ENTITY t.\n\nIf the cause remains" in warning.detail
    assert found.state is not None
    assert found.state["change"]["reason"] == "the job failed: boom"


def test_what_cannot_be_started_again_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = ProblemError(403, {"status": 403, "code": "forbidden", "detail": "may not operate queries"})
    service = Script(monkeypatch, ("GET", query(1, "failed")), ("POST", refused), ("/logs", {}))
    done = applied(service, query(), query(1, "failed"), QUERY, Private(unsettled=True))
    assert "cannot be started again: may not operate queries" in errors(done)
    assert done.private.unsettled


def deleted(
    service: Client, resource: Any, prior: dict[str, Any], *leaving: tuple[Any, dict[str, Any]]
) -> Applied:
    """Plan to delete these and then the first, and delete that."""
    session = Session(load())
    private = Private()
    for one, value in (*leaving, (resource, prior)):
        private = plan(session, one, value, None, Private()).private
    return apply(Session(load(), client=service), resource, prior, None, None, Private.load(private.dump()))


def used(*dependents: str) -> ProblemError:
    """The refusal of an object that others depend on."""
    return ProblemError(
        409, {"status": 409, "code": "has-dependents", "detail": "used", "dependents": dependents}
    )


def test_what_is_deleted_too_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """An imported configuration has no references, so Terraform has no order."""
    reader = {"name": "r", "sink": "d.s.r", "delete_sink_entity": True}
    writer = {"name": "q", "sink": "d.s.q", "delete_sink_entity": False}
    service = Script(
        monkeypatch,
        ("DELETE /v1/relations/d.s.t", used("query q")),
        ("DELETE /v1/queries/q", used("query r")),
        ("DELETE /v1/queries/r?delete_entity=true", {}),
        ("DELETE /v1/queries/q", {}),
        ("DELETE /v1/relations/d.s.t", {}),
    )
    stream = {"database": "d", "schema": "s", "name": "t"}
    done = deleted(service, RESOURCES["leatstream_stream"], stream, (QUERY, writer), (QUERY, reader))
    assert (done.state, done.diagnostics) == (None, [])
    # A store's relation may be what a query makes, and be called a stream whatever it is.
    service = Script(
        monkeypatch,
        ("DELETE /v1/stores/k", used("stream d.s.q")),
        ("DELETE /v1/queries/q", {}),
        ("DELETE /v1/stores/k", {}),
    )
    done = deleted(service, RESOURCES["leatstream_store"], {"name": "k"}, (QUERY, writer))
    assert (done.state, done.diagnostics) == (None, [])


def test_what_stays_is_not_deleted_for_what_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Script(monkeypatch, ("DELETE /v1/databases/d", used("schema d.s")))
    done = deleted(service, DATABASE, {"name": "d"}, (QUERY, {"name": "q", "sink": "x.s.q"}))
    assert done.state is not None
    assert "has-dependents" in errors(done)
    assert {path for _, path, _ in service.asked} == {"/v1/databases/d"}
    assert service.now < 10
