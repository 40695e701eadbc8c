"""SQLSTATEs of what is missing and of what is taken are the reference product's."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

CONTEXT = {"database": "demo", "schema": "public", "store": "k"}
WITH = "WITH ('topic' = 'pageviews', 'value.format' = 'json')"
MISSING = [
    ("DESCRIBE DATABASE nope", "3D002"),
    ("DROP DATABASE nope", "3D002"),
    ("CREATE SCHEMA s IN DATABASE nope", "3D002"),
    (f"CREATE STREAM nope.public.s (a INT) {WITH}", "3D002"),
    ("CREATE STREAM nope.public.s AS SELECT * FROM pageviews", "3D002"),
    ("DROP SCHEMA nope.s", "3D002"),
    ("DESCRIBE SCHEMA nope", "3D003"),
    ("DROP SCHEMA nope", "3D003"),
    (f"CREATE STREAM nope.s (a INT) {WITH}", "3D003"),
    ("CREATE STREAM nope.s AS SELECT * FROM pageviews", "3D003"),
    ("DROP STORE nope", "3D006"),
    ("DROP QUERY nope", "3D019"),
    ("DROP STREAM nope", "3D020"),
    ("DROP SECRET nope", "3D016"),
    ("DROP FUNCTION nope", "3D017"),
    ("DROP FUNCTION_SOURCE nope", "3D018"),
    ("DROP SCHEMA_REGISTRY nope", "3D009"),
    ("DROP DESCRIPTOR_SOURCE nope", "3D011"),
]
TAKEN = [
    ("CREATE DATABASE demo", "42P04"),
    ("CREATE STORE k WITH ('type' = KAFKA, 'uris' = 'localhost:9092')", "42P05"),
    ("CREATE SCHEMA public", "42P06"),
    (f"CREATE STREAM pageviews (a INT) {WITH}", "42P17"),
    (f"CREATE CHANGELOG pageviews (a INT, PRIMARY KEY (a)) {WITH}", "42P17"),
    ("CREATE STREAM pageviews WITH ('topic' = 'other') AS SELECT * FROM pageviews", "42P17"),
]


@pytest.mark.parametrize("dry", [False, True])
def test_what_is_missing_and_what_is_taken(pageviews: TestClient, dry: bool) -> None:
    wrong = []
    for text, state in [*MISSING, *TAKEN]:
        path = "/v1/statements:validate" if dry else "/v1/statements"
        answer = pageviews.post(path, json={"sql": text, **CONTEXT}).json()
        found = answer["statements"][0]["problems"] if dry else [answer]
        states = [problem.get("sqlstate") for problem in found]
        if states != [state]:
            wrong.append((text, state, found))
    assert wrong == []


def test_rest_says_the_same(pageviews: TestClient) -> None:
    for path, state in (("/v1/databases/demo", "42P04"), ("/v1/databases/demo/schemas/public", "42P06")):
        answer = pageviews.put(path, json={}, headers={"If-None-Match": "*"})
        assert answer.json()["sqlstate"] == state, answer.text
    assert pageviews.get("/v1/databases/nope").json()["sqlstate"] == "3D002"
