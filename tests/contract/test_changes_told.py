"""What a changed statement does to its job, as the dry run and PUT tell it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

COPY = "CREATE STREAM copy AS SELECT * FROM pageviews"
NAMES = {"database": "demo", "schema": "public", "store": "k"}


@pytest.fixture
def made(pageviews: TestClient) -> TestClient:
    answer = pageviews.put("/v1/queries/q", json={"sql": COPY, **NAMES})
    assert answer.status_code == 201, answer.text
    assert answer.json()["plan"]["change"] is None
    return pageviews


def foretold(client: TestClient, sql: str) -> dict[str, Any]:
    body = {"sql": sql, "name": "q", **NAMES}
    answer = client.post("/v1/statements:validate", json=body).json()
    assert answer["valid"], answer
    found: dict[str, Any] = answer["statements"][0]["plan"]["change"]
    return found


@pytest.mark.parametrize(
    ("sql", "kind", "reason"),
    [
        (f"{COPY} -- the same", "none", "the statement stays the same"),
        ("CREATE STREAM copy AS SELECT p.* FROM pageviews p", "hot", "not restarted"),
        (COPY + " WITH ('starting.position' = 'earliest')", "hot", "first start"),
        (COPY + " WHERE viewtime > 1", "restart-from-offsets", "stateless"),
    ],
)
def test_what_put_does_is_foretold(made: TestClient, sql: str, kind: str, reason: str) -> None:
    change = foretold(made, sql)
    assert change["class"] == kind
    assert reason in change["reason"]
    before = made.get("/v1/queries/q").json()
    answer = made.put("/v1/queries/q", json={"sql": sql, **NAMES})
    assert answer.status_code == 200, answer.text
    if kind != "none":
        assert answer.json()["plan"]["change"] == change
    untouched = kind in ("none", "hot")
    same = answer.json()["status"]["observed_generation"] == answer.json()["generation"]
    # A job that is not restarted counts as that of the new version at once.
    assert same == (untouched and before["status"]["observed_generation"] == before["generation"])


def test_texts_are_compared_not_kept_hashes(made: TestClient, fresh: Any) -> None:
    """What the canonical text is may change with a release; the catalog has the hashes of the old one."""
    with fresh.env.open_unit() as unit:
        unit.queries.update(replace(unit.queries.find("q"), statement_hash="0" * 64))
        unit.commit()
    assert foretold(made, f"{COPY};")["reason"] == "the statement stays the same"


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("CREATE STREAM other AS SELECT * FROM pageviews", "cannot change its sink"),
        (
            "CREATE STREAM copy WITH ('topic' = 'elsewhere') AS SELECT * FROM pageviews",
            "cannot change its topic",
        ),
    ],
)
def test_what_put_refuses_is_foretold(made: TestClient, sql: str, reason: str) -> None:
    change = foretold(made, sql)
    assert change["class"] == "refused"
    assert reason in change["reason"]
    answer = made.put("/v1/queries/q", json={"sql": sql, **NAMES})
    assert answer.status_code == 409
    assert answer.json()["code"] == "requires-replacement"
    assert made.get("/v1/queries/q").json()["sql"] == COPY
