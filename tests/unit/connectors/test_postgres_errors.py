"""What is said of PostgreSQL's errors, and of its client's own."""

from __future__ import annotations

import psycopg
import pytest

from leatstream.connectors.postgres.errors import store_error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (psycopg.ProgrammingError("the query has 2 placeholders but 1 hunter2 was passed"), "store-rejected"),
        (psycopg.DataError("PostgreSQL text fields cannot contain NUL: hunter2"), "store-rejected"),
        (psycopg.OperationalError("connection refused"), "store-unreachable"),
        (psycopg.InterfaceError("the connection is closed"), "store-unreachable"),
    ],
)
def test_what_the_client_does_not_take_is_no_server_that_is_away(error: psycopg.Error, code: str) -> None:
    told = store_error("s", "writing to table t", error, "h:5432/shop", 5.0)
    assert told.code == code
    assert "hunter2" not in told.detail
