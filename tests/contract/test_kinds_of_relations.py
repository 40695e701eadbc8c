"""A statement's word for a relation is that of its kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.model.names import Fqn
from leatstream.model.objects import RelationKind

CONTEXT = {"database": "demo", "schema": "public", "store": "k"}
KINDS = {"STREAM": "s", "CHANGELOG": "c", "TABLE": "t", "MATERIALIZED VIEW": "v"}
CROSSED = [(word, kind) for word in KINDS for kind in KINDS if word != kind]


@pytest.fixture
def one_of_each(pageviews: TestClient, fresh: Any) -> TestClient:
    """Relations s, c, t and v, each of its kind."""
    for text in (
        "CREATE STREAM s (userid VARCHAR) WITH ('topic' = 'pageviews', 'value.format' = 'json')",
        "CREATE CHANGELOG c (userid VARCHAR, PRIMARY KEY (userid))"
        " WITH ('topic' = 'pageviews', 'value.format' = 'json')",
        "CREATE MATERIALIZED VIEW v AS SELECT * FROM pageviews",
    ):
        answer = pageviews.post("/v1/statements", json={"sql": text, **CONTEXT})
        assert answer.status_code == 200, answer.text
    with fresh.units() as unit:
        stream = unit.relations.find("demo.public.s")
        meta = replace(stream.meta, id="rel_t")
        table = replace(stream, meta=meta, fqn=Fqn("demo", "public", "t"), kind=RelationKind.TABLE)
        unit.relations.add(table)
        unit.commit()
    return pageviews


@pytest.mark.parametrize("verb", ["DROP", "DESCRIBE"])
def test_another_kinds_word_is_refused(one_of_each: TestClient, verb: str) -> None:
    for word, kind in CROSSED:
        body = {"sql": f"{verb} {word} {KINDS[kind]}", **CONTEXT}
        done = one_of_each.post("/v1/statements", json=body)
        planned = one_of_each.post("/v1/statements:validate", json=body).json()["statements"][0]
        fault = done.json()["errors"][0]
        assert (done.status_code, done.json()["sqlstate"]) == (422, "42809")
        assert f"is a {kind.lower()}, not a {word.lower()}" in fault["detail"].lower()
        assert fault["hint"] == f"{verb} {kind} demo.public.{KINDS[kind]}"
        assert fault["position"]["column"] == len(f"{verb} {word} ") + 1
        (said,) = planned["problems"]
        assert (said["sqlstate"], said["hint"]) == ("42809", fault["hint"])
        assert one_of_each.get(f"/v1/relations/demo.public.{KINDS[kind]}").status_code == 200


def test_the_right_word_and_relation_are_taken(one_of_each: TestClient) -> None:
    for word, name in KINDS.items():
        for text in (f"DESCRIBE {word} {name}", f"DESCRIBE RELATION {name}", f"DROP {word} IF EXISTS {name}"):
            answer = one_of_each.post("/v1/statements", json={"sql": text, **CONTEXT})
            assert answer.status_code == 200, answer.text


def test_if_exists_does_not_hide_the_wrong_word(one_of_each: TestClient) -> None:
    body = {"sql": "DROP TABLE IF EXISTS s", **CONTEXT}
    assert one_of_each.post("/v1/statements", json=body).json()["sqlstate"] == "42809"
    assert one_of_each.post("/v1/statements:validate", json=body).json()["statements"][0]["problems"] != []
