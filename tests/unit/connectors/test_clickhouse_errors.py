"""What is said of ClickHouse's errors, and of its client's own."""

from __future__ import annotations

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError, Error, OperationalError, ProgrammingError

from leatstream.connectors.clickhouse.errors import store_error

_HEAD = "HTTPDriver for http://h:8123 received ClickHouse error code {0}\n Code: {0}. DB::Exception: "


def told(error: Error, table: str | None = None) -> tuple[str, str]:
    found = store_error("s", "writing to table t", error, "http://h:8123", 5.0, table)
    return found.code, found.detail


@pytest.mark.parametrize(
    ("code", "name", "expected"),
    [
        (516, "AUTHENTICATION_FAILED", "store-auth-failed"),
        (497, "ACCESS_DENIED", "store-auth-failed"),
        (159, "TIMEOUT_EXCEEDED", "store-unreachable"),
        (252, "TOO_MANY_PARTS", "store-unreachable"),
        (242, "TABLE_IS_READ_ONLY", "store-unreachable"),
        (60, "UNKNOWN_TABLE", "entity-not-found"),
        (81, "UNKNOWN_DATABASE", "store-rejected"),
        (62, "SYNTAX_ERROR", "store-rejected"),
        (469, "VIOLATED_CONSTRAINT", "store-rejected"),
    ],
)
def test_codes(code: int, name: str, expected: str) -> None:
    text = f"{_HEAD.format(code)}something about 'sesame'. ({name}) (version 26.5.1.1 (official build))"
    error = DatabaseError(text, code=code, name=name)
    assert told(error)[0] == expected
    of_rows, detail = told(error, "t")
    assert of_rows == expected
    assert "sesame" not in detail


def test_the_database_that_is_missing_is_named() -> None:
    text = f"{_HEAD.format(81)}Database nodb does not exist. (UNKNOWN_DATABASE) (version 26.5.1.1)"
    detail = told(DatabaseError(text, code=81, name="UNKNOWN_DATABASE"))[1]
    assert detail.endswith("there is no such database (Database nodb does not exist).")


def test_the_servers_own_sentence_is_passed_on_where_no_rows_are() -> None:
    text = f"{_HEAD.format(44)}Cannot add column x: it exists. (ILLEGAL_COLUMN) (version 26.5.1.1)"
    code, detail = told(DatabaseError(text, code=44, name="ILLEGAL_COLUMN"))
    assert code == "store-rejected"
    assert detail.endswith("was refused: Cannot add column x: it exists (ILLEGAL_COLUMN).")


def test_a_proxy_that_answers_for_the_server_is_named() -> None:
    text = (
        "HTTP driver received HTTP status 502, server response: <html>sesame</html> (for url http://h:8123)"
    )
    code, detail = told(DatabaseError(text))
    assert code == "store-unreachable"
    assert "http://h:8123 answered writing to table t with HTTP status 502" in detail
    assert "sesame" not in detail


def test_errors_without_a_code() -> None:
    assert told(OperationalError("Error Connection refused executing HTTP request"))[0] == "store-unreachable"
    assert "encryption failed" in told(OperationalError("SSLError: WRONG_VERSION_NUMBER"))[1]
    code, detail = told(ProgrammingError("sesame is no parameter"))
    assert (code, "sesame" in detail) == ("store-rejected", False)
