"""Lists on a terminal of some width."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from own_clock import set_clock
from rich.cells import cell_len
from rich.console import Console

from leatstream.cli import top
from leatstream.cli.fitting import GAP, age, fitted
from leatstream.cli.top import figures

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Result, Service

    Leat = Callable[..., Result]

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
RELATIONS = ("fqn", "kind", "store", "entity", "value_format", "comment", "owner", "created_at", "updated_at")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output is a terminal of 80 columns."""
    monkeypatch.setattr("leatstream.cli.output.terminal_width", lambda: 80)


def listed(count: int = 3) -> dict[str, Any]:
    time = "2026-01-31T11:58:00.572363+00:00"
    rows = [
        [
            f"demo.public.pageviews_{i}",
            "stream",
            "embedded",
            f"pageviews_{i}",
            "json",
            "",
            "sysadmin",
            time,
            time,
        ]
        for i in range(count)
    ]
    columns = [{"name": name, "type": "VARCHAR"} for name in RELATIONS]
    context = {"database": "demo", "schema": "public", "store": None, "role": None}
    result = {"kind": "list_relations", "status": "succeeded", "columns": columns, "rows": rows}
    return {"results": [result], "context": context}


@pytest.mark.parametrize(
    ("back", "shown"),
    [
        (timedelta(seconds=5), "5s ago"),
        (timedelta(seconds=119), "1m ago"),
        (timedelta(minutes=2), "2m ago"),
        (timedelta(hours=3, minutes=59), "3h ago"),
        (timedelta(days=4), "4d ago"),
        (timedelta(days=90), "2025-11-02"),
        (timedelta(seconds=-0.5), "0s ago"),
        (timedelta(hours=-2), "2026-01-31"),
    ],
)
def test_times_are_told_as_ages(back: timedelta, shown: str) -> None:
    assert age((NOW - back).isoformat(), NOW) == shown


@pytest.mark.parametrize("text", ["", "yesterday", "12"])
def test_what_is_no_time_stays(text: str) -> None:
    assert age(text, NOW) == text


@pytest.mark.usefixtures("terminal")
def test_a_list_of_relations_fits_eighty_columns(service: Service, leat: Leat) -> None:
    service.answer("POST", "/v1/statements", listed())
    lines = leat("sql", "LIST RELATIONS;").out.splitlines()
    assert len(lines) == 2 + 3, "no row is folded"
    assert max(map(cell_len, lines)) <= 80
    assert lines[0].split() == ["fqn", "kind", "store", "entity", "value_format", "comment"]
    assert lines[2].split() == ["pageviews_0", "stream", "embedded", "pageviews_0", "json"]


@pytest.mark.usefixtures("terminal")
def test_wide_shows_everything(service: Service, leat: Leat) -> None:
    service.answer("POST", "/v1/statements", listed(1))
    out = leat("sql", "LIST RELATIONS;", "--wide").out
    assert out.splitlines()[0].split() == list(RELATIONS)


def test_a_pipe_gets_whole_rows(service: Service, leat: Leat) -> None:
    service.answer("POST", "/v1/statements", listed(1))
    out = leat("sql", "LIST RELATIONS;").out
    assert out.splitlines()[0].split() == list(RELATIONS)
    assert "2026-01-31T11:58:00.572363+00:00" in out


def test_names_are_shortened_before_texts_are_cut() -> None:
    heads = ("fqn", "store", "comment")
    rows = [[f"demo.public.a_rather_long_name_{i}", "kafka", "a remark of some length"] for i in range(2)]
    _, cells, left_out = fitted(heads, rows, 60, NOW)
    assert [row[0] for row in cells] == ["a_rather_long_name_0", "a_rather_long_name_1"]
    assert left_out == 0


def test_names_of_several_schemas_stay_whole() -> None:
    rows = [["demo.public.orders", "x" * 80], ["demo.other.orders", "y" * 80]]
    assert [row[0] for row in fitted(("fqn", "comment"), rows, 50, NOW)[1]] == [row[0] for row in rows]


def test_long_texts_are_cut_and_wide_letters_counted() -> None:
    heads, rows, _ = fitted(("name", "sql"), [["查询", "SELECT\n  " + "東" * 60]], 40, NOW)
    assert rows[0][0] == "查询"
    assert rows[0][1].startswith("SELECT 東")
    assert rows[0][1].endswith("…")
    assert sum(max(map(cell_len, pair)) for pair in zip(heads, *rows, strict=True)) + GAP <= 40


def test_the_statement_is_cut_before_the_cause() -> None:
    cause = "record 3:42 cannot be read"
    _, rows, _ = fitted(("name", "message", "sql"), [["q", cause, "SELECT " + "a, " * 30]], 60, NOW)
    assert rows[0][1] == cause
    assert rows[0][2].startswith("SELECT")


def test_columns_that_do_not_fit_are_counted() -> None:
    heads = [f"column_{number}" for number in range(9)]
    shown, rows, left_out = fitted(heads, [["x"] * 9], 40, NOW)
    assert shown == heads[: len(shown)]
    assert len(rows[0]) == len(shown) == 9 - left_out < 9


def test_a_name_wider_than_the_terminal_is_all_that_is_shown() -> None:
    shown, rows, left_out = fitted(("name", "state"), [["n" * 90, "running"]], 30, NOW)
    assert (shown, left_out) == (["name"], 1)
    assert len(rows[0][0]) == 30


PLAN = {
    "sink": {
        "fqn": "demo.public.s",
        "properties": {
            "topic.partitions": {"value": 3, "origin": "inferred", "from": "pageviews"},
            "value.format": {"value": "json", "origin": "given"},
        },
    }
}


