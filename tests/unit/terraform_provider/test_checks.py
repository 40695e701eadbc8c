from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from leatstream_terraform.checks import check, duration
from leatstream_terraform.codec import UNKNOWN
from leatstream_terraform.schema import Attribute, complete, load

RESOURCES = load().resources


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("1h30m", 5400),
        ("1.5m", 90),
        ("500ms", 0.5),
        ("", None),
        ("soon", None),
        ("5", None),
        ("5s!", None),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert duration(text) == seconds


def found(resource: str, **config: Any) -> list[tuple[Any, ...]]:
    schema = RESOURCES[resource]
    problems = check(schema.attributes, complete(schema.attributes, config), schema.exactly_one_of)
    return [problem.path for problem in problems]


def test_good_configurations_pass() -> None:
    assert (
        found("leatstream_query", name="q", sql="x", desired_state="stopped", timeouts={"create": "1m"}) == []
    )
    assert found("leatstream_store", name="s", kafka={"bootstrap_servers": "h:1"}) == []


def test_unknown_values_pass() -> None:
    assert found("leatstream_query", name=UNKNOWN, sql=UNKNOWN, desired_state=UNKNOWN, timeouts=UNKNOWN) == []
    assert found("leatstream_store", name="s", kafka=UNKNOWN) == []


def test_all_faults_at_once() -> None:
    paths = found(
        "leatstream_query",
        name="q",
        sql="x",
        desired_state="walking",
        timeouts={"create": "x", "delete": "y"},
    )
    assert paths == [("desired_state",), ("timeouts", "create"), ("timeouts", "delete")]


def test_a_store_has_a_kind() -> None:
    assert found("leatstream_store", name="s") == [()]


def test_nested_enum() -> None:
    sasl = {"mechanism": "magic", "username": "u", "password_wo": "hunter2\x00"}
    schema = RESOURCES["leatstream_store"]
    config = complete(schema.attributes, {"name": "s", "kafka": {"bootstrap_servers": "h:1", "sasl": sasl}})
    (problem,) = check(schema.attributes, config, schema.exactly_one_of)
    assert problem.path == ("kafka", "sasl", "mechanism")
    assert '"plain", "scram_sha_256", "scram_sha_512"' in problem.detail
    assert "hunter2" not in problem.detail


SERVERS = RESOURCES["leatstream_store"].attributes["kafka"].attributes["bootstrap_servers"]


def told(item: Attribute, value: str) -> str:
    (problem,) = check({item.name: item}, {item.name: value})
    return problem.detail


def test_what_is_wanted_comes_in_words_before_the_pattern() -> None:
    detail = told(replace(SERVERS, example="localhost:9092"), "localhost")
    assert detail.startswith("'localhost' is not possible here. Wanted: Comma-separated host:port. ")
    assert 'Write such as "localhost:9092".' in detail
    assert detail.index("such as") < detail.index(str(SERVERS.pattern))
    assert "Without" not in detail


def test_a_list_with_blanks_is_shown_as_it_should_be() -> None:
    assert 'Without blanks it would do: "a:9092,b:9092".' in told(SERVERS, "a:9092, b:9092")


def test_an_attribute_without_words_shows_its_pattern_alone() -> None:
    detail = told(replace(SERVERS, description="", example=None), "localhost")
    assert detail == f"'localhost' is not possible here. Its pattern: {SERVERS.pattern}"


def test_an_address_with_a_password_is_not_repeated() -> None:
    uris = RESOURCES["leatstream_schema_registry"].attributes["uris"]
    detail = told(uris, "https://user:hunter2@registry, https://b")
    assert detail.startswith("This value is not possible here. Wanted: Addresses with http://")
    assert "hunter2" not in detail
