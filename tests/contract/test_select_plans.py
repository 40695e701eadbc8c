"""What a SELECT of its own is planned as: a changelog where it can be one, else a stream."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

WINDOW = "FROM TUMBLE(demo.public.pageviews, SIZE 1 MINUTE) GROUP BY window_start, window_end"
JOINED = (
    "SELECT a.userid FROM demo.public.pageviews a JOIN demo.public.pageviews b"
    " WITHIN 1 MINUTE ON a.userid = b.userid"
)


@pytest.mark.parametrize(
    ("sql", "changelog"),
    [
        (f"SELECT window_start, userid, count(*) AS n {WINDOW}, userid", True),
        (f"SELECT userid, count(*) AS n {WINDOW}, userid", False),
        (f"SELECT window_start, count(*) AS n {WINDOW}, userid", False),
        (f"SELECT window_start, userid, count(*) AS n {WINDOW}, GROUPING SETS ((userid), ())", False),
        (
            f"SELECT window_end, userid, count(*) AS n FROM TUMBLE(({JOINED}), SIZE 1 HOUR)"
            " GROUP BY window_start, window_end, userid",
            False,
        ),
        (
            f"SELECT window_start, max(n) AS n FROM TUMBLE((SELECT count(*) AS n {WINDOW}), SIZE 1 HOUR)"
            " GROUP BY window_start, window_end",
            False,
        ),
        ("SELECT userid, count(*) AS n FROM demo.public.pageviews GROUP BY userid", True),
    ],
)
def test_what_a_stream_can_be_a_select_can(pageviews: TestClient, sql: str, changelog: bool) -> None:
    for text, told in ((f"CREATE STREAM x AS {sql}", False), (sql, True)):
        body = {"sql": text, "database": "demo", "schema": "public", "store": "k"}
        (found,) = pageviews.post("/v1/statements:validate", json=body).json()["statements"]
        if told:
            assert found["problems"] == []
            assert found["plan"]["changelog"] is changelog
        elif not changelog:
            assert found["problems"] == []


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (f"SELECT nope, count(*) AS n {WINDOW}", "nope"),
        ("SELECT userid, count(*) AS n FROM demo.public.pageviews GROUP BY userid, viewtime", "primary key"),
    ],
)
def test_what_neither_can_be_is_told_with_what_fits(pageviews: TestClient, sql: str, reason: str) -> None:
    (found,) = pageviews.post("/v1/statements:validate", json={"sql": sql}).json()["statements"]
    (problem,) = found["problems"]
    assert reason in problem["detail"]
