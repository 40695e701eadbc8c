"""MATCH_RECOGNIZE on the real services: typed, planned, refused where no sink can take it."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

from leatstream.plan.job_spec import JobSpec

MATCH = (
    "SELECT * FROM pageviews MATCH_RECOGNIZE (PARTITION BY userid ORDER BY rowtime MEASURES MATCH_ROWTIME() AS at"
    " PATTERN (a b{1,3}) WITHIN 5 MINUTES DEFINE a AS userid = 'x')"
)
CONTEXT = {"database": "demo", "schema": "public", "store": "k"}


def validated(client: TestClient, sql: str) -> dict[str, Any]:
    answer = client.post("/v1/statements:validate", json={"sql": sql, **CONTEXT})
    assert answer.status_code == 200, answer.text
    (statement,) = answer.json()["statements"]
    found: dict[str, Any] = statement
    return found


def test_a_query_of_matches(pageviews: TestClient, fresh: Any) -> None:
    statement = f"CREATE STREAM m WITH ('topic'='m', 'topic.partitions'=1, 'topic.replicas'=1) AS {MATCH}"
    told = validated(pageviews, statement)
    assert told["problems"] == []
    plan = told["plan"]
    assert (plan["mode"], plan["output_mode"]) == ("micro_batch", "append")
    assert "patterns" in plan["mode_reason"]
    assert [(c["name"], c["type"]) for c in plan["sink"]["columns"]] == [
        ("p0", "BOOLEAN"),
        ("m0", "TIMESTAMP_LTZ"),
    ]
    assert validated(pageviews, MATCH)["problems"] == []

    made = pageviews.put("/v1/queries/q", json={"sql": statement, **CONTEXT})
    assert made.status_code == 201, made.text
    with fresh.env.open_unit(write=False) as unit:
        query = unit.queries.find("q")
    job = JobSpec.model_validate(query.job)
    assert job.operator is not None
    assert job.operator.pattern is not None
    assert job.operator.pattern.within_ms == 300_000
    assert job.sources[0].watermark_delay_ms is not None
    for other, kind in (
        (statement.replace("SELECT *", "SELECT at"), "restart-keep-state"),
        (statement.replace("b{1,3}", "b"), "new-state"),
    ):
        answer = pageviews.post("/v1/statements:validate", json={"sql": other, "name": "q", **CONTEXT})
        assert answer.json()["statements"][0]["plan"]["change"]["class"] == kind


def test_a_view_of_matches_is_filled_anew_when_they_give_something_else(pageviews: TestClient) -> None:
    """What was written before would stand among the new rows for ever."""
    view = f"CREATE MATERIALIZED VIEW v AS {MATCH}".replace("MATCH_ROWTIME()", "FIRST(b.viewtime)")
    assert pageviews.post("/v1/statements", json={"sql": view, **CONTEXT}).status_code == 200
    for other, kind in (
        (view, "none"),
        (view.replace("FIRST(b", "LAST(b"), "new-state"),
        (
            view.replace(
                "FROM pageviews", "FROM pageviews WITH ('source.deserialization.error.handling'=IGNORE)"
            ),
            "restart-keep-state",
        ),
    ):
        answer = pageviews.post("/v1/statements:validate", json={"sql": other, "name": "v", **CONTEXT})
        assert answer.json()["statements"][0]["plan"]["change"]["class"] == kind, answer.text
