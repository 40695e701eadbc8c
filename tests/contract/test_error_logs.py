"""IGNORE_AND_LOG at planning: which topics a log may be, and that the job is told."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

SETUP = """
CREATE STORE k WITH ('type'=KAFKA, 'uris'='localhost:9092', 'tls.disabled'=TRUE);
CREATE STORE other WITH ('type'=KAFKA, 'uris'='localhost:9093', 'tls.disabled'=TRUE);
CREATE ENTITY pageviews IN STORE k WITH ('topic.partitions'=3, 'topic.replicas'=1);
CREATE ENTITY bad IN STORE k WITH ('topic.partitions'=1, 'topic.replicas'=1);
CREATE DATABASE demo;
USE DATABASE demo; USE STORE k;
CREATE STREAM pageviews (viewtime BIGINT NOT NULL, userid VARCHAR) WITH ('value.format'='json');
"""
HANDLING = "'source.deserialization.error.handling'=IGNORE_AND_LOG"
TOPIC = "'source.deserialization.error.log.topic'"
STORE = "'source.deserialization.error.log.store'"


@pytest.fixture
def check(client: TestClient) -> Any:
    """Validates CREATE STREAM views AS SELECT with source properties."""
    context: dict[str, Any] = {}
    for text in SETUP.strip().split(";\n"):
        answer = client.post("/v1/statements", json={"sql": text, **context})
        assert answer.status_code == 200, answer.text
        context = answer.json()["context"]

    def validate(properties: str, sink: str = "") -> dict[str, Any]:
        text = f"CREATE STREAM views {sink} AS SELECT * FROM pageviews WITH ({properties})"
        answer = client.post("/v1/statements:validate", json={"sql": text, "database": "demo", "store": "k"})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()["statements"][0]
        return found

    return validate


def test_a_log_runs_in_batches(check: Any) -> None:
    plan = check(f"{HANDLING}, {TOPIC}='bad', {STORE}=\"k\"")["plan"]
    assert plan["mode"] == "micro_batch"


@pytest.mark.parametrize(
    ("properties", "code", "says"),
    [
        (f"{HANDLING}, {TOPIC}='none'", "invalid-property", "does not exist in store 'k'"),
        (f"{HANDLING}, {TOPIC}='pageviews'", "invalid-property", "read or written by the query"),
        (f"{HANDLING}, {TOPIC}='views'", "invalid-property", "read or written by the query"),
        (f"{HANDLING}, {TOPIC}='bad', {STORE}='other'", "unsupported", "lies in the sink's store"),
    ],
)
def test_logs_that_cannot_be(check: Any, properties: str, code: str, says: str) -> None:
    found = check(properties)
    assert [p["code"] for p in found["problems"]] == [code]
    assert says in found["problems"][0]["detail"]
