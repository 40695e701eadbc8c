"""A column that is the headers of a stream's records: what the catalog, the plan and the job say of it."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.plan.logical import AnalyzedColumn
from leatstream.services.driver_calls import build_spec

CONTEXT = {"database": "demo", "schema": "public", "store": "k"}
NEW = "'topic.partitions'=1, 'topic.replicas'=1"
COLUMNS = "id BIGINT, h MAP<VARCHAR, BYTES>"


def _run(client: TestClient, sql: str) -> Any:
    return client.post("/v1/statements", json={"sql": sql, **CONTEXT})


def _make(client: TestClient, sql: str) -> None:
    answer = _run(client, sql)
    assert answer.status_code == 200, answer.text


def _problems(client: TestClient, sql: str) -> list[dict[str, Any]]:
    answer = client.post("/v1/statements:validate", json={"sql": sql, **CONTEXT})
    assert answer.status_code == 200, answer.text
    problems: list[dict[str, Any]] = answer.json()["statements"][-1]["problems"]
    return problems


def _stream(
    name: str, columns: str = COLUMNS, given: str = "'headers.column'='H'", kind: str = "json"
) -> str:
    more = f", {given}" if given else ""
    return f"CREATE STREAM {name} ({columns}) WITH ('topic'='{name}', 'value.format'='{kind}', {NEW}{more})"


def _job(fresh: Any, name: str) -> Any:
    with fresh.env.open_unit(write=False) as unit:
        return build_spec(fresh.env, unit, unit.queries.find(name))


@pytest.mark.parametrize("kind", ["json", "primitive"])
def test_a_job_gets_the_column_from_headers_and_to_headers(
    pageviews: TestClient, fresh: Any, kind: str
) -> None:
    """The column counts for no part of the value, so a plain value has one column beside it."""
    _make(pageviews, _stream("calls", kind=kind))
    _make(pageviews, _stream("traces", kind=kind))
    shown = pageviews.get("/v1/relations/demo.public.calls").json()
    assert shown["effective"]["headers.column"] == {"value": "h", "origin": "explicit", "from": None}
    _make(pageviews, "INSERT INTO traces SELECT * FROM calls QUERY WITH ('query.name'='q')")
    job = _job(fresh, "q")
    (source,) = job.sources
    assert (source.headers_column, source.fetches_headers, source.headers) == ("h", True, False)
    assert (job.sink.headers_column, job.sink.key_only) == ("h", [])


def test_a_changelog_of_plain_values_may_have_headers(pageviews: TestClient, fresh: Any) -> None:
    """Key, value and headers have a column each."""
    text = "CREATE CHANGELOG {0} (k VARCHAR, v DOUBLE, h MAP<VARCHAR, BYTES>, PRIMARY KEY (k)) WITH ("
    text += f"'topic'='{{0}}', 'value.format'='primitive', 'headers.column'='h', {NEW})"
    _make(pageviews, text.format("prices"))
    _make(pageviews, "INSERT INTO prices VALUES ('a', 1.0, MAP['x', X'01'])")
    (record,) = fresh.cluster.records["prices"]
    assert (record.key, len(record.value), record.headers) == (b"a", 8, (("x", b"\1"),))


def test_a_new_sink_has_the_column_that_is_asked_for(
    pageviews: TestClient, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not taken over from the source, and survives a change of the statement."""
    _make(pageviews, _stream("calls"))
    selected = [AnalyzedColumn("id", "bigint", True), AnalyzedColumn("H", "map<string,binary>", True)]
    monkeypatch.setattr(fresh.env.analyzer, "analyze", lambda *_: selected)
    text = "CREATE OR REPLACE STREAM made WITH ({}'topic'='made') AS SELECT id, h AS \"H\" FROM calls"
    _make(pageviews, text.format("'headers.column'=\"H\", "))
    assert _job(fresh, "made").sink.headers_column == "H"
    shown = pageviews.get("/v1/relations/demo.public.made").json()
    assert (shown["properties"]["headers.column"], shown["effective"]["headers.column"]["value"]) == (
        "H",
        "H",
    )
    (problem,) = _problems(pageviews, text.format("'headers.column'='x', "))
    assert (problem["code"], problem["hint"]) == ("unknown-column", 'Available: id, "H".')
    _make(pageviews, text.format(""))
    assert _job(fresh, "made").sink.headers_column is None


def test_a_relation_with_headers_is_put_twice_without_a_change(pageviews: TestClient) -> None:
    """As Terraform does; names in REST are exact, and a pointer tells the place of what is wrong."""
    columns = [{"name": "id", "type": "BIGINT"}, {"name": "Meta", "type": "MAP<VARCHAR, VARBINARY>"}]
    body = {"columns": columns, "store": "k", "topic": "pageviews", "value_format": "json"}
    path, given = "/v1/relations/demo.public.calls", {"properties": {"headers.column": "Meta"}}
    answers = [pageviews.put(path, json=body | given) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 200], answers[0].text
    assert answers[0].json()["properties"] == given["properties"]
    assert answers[1].json()["generation"] == 1
    wrong = pageviews.put(path, json=body | {"properties": {"headers.column": "id"}}).json()
    assert (wrong["code"], wrong["errors"][0]["pointer"]) == ("type-mismatch", "#/properties/headers.column")


