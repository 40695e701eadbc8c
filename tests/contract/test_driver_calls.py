"""A driver runs users' code, so its token is a stranger's: it acts for that driver and its work only."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from leatstream.engine.analysis import AnalysisQueue
from leatstream.model.objects import QueryState
from leatstream.plan.logical import AnalyzedColumn, ViewSchema
from leatstream.services.driver_calls import fencing_token

SQL = "CREATE STREAM views AS SELECT * FROM pageviews"
VIEWS = [ViewSchema("v", "n BIGINT")]
FORGED = {"columns": [{"name": "n", "type": "string", "nullable": True}]}
TRUE = {"columns": [{"name": "n", "type": "bigint", "nullable": True}]}
CALLS = ("poll", "heartbeat", "analysis/a1", "rows", "secrets", "function-sources")


class Asking(threading.Thread):
    """Somebody whose statement is being typed."""

    def __init__(self, queue: AnalysisQueue) -> None:
        super().__init__(daemon=True)
        self.queue = queue
        self.answer: Any = None
        self.start()

    def run(self) -> None:
        self.answer = self.queue.analyze(VIEWS, "SELECT n FROM v", 20)


def _post(client: TestClient, driver: str, call: str, body: Any) -> Any:
    headers = {"Authorization": f"Bearer token of {driver}", "Content-Type": "application/json"}
    return client.post(f"/v1/drivers/{driver}/{call}", content=json.dumps(body), headers=headers)


@pytest.fixture
def analyzers(fresh: Any, client: TestClient) -> TestClient:
    """Two analyzers, a dedicated and a shared driver."""
    fresh.env.analyzer = AnalysisQueue(lambda: None)
    names = ("analyzer1", "analyzer2", "dedicated", "shared")
    fresh.drivers.tokens |= {name: f"token of {name}" for name in names}
    fresh.drivers.shared["shared"] = []
    roles = {"analyzer1": "analyzer", "analyzer2": "analyzer", "dedicated": "dedicated", "shared": "shared"}
    fresh.drivers.role = roles.get
    return client


def test_an_analysis_is_answered_by_the_driver_that_was_given_it(analyzers: TestClient, fresh: Any) -> None:
    asking = Asking(fresh.env.analyzer)
    work = None
    while work is None:  # the long poll wakes up when something is asked
        work = _post(analyzers, "analyzer1", "poll", {"state": "idle"}).json()["work"]
    # Ids cannot be guessed from one another, and answers of others change nothing.
    assert len(work["id"]) > 16
    for driver, status in (("dedicated", 403), ("shared", 403), ("analyzer2", 204)):
        assert _post(analyzers, driver, f"analysis/{work['id']}", FORGED).status_code == status
    assert _post(analyzers, "analyzer1", f"analysis/{work['id']}", TRUE).status_code == 204
    asking.join(20)
    column = AnalyzedColumn("n", "bigint", nullable=True)
    assert asking.answer == [column]
    assert fresh.env.analyzer.analyze(VIEWS, "SELECT n FROM v", 0.1) == [column]  # what is remembered


@pytest.fixture
def at_work(fresh: Any, pageviews: TestClient) -> Iterator[tuple[TestClient, dict[str, Any]]]:
    """A driver with a query, and its heartbeat."""
    fresh.drivers.tokens["d"] = "token of d"
    body = {"sql": SQL, "database": "demo", "store": "k"}
    assert pageviews.put("/v1/queries/q", json=body).status_code == 201
    with fresh.units() as unit:
        query = unit.queries.find("q")
        status = replace(query.status, state=QueryState.STARTING, driver_id="d", attempt=1)
        query = replace(query, status=replace(status, observed_generation=query.meta.generation))
        unit.queries.update(query)
        unit.commit()
    fresh.drivers.queries["d"] = query.meta.id
    beat = {"query_id": query.meta.id, "attempt": 1, "fencing_token": fencing_token(query)}
    return pageviews, beat | {"state": "running"}


@pytest.mark.parametrize(
    ("call", "body"),
    [
        ("poll", {"state": "idle", "running": ["q"]}),
        ("poll", {"state": "away"}),
        ("poll", {"state": "idle", "pid": "me"}),
        ("heartbeat", {}),
        ("heartbeat", {"log": 5}),
        ("heartbeat", {"error": "it failed", "state": "failed"}),
        ("heartbeat", {"error": {"code": 5, "detail": {}}, "state": "failed"}),
        ("heartbeat", {"error": {"code": "job-failed", "detail": "", "newest_attempt": 2**80}}),
        ("heartbeat", {"progress": {"sources": {"a": 1}}}),
        ("heartbeat", {"progress": {"sources": [{"relation": "r", "entity": "e", "partition_lags": 3}]}}),
        ("heartbeat", {"progress": {"watermark": "yesterday"}}),
        ("heartbeat", {"progress": {"batch_duration_ms": "long"}}),
        ("heartbeat", {"reached": []}),
        ("heartbeat", {"query_id": "\ud800"}),
        ("analysis/a1", {"columns": [{}]}),
        ("analysis/a1", {"columns": 5}),
        ("analysis/a1", {"failure": "no"}),
        ("analysis/a1", {"failure": {}}),
        ("analysis/a1", {"failure": {"condition": "C", "message": "m", "more": [{}]}}),
        ("heartbeat", {"pulse": {"age_seconds": "long"}}),
        ("heartbeat", {"pulse": {"age_seconds": 1e300}}),
        ("heartbeat", {"error": {"code": "job-failed", "detail": "", "record": "orders:0:1"}}),
        ("heartbeat", {"error": {"code": "job-failed", "detail": "", "span": [1]}}),
        ("heartbeat", {"error": {"code": "job-failed", "detail": "", "columns": 5}}),
        ("rows", {"select": "s", "sequence": "first"}),
        ("rows", {"select": "s", "sequence": 1, "rows": [["+I"]]}),
        ("rows", {"select": "s", "sequence": 1, "error": 5}),
        ("secrets", {"references": 5}),
        ("secrets", {"references": "abc"}),
        ("function-sources", {"digests": [[]]}),
        *((call, body) for call in CALLS for body in ([], None, "x", 5)),
    ],
)
def test_a_malformed_report_is_the_driver_s_fault(
    at_work: tuple[TestClient, dict[str, Any]], call: str, body: Any
) -> None:
    client, beat = at_work
    whole = beat | body if call == "heartbeat" and body and isinstance(body, dict) else body
    answer = _post(client, "d", call, whole)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation"), answer.text
    assert client.get("/v1/queries/q").status_code == 200


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_MEMBERS = st.sampled_from(
    [
        "state",
        "running",
        "error",
        "progress",
        "free",
        "reached",
        "log",
        "columns",
        "failure",
        "select",
        "sequence",
        "rows",
        "references",
        "digests",
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(call=st.sampled_from(CALLS[1:]), body=st.dictionaries(_MEMBERS, _JSON, max_size=3))
def test_no_report_breaks_the_server_or_what_users_see(
    at_work: tuple[TestClient, dict[str, Any]], call: str, body: dict[str, Any]
) -> None:
    client, beat = at_work
    assert _post(client, "d", call, beat | body if call == "heartbeat" else body).status_code < 500
    seen = ("/v1/queries/q", "/metrics", "/v1/queries/q/logs", "/v1/queries/q/events")
    assert [client.get(path).status_code for path in seen] == [200] * len(seen)


def test_odd_texts_in_a_log_are_kept_readable(at_work: tuple[TestClient, dict[str, Any]]) -> None:
    """Bytes that are no text reach the log as lone surrogates, which no answer could hold."""
    client, beat = at_work
    assert _post(client, "d", "heartbeat", beat | {"log": ["a\udc80b\x00c"]}).status_code == 200
    assert client.get("/v1/queries/q/logs").json() == {"lines": ["a?b?c"]}


def test_a_driver_speaks_for_its_own_query_only(
    at_work: tuple[TestClient, dict[str, Any]], fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it knows of another's: id, attempt and fencing token."""
    client, beat = at_work
    monkeypatch.setattr("leatstream.rest.routes.drivers._LONG_POLL", 0.0)
    fresh.drivers.tokens["other"] = "token of other"
    fresh.drivers.shared["other"] = [beat["query_id"]]  # even where its own list is wrong: the catalog counts
    for call, body in (
        ("heartbeat", beat | {"state": "failed"}),
        ("secrets", {"query_id": beat["query_id"], "references": ["secret://x"]}),
        ("function-sources", {"query_id": beat["query_id"], "digests": ["x"]}),
        ("rows", {"select": beat["query_id"], "sequence": 1, "rows": [["+I", "{}"]]}),
    ):
        assert _post(client, "other", call, body).status_code == 409, call
    assert _post(client, "other", "poll", {"state": "idle", "running": {}}).json() == {"work": None}
    assert client.get("/v1/queries/q").json()["status"]["state"] == "starting"
