from __future__ import annotations

from typing import Any

import pytest

from leatstream_terraform.codec import Key
from leatstream_terraform.diagnostics import from_problem, pointer_path
from leatstream_terraform.schema import load

RESOURCES = load().resources


@pytest.mark.parametrize(
    ("resource", "pointer", "path"),
    [
        ("leatstream_store", "#/kafka/sasl/password", ("kafka", "sasl", "password_wo")),
        ("leatstream_stream", "#/columns/1/type", ("columns", 1, "type")),
        ("leatstream_stream", "/properties/topic.partitions", ("properties", Key("topic.partitions"))),
        ("leatstream_stream", "#/properties/a~1b~0c", ("properties", Key("a/b~c"))),
        ("leatstream_stream", "#/columns/1/nothing/more", ("columns", 1)),
        ("leatstream_query", "#/nothing", ()),
        ("leatstream_query", None, ()),
    ],
)
def test_pointers_become_paths(resource: str, pointer: str | None, path: tuple[Any, ...]) -> None:
    found = pointer_path(pointer, RESOURCES[resource].attributes)
    assert found == path
    assert [type(step) for step in found] == [type(step) for step in path]


def test_every_fault_gets_its_diagnostic() -> None:
    problem = {
        "status": 422,
        "code": "validation",
        "detail": "two things are wrong",
        "request_id": "r1",
        "errors": [
            {"detail": "no such type", "pointer": "#/columns/0/type", "sqlstate": "42704"},
            {"detail": "no such store", "pointer": "#/store", "code": "not-found", "hint": "make it"},
        ],
    }
    one, two = from_problem(problem, RESOURCES["leatstream_stream"].attributes, "Cannot create it")
    assert one.path == ("columns", 0, "type")
    assert one.summary == "Cannot create it"
    assert one.detail == "no such type [validation, SQLSTATE 42704]\n\ntwo things are wrong"
    assert two.path == ("store",)
    assert "[not-found]" in two.detail
    assert "Hint: make it" in two.detail


def test_a_position_shows_the_place() -> None:
    sql = "CREATE STREAM a AS\n\tSELECT x FROM b"
    fault = {"detail": "no x", "position": {"line": 2, "column": 9, "offset": 27, "length": 1}}
    problem = {"status": 422, "code": "unknown-column", "errors": [fault]}
    (found,) = from_problem(problem, RESOURCES["leatstream_query"].attributes, "s", sql)
    assert found.path == ("sql",)
    *_, place, source, caret = found.detail.splitlines()
    assert place == "At line 2, column 9 of the SQL:"
    assert source == "    2 | \tSELECT x FROM b"
    assert caret == "      | \t       ^"


def test_a_long_line_is_cut_around_the_place() -> None:
    sql = "SELECT " + "a, " * 200 + "boom"
    at = sql.index("boom")
    fault = {"detail": "x", "position": {"line": 1, "column": at + 1, "offset": at, "length": 4}}
    (found,) = from_problem({"status": 422, "errors": [fault]}, {}, "s", sql)
    source, caret = found.detail.splitlines()[-2:]
    assert len(source) < 180
    assert source[caret.index("^") :].startswith("boom")
    assert caret.count("^") == 4


def test_a_position_outside_of_the_text_does_no_harm() -> None:
    fault = {"detail": "x", "position": {"line": 9, "column": 1, "offset": 0, "length": 1}}
    (found,) = from_problem({"status": 422, "errors": [fault]}, {}, "s", "SELECT 1")
    assert found.detail.endswith("At line 9, column 1 of the SQL.")


def test_a_fault_of_the_service_names_the_request() -> None:
    (found,) = from_problem({"status": 500, "code": "internal", "detail": "oh", "request_id": "r9"}, {}, "s")
    assert "r9" in found.detail
