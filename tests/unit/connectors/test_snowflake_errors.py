"""What Snowflake says, as errors of ours: in words, with what to do, and without a value."""

from __future__ import annotations

import builtins
from typing import Any

import pytest
from snowflake.connector import errors as client

from leatstream.connectors.registry import open_connector
from leatstream.connectors.snowflake.errors import VALUES, store_error
from leatstream.connectors.snowflake.settings import SnowflakeConfig
from leatstream.errors import StoreError

CONFIG = SnowflakeConfig(
    account="acme-x1", username="LEAT", role="LOADER", warehouse="LOADING", password=None
)


def said(error: client.Error, table: str | None = None) -> StoreError:
    return store_error("sf", "writing to table t", error, CONFIG, 5.0, table)


@pytest.mark.parametrize(
    ("number", "state", "text", "code", "word"),
    [
        (390100, "28000", "Incorrect username or password", "store-auth-failed", "refused the login of LEAT"),
        (390144, "08001", "JWT token is invalid", "store-auth-failed", "refused the login"),
        (390189, "08001", "Role 'LOADER' is not authorized", "store-auth-failed", "role LOADER"),
        (390201, "08004", "The database does not exist", "store-rejected", "no such database"),
        (250001, "08001", "Incoming request with IP/Token 1.2.3.4 is not allowed to access Snowflake.", "store-auth-failed", "network policy"),
        (250001, "n/a", "Could not connect to Snowflake backend after 2 attempt(s)", "store-unreachable", "did not answer"),
        (290404, "08001", "404 Not Found", "store-unreachable", "did not answer"),
        (580500, "n/a", "HTTP 500", "store-unreachable", "did not answer"),
        (390114, "08001", "Authentication token has expired.", "store-unreachable", "ended the session"),
        (606, "57P03", "No active warehouse selected in the current session.", "store-rejected", "warehouse LOADING"),
        (90073, "22000", "Warehouse cannot be resumed: resource monitor", "store-unreachable", "resource monitor"),
        (3001, "42501", "Insufficient privileges to operate on table 'SESAME'", "store-auth-failed", "may not do this"),
        (625, "57014", "has locked table 'T'", "store-unreachable", "lock"),
        (630, "57014", "Statement reached its statement or warehouse timeout", "store-unreachable", "did not finish"),
        (2003, "42S02", "Object 'T' does not exist or not authorized.", "entity-not-found", "no such table"),
    ],
)  # fmt: skip
def test_errors(number: int, state: str, text: str, code: str, word: str) -> None:
    for table in (None, "t"):
        error = said(client.DatabaseError(text, errno=number, sqlstate=state), table)
        assert error.code == code
        assert word in error.detail
        assert error.faults[0].hint or code == "entity-not-found"


@pytest.mark.parametrize("number", [*VALUES, 100999])
def test_a_value_is_never_told(number: int) -> None:
    error = said(client.ProgrammingError("'sesame' is wrong", errno=number, sqlstate="22000"), "t")
    assert error.code == "store-rejected"
    assert "table t does not take a value" in error.detail
    assert "sesame" not in str(error)
    assert error.faults[0].hint


def test_other_refusals_show_snowflakes_sentence_only_without_rows() -> None:
    refused = client.ProgrammingError("syntax error at 'sesame'", errno=1003, sqlstate="42000")
    assert "sesame" in said(refused).detail
    assert "sesame" not in said(refused, "t").detail
    assert "1003" in said(refused, "t").detail


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *more: Any, **others: Any) -> Any:
        if name.startswith("snowflake"):
            raise ModuleNotFoundError(name)
        return real(name, *more, **others)

    connector = open_connector("snowflake", "sf", {"account": "a", "username": "u", "warehouse": "w"})
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(StoreError) as caught:
        connector.test(1)
    assert "[snowflake]" in str(caught.value.faults[0].hint)