def test_a_plan_shows_its_properties_with_their_origin(service: Service, leat: Leat) -> None:
    columns = [{"name": "kind", "type": "VARCHAR"}, {"name": "plan", "type": "JSON"}]
    result = {"kind": "describe_statement", "columns": columns, "rows": [["create_stream_as", PLAN]]}
    answer = {"results": [result], "context": {"database": None, "schema": None, "store": None}}
    service.answer("POST", "/v1/statements", answer)
    lines = [line.split() for line in leat("sql", "DESCRIBE CREATE STREAM s AS SELECT …").out.splitlines()]
    at = lines.index(["property", "value", "origin", "from"])
    assert lines[at - 1] == ["properties:"]
    assert lines[at + 2 : at + 4] == [
        ["topic.partitions", "3", "inferred", "pageviews"],
        ["value.format", "json", "given"],
    ]


def test_a_relation_shows_its_properties_below_its_columns(service: Service, leat: Leat) -> None:
    columns = [{"name": "column", "type": "VARCHAR"}, {"name": "type", "type": "VARCHAR"}]
    thing = {"noun": "relation", "name": "demo.public.s", "effective": PLAN["sink"]["properties"]}
    result = {"kind": "describe_relation", "object": thing, "columns": columns, "rows": [["id", "BIGINT"]]}
    answer = {"results": [result], "context": {"database": None, "schema": None, "store": None}}
    service.answer("POST", "/v1/statements", answer)
    lines = [line.split() for line in leat("sql", "DESCRIBE STREAM s").out.splitlines()]
    assert lines.index(["id", "BIGINT"]) < (at := lines.index(["property", "value", "origin", "from"]))
    assert lines[at + 2] == ["topic.partitions", "3", "inferred", "pageviews"]
    assert leat("sql", "--output", "csv", "DESCRIBE STREAM s").out == "column,type\nid,BIGINT\n"


QUERY = {
    "id": "q1",
    "name": "q",
    "kind": "stream",
    "sql": "INSERT INTO …",
    "status": {
        "desired_state": "running",
        "state": "failed",
        "message": None,
        "error": {"code": "source-gone", "detail": "Topic t is gone.", "hint": "Create it."},
        "restarts": 2,
        "since": "2026-01-31T11:58:00Z",
        "metrics": {"input_rows_per_second": 10.1},
    },
}


def test_a_query_shows_its_state_and_cause_first(service: Service, leat: Leat) -> None:
    service.answer("GET", "/v1/queries/q", QUERY)
    lines = [line.strip() for line in leat("query", "get", "q").out.splitlines()]
    assert lines[:8] == [
        "name: q",
        "kind: stream",
        "status:",
        "state: failed",
        "since: 2026-01-31T11:58:00Z",
        "error:",
        "code: source-gone",
        "detail: Topic t is gone.",
    ]
    assert json.loads(leat("query", "get", "q", "-o", "json").out) == QUERY
    assert list(json.loads(leat("query", "get", "q", "-o", "json").out)) == list(QUERY)


def running(name: str, **metrics: Any) -> dict[str, Any]:
    status = {"state": "running", "since": "2026-01-31T11:58:00Z", "restarts": 0, "metrics": metrics}
    return {"name": name, "status": status}


def test_top_shows_trouble_first_and_no_figures_of_jobs_that_have_ended() -> None:
    lags = [{"relation": "a", "entity": "a", "lag": 5}, {"relation": "b", "entity": "b", "lag": None}]
    items = [running("b", input_rows_per_second=1234.4, output_rows_per_second=0.25, sources=lags), QUERY]
    assert [row[:2] + row[3:] for row in figures(items)] == [
        ("q", "failed", None, None, None, 2, "Topic t is gone."),
        ("b", "running", "1,234", "0.2", 5, 0, None),
    ]


def test_top_shows_every_kind_of_trouble_before_healthy_queries() -> None:
    def in_state(name: str, state: str) -> dict[str, Any]:
        return {"name": name, "status": {"state": state, "metrics": {}}}

    items = [
        running("a_healthy"),
        in_state("b_stopped", "stopped"),
        running("c_still", waits_for="Kafka at broker:9092 does not answer"),
        in_state("d_starting", "starting"),
        in_state("e_pending", "pending"),
        in_state("f_lost", "lost"),
        in_state("g_failed", "failed"),
    ]
    shown = ["g_failed", "c_still", "f_lost", "e_pending", "d_starting", "a_healthy", "b_stopped"]
    assert [row[0] for row in figures(items)] == shown


def test_top_once_is_for_scripts(service: Service, leat: Leat) -> None:
    answer = {"items": [running("b"), QUERY], "next_page_token": None}
    service.answer("GET", "/v1/queries", answer)
    lines = leat("query", "top", "--once").out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["q", "b"]
    assert json.loads(leat("query", "top", "-o", "json").out) == answer


def test_top_ends_on_ctrl_c(service: Service, leat: Leat, monkeypatch: pytest.MonkeyPatch) -> None:
    service.answer("GET", "/v1/queries", {"items": [running("b")], "next_page_token": None})
    looks: list[float] = []
    screen = io.StringIO()

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            raise KeyboardInterrupt

    monkeypatch.setenv("TERM", "xterm")
    console = Console(file=screen, force_terminal=True, width=80)
    monkeypatch.setattr("leatstream.cli.top.stdout", lambda: console)
    set_clock(monkeypatch, top, sleep=sleep)
    assert leat("query", "top", "--interval", "0.5").status == 0
    assert looks == [0.5, 0.5]
    assert "Ctrl-C ends" in screen.getvalue()
