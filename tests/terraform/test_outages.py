"""What passes while Terraform waits, such as a server that starts anew, replaces nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from short_form import later, one_in

STORE = """
resource "leatstream_store" "kafka" {
  name  = "kafka"
  kafka = { bootstrap_servers = "localhost:9092" }
}
"""
QUERY = """
resource "leatstream_query" "filtered" {
  name     = "filtered"
  database = "demo"
  sql      = "CREATE STREAM filtered AS SELECT * FROM demo.public.pageviews"
  timeouts = { create = "%s" }
}
"""


@pytest.fixture
def source(double: Any) -> None:
    double.objects[("relation", "demo", "public", "pageviews")] = {"_body": None}


def failing(
    double: Any, call: str, when: Callable[[Any], bool], *faults: Exception, ever: bool = False
) -> None:
    """The next calls that fit fail with these; the last one for ever if asked."""
    plain, left = getattr(double, call), list(faults)

    def answer(key: Any, body: Any, headers: Any, query: Any) -> Any:
        if left and when((key, query)):
            raise left[0] if ever and len(left) == 1 else left.pop(0)
        return plain(key, body, headers, query)

    setattr(double, call, answer)


def waits(asked: Any) -> bool:
    return "wait_for" in asked[1]


@pytest.mark.parametrize(
    "code", one_in(3, ["catalog-unreachable", "catalog-busy", "catalog-full", "engine-unavailable"])
)
def test_a_wait_outlives_what_passes(
    with_double: Any, double: Any, problem: Any, source: None, code: str
) -> None:
    failing(double, "on_get", waits, problem(503, code, "not now"), problem(503, code, "not now"))
    with_double.write(QUERY % "30s")
    with_double.init()
    with_double.apply()
    with_double.is_settled()


def test_a_wait_outlives_a_server_that_starts_anew(with_double: Any, double: Any, source: None) -> None:
    failing(double, "on_get", waits, *[ConnectionResetError("starts anew")] * 4)
    with_double.write(QUERY % "30s")
    with_double.init()
    with_double.apply()
    with_double.is_settled()


def test_a_new_query_out_of_sight_is_awaited_and_not_replaced(
    with_double: Any, double: Any, problem: Any, source: None
) -> None:
    plain = double.on_get
    failing(double, "on_get", waits, problem(503, "catalog-unreachable", "away"), ever=True)
    with_double.write(QUERY % "1s")
    with_double.init()
    with_double.apply()
    written = len(double.log)
    assert with_double.plan().actions() == {"leatstream_query.filtered": ["update"]}
    double.on_get = plain
    with_double.apply()
    assert len(double.log) == written, "waiting writes nothing"
    with_double.is_settled()


def test_a_busy_catalog_is_written_to_again(with_double: Any, double: Any, problem: Any) -> None:
    double.refuse = [problem(503, "catalog-busy", "busy")]
    with_double.write(STORE)
    with_double.init()
    with_double.apply()
    with_double.is_settled()


def test_a_delete_outlives_what_passes(with_double: Any, double: Any, problem: Any, source: None) -> None:
    with_double.write(QUERY % "30s")
    with_double.init()
    with_double.apply()
    failing(double, "on_delete", lambda _: True, problem(503, "catalog-unreachable", "away"))
    gone, left = double.on_delete, [True]

    def stopping(*asked: Any) -> Any:
        gone(*asked)
        left.append(True)
        return 202, {}

    double.on_delete = stopping
    failing(
        double,
        "on_get",
        lambda asked: len(left) > 1 and asked[0][0] == "query",
        problem(503, "catalog-unreachable", "away"),
        *[ConnectionResetError("starts anew")] * 3,
    )
    with_double.destroy()
    assert ("query", "filtered") not in double.objects


@pytest.mark.parametrize("answer", later(["away", "none"], ["away"]))
def test_a_change_that_was_kept_although_its_answer_was_lost_is_taken_for_done(
    with_double: Any, double: Any, problem: Any, answer: str
) -> None:
    """Of a change that was just being written nobody knows; what is sent again meets itself."""
    plain, lost = double.on_put, []
    away = problem(503, "catalog-unreachable", "away") if answer == "away" else ConnectionResetError("anew")

    def kept(*asked: Any) -> Any:
        answer = plain(*asked)
        if asked[0] not in lost:
            lost.append(asked[0])
            raise away
        return answer

    double.on_put = kept
    with_double.write(STORE)
    with_double.init()
    with_double.apply()
    with_double.is_settled()
    lost.clear()
    with_double.write(STORE.replace("localhost:9092", "localhost:9093"))
    with_double.apply()
    assert lost, "the change was kept, and its answer lost"
    with_double.is_settled()


def test_what_somebody_else_made_meanwhile_is_not_taken_for_ones_own(
    with_double: Any, double: Any, problem: Any
) -> None:
    plain, left = double.on_put, [True]

    def overtaken(key: Any, body: Any, headers: Any, query: Any) -> Any:
        if left:
            left.clear()
            plain(key, body | {"kafka": {"bootstrap_servers": "elsewhere:9092"}}, {}, query)
            raise problem(503, "catalog-unreachable", "away")
        return plain(key, body, headers, query)

    double.on_put = overtaken
    with_double.write(STORE)
    with_double.init()
    said = with_double.fails("apply", "-auto-approve")
    assert "import it" in said


@pytest.mark.core
def test_every_request_outlives_a_server_that_starts_again(
    with_double: Any, double: Any, problem: Any, source: None
) -> None:
    """Greetings, reads and dry runs failed the run at the first lost connection."""
    plain, asked = double.handle, set()

    def first_of_its_kind_is_lost(method: str, target: str, body: Any, headers: Any) -> Any:
        call = (method, target.partition("?")[0])
        if call not in asked:
            asked.add(call)
            raise ConnectionResetError("starts again")
        return plain(method, target, body, headers)

    double.handle = first_of_its_kind_is_lost
    with_double.write(STORE + QUERY % "30s")
    with_double.init()
    with_double.apply()
    asked.clear()
    with_double.is_settled()
    assert {("GET", "/v1/server"), ("GET", "/v1/queries/filtered")} <= asked
    asked.clear()
    with_double.write((STORE + QUERY % "30s").replace("SELECT *", "SELECT  userid"))
    with_double.apply()
    assert ("POST", "/v1/statements:validate") in asked
    asked.clear()
    with_double.destroy()
    assert ("query", "filtered") not in double.objects


def test_a_store_that_answers_late_fails_nothing(
    with_double: Any, double: Any, problem: Any, source: None
) -> None:
    late = problem(503, "store-unreachable", "store kafka: no broker answered in 4 s")
    with_double.write(STORE + QUERY % "30s")
    with_double.init()
    plain, left = double.validate, [True]

    def validate(body: Any) -> Any:
        if left:
            left.clear()
            fault = {"code": "store-unreachable", "detail": "no broker answered in 4 s"}
            return {"valid": False, "statements": [{"kind": "x", "plan": None, "problems": [fault]}]}
        return plain(body)

    double.validate = validate
    failing(double, "on_put", lambda asked: asked[0][0] == "query", late)
    failing(double, "on_delete", lambda asked: asked[0][0] == "store", late)
    with_double.apply()
    with_double.is_settled()
    with_double.destroy()