def test_statements_write_headers(pageviews: TestClient, fresh: Any) -> None:
    _make(pageviews, _stream("calls", "id BIGINT, h MAP<VARCHAR, BYTES>, b VARCHAR"))
    _make(pageviews, _stream("texts", "h MAP<VARCHAR, VARCHAR> NOT NULL, id BIGINT"))
    _make(pageviews, "INSERT INTO calls VALUES (1, MAP['a', X'ff', 'b', NULL], 'x'), (2, NULL, 'y')")
    _make(pageviews, "INSERT INTO texts VALUES (MAP['a', 'ü'], 1)")
    told = [(r.value, r.headers) for r in fresh.cluster.records["calls"]]
    assert told == [
        (b'{"id":1,"b":"x"}', (("a", b"\xff"), ("b", None))),
        (b'{"id":2,"b":"y"}', ()),
    ]
    (record,) = fresh.cluster.records["texts"]
    assert (record.value, record.headers) == (b'{"id":1}', (("a", "ü".encode()),))


@pytest.mark.parametrize(
    ("columns", "given", "code", "told"),
    [
        ("id BIGINT", "'headers.column'='h'", "unknown-column", "h of 'headers.column' is not a column."),
        (
            "id BIGINT, h VARCHAR",
            "'headers.column'='h'",
            "type-mismatch",
            "Column h is VARCHAR; headers are a MAP<VARCHAR, BYTES>.",
        ),
        (
            "id BIGINT, h MAP<VARCHAR, BIGINT>",
            "'headers.column'='h'",
            "type-mismatch",
            "Column h is MAP<VARCHAR, BIGINT>; headers are",
        ),
        (
            "id BIGINT, h MAP<VARCHAR, BYTES>",
            "'headers.column'='h', 'key.format'='json', 'key.columns'='h'",
            "invalid-property",
            "Column h is in the record's key, so it cannot be its headers.",
        ),
        (
            "h MAP<VARCHAR, BYTES>",
            "'headers.column'='h'",
            "invalid-property",
            "No column is left beside that of 'headers.column'.",
        ),
        (
            "id BIGINT, h MAP<VARCHAR, BYTES>",
            "'headers.column'='h', 'key.format'='json', 'key.columns'='id', 'value.columns.exclude'='id'",
            "invalid-property",
            "No column is left for the value beside those of 'value.columns.exclude' and 'headers.column'.",
        ),
        ("id BIGINT", "'headers.column'=''", "invalid-property", "'headers.column' is empty."),
    ],
)
def test_what_cannot_be_headers(
    pageviews: TestClient, columns: str, given: str, code: str, told: str
) -> None:
    (problem,) = _problems(pageviews, _stream("calls", columns, given))
    assert (problem["code"], told in problem["detail"]) == (code, True), problem
    assert problem["position"]["line"] == 1
    assert pageviews.get("/v1/relations/demo.public.calls").status_code == 404


def test_an_insert_cannot_choose_the_column(pageviews: TestClient) -> None:
    _make(pageviews, _stream("calls"))
    _make(pageviews, _stream("traces", given=""))
    sql = "INSERT INTO traces WITH ('headers.column'='h') SELECT * FROM calls"
    (problem,) = _problems(pageviews, sql)
    assert (problem["code"], "headers.column cannot be given" in problem["detail"]) == (
        "invalid-property",
        True,
    )


def test_a_stream_in_use_keeps_its_headers(pageviews: TestClient, fresh: Any) -> None:
    """Declared or made by a query: a running reader would look for the column in the value."""
    replaced = _stream("calls").replace("CREATE", "CREATE OR REPLACE")
    other = _stream("calls", given="").replace("CREATE", "CREATE OR REPLACE")
    for sql in (replaced, other, replaced):
        _make(pageviews, sql)
    _make(pageviews, _stream("traces"))
    _make(pageviews, "INSERT INTO traces SELECT * FROM calls QUERY WITH ('query.name'='q')")
    held = _run(pageviews, other)
    assert (held.status_code, held.json()["code"]) == (409, "has-dependents"), held.text
    assert _job(fresh, "q").sources[0].headers_column == "h"


def test_a_sink_that_is_read_keeps_its_headers(
    pageviews: TestClient, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the stream is made by a query whose statement changes."""
    selected = [AnalyzedColumn("id", "bigint", True), AnalyzedColumn("h", "map<string,binary>", True)]
    monkeypatch.setattr(fresh.env.analyzer, "analyze", lambda *_: selected)
    _make(pageviews, _stream("calls"))
    _make(pageviews, _stream("traces"))
    made = "CREATE OR REPLACE STREAM made WITH ({}'topic'='made') AS SELECT id, h FROM calls"
    _make(pageviews, made.format("'headers.column'='h', "))
    _make(pageviews, "INSERT INTO traces SELECT * FROM made QUERY WITH ('query.name'='q')")
    held = _run(pageviews, made.format(""))
    assert held.status_code == 409, held.text
    assert "The shape of demo.public.made" in held.json()["detail"]
    again = made.format("'headers.column'='h', ").replace("FROM calls", "FROM calls WHERE id > 1")
    _make(pageviews, again)
