from __future__ import annotations

import pytest

from leatstream.cli.exits import Exit, status_of
from leatstream.cli.problems import render
from leatstream.errors import FAMILIES


def at(line: int, column: int, length: int = 1) -> dict[str, int]:
    return {"line": line, "column": column, "offset": 0, "length": length}


def test_caret_stands_under_the_place() -> None:
    problem = {
        "code": "unknown-column",
        "sqlstate": "42703",
        "errors": [
            {"detail": "Column usr does not exist", "position": at(2, 3, 3), "hint": "did you mean userid?"}
        ],
    }
    assert render(problem, "SELECT\n\tausr FROM t").plain.splitlines() == [
        "error[unknown-column, 42703]: Column usr does not exist",
        "  --> line 2, column 3",
        "   |",
        " 2 |  ausr FROM t",
        "   |   ^^^",
        "  hint: did you mean userid?",
    ]


def test_caret_counts_wide_letters_as_two_columns() -> None:
    lines = render({"errors": [{"detail": "x", "position": at(1, 5, 2)}]}, '"東" 西y').plain.splitlines()
    assert lines[-1] == "   | " + " " * 5 + "^^^"


def test_every_fault_is_shown() -> None:
    text = render({"code": "c", "errors": [{"detail": "one"}, {"detail": "two", "code": "d"}]}).plain
    assert text.splitlines() == ["error[c]: one", "error[d]: two"]


def test_position_outside_the_text_shows_no_source() -> None:
    assert "|" not in render({"errors": [{"detail": "x", "position": at(9, 1)}]}, "SELECT 1").plain


def test_pointer_is_shown_where_there_is_no_position() -> None:
    assert "at #/columns/0/type" in render({"errors": [{"detail": "x", "pointer": "#/columns/0/type"}]}).plain


def test_server_error_names_the_request() -> None:
    assert "request id r1" in render({"status": 500, "detail": "oops", "request_id": "r1"}).plain


def test_terminal_escapes_are_defused() -> None:
    assert "\x1b" not in render({"detail": "a\x1b[31mb"}).plain


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("not-found", 404, Exit.NOT_FOUND),
        ("entity-not-found", 404, Exit.NOT_FOUND),
        ("unauthenticated", 401, Exit.ACCESS),
        ("permission-denied", 403, Exit.ACCESS),
        ("stale", 412, Exit.CONFLICT),
        ("has-dependents", 409, Exit.CONFLICT),
        ("sql-syntax", 400, Exit.INVALID_SQL),
        ("within-required", 422, Exit.INVALID_SQL),
        ("validation", 422, Exit.FAILURE),
        ("store-unreachable", 503, Exit.FAILURE),
    ],
)
def test_exit_status(code: str, status: int, expected: Exit) -> None:
    assert status_of({"code": code, "status": status}) is expected


def test_every_code_has_an_exit_status() -> None:
    for family in FAMILIES:
        for code, kind in family.kinds.items():
            assert status_of({"code": code, "status": kind.status}) != Exit.OK
