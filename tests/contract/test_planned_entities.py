"""Topics that the same plan changes: queries infer from what they will be."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

CONTEXT = {"database": "demo", "schema": "public", "store": "k"}


def _properties(client: TestClient, sql: str, **assume: Any) -> dict[str, Any]:
    body = {"sql": sql, **CONTEXT, "assume": assume}
    [found] = client.post("/v1/statements:validate", json=body).json()["statements"]
    assert found["problems"] == []
    plan = found["plan"]
    told = plan["sink"]["properties"] if "sink" in plan else plan["properties"]
    return {name: told[name]["value"] for name in ("topic.partitions", "topic.replicas")}


def test_a_topic_that_is_there_counts_as_the_plan_leaves_it(pageviews: TestClient) -> None:
    """Terraform applies the topic first, and fails where a query then comes to other properties than planned."""
    sql = "CREATE STREAM views AS SELECT * FROM pageviews"
    now = _properties(pageviews, sql)
    grown = {"store": "k", "name": "pageviews", "kafka": {"partitions": now["topic.partitions"] + 5}}
    later = {**now, "topic.partitions": now["topic.partitions"] + 5}
    assert _properties(pageviews, sql, entities=[grown]) == later
    declared = "CREATE STREAM again (userid VARCHAR) WITH ('topic'='pageviews', 'value.format'='json')"
    assert _properties(pageviews, declared, entities=[grown]) == later
