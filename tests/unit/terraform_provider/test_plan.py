"""The plan rules, for every resource the provider offers."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leatstream_terraform.codec import UNKNOWN, has_unknown
from leatstream_terraform.plan import (
    body,
    forget,
    needs_write,
    propose,
    replacements,
    same_text,
    settle,
    templates,
    without_unknown,
)
from leatstream_terraform.schema import Attribute, complete, load

RESOURCES = load().resources
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=8)


def plain(kind: Any) -> st.SearchStrategy[Any]:
    if kind == "string":
        return TEXT
    if kind == "number":
        return st.integers(1, 100)
    if kind == "bool":
        return st.booleans()
    inner = plain(kind[1])
    return st.lists(inner, max_size=2) if kind[0] == "list" else st.dictionaries(TEXT, inner, max_size=2)


def value_of(item: Attribute, answer: bool) -> st.SearchStrategy[Any]:
    if item.nesting is None:
        return st.sampled_from(item.enum) if item.enum else plain(item.type)
    one = objects(item.attributes, answer)
    if item.nesting == "single":
        return one
    return st.lists(one, max_size=2) if item.nesting == "list" else st.dictionaries(TEXT, one, max_size=2)


def objects(attributes: Mapping[str, Attribute], answer: bool = False) -> st.SearchStrategy[dict[str, Any]]:
    """Configurations, or with ``answer`` what the service may tell: every attribute present."""
    fields = {}
    for name, item in attributes.items():
        if answer:
            fields[name] = value_of(item, True)
        elif item.mode == "computed":
            fields[name] = st.none()
        else:
            found = value_of(item, False)
            fields[name] = found if item.mode == "required" else st.none() | found
    return st.fixed_dictionaries(fields)


@functools.cache
def of_resource(name: str, answer: bool = False) -> st.SearchStrategy[dict[str, Any]]:
    """The same for a resource; to make a strategy takes longer than to draw from it."""
    return objects(RESOURCES[name].attributes, answer)


@pytest.mark.parametrize("name", sorted(RESOURCES))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_second_plan_is_empty(name: str, data: st.DataObject) -> None:
    resource = RESOURCES[name]
    config = data.draw(of_resource(name))
    planned = propose(resource.attributes, config, None)
    templates(resource, planned)
    answer = data.draw(of_resource(name, answer=True))
    state, _ = settle(planned, answer)
    state = without_unknown(state)
    again = propose(resource.attributes, config, state)
    templates(resource, again)
    assert again == state
    assert not needs_write(resource, state, again)
    assert replacements(resource, state, again) == []


@pytest.mark.parametrize("name", sorted(RESOURCES))
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_write_only_values_are_in_no_state(name: str, data: st.DataObject) -> None:
    resource = RESOURCES[name]
    config = data.draw(of_resource(name))
    planned = propose(resource.attributes, config, None)
    for item in (a for a in resource.attributes.values() if a.write_only):
        assert planned[item.name] is None


def test_every_known_value_survives_apply() -> None:
    planned = {"a": 1, "b": UNKNOWN, "c": {"d": "x", "e": UNKNOWN}, "f": [1, UNKNOWN]}
    actual = {"a": 2, "b": 3, "c": {"d": "x", "e": 4}, "f": [1, 5]}
    state, changes = settle(planned, actual)
    assert state == {"a": 1, "b": 3, "c": {"d": "x", "e": 4}, "f": [1, 5]}
    assert changes == [(("a",), 1, 2)]
    assert not has_unknown(state)


def test_lists_of_another_length_keep_the_plan() -> None:
    state, changes = settle({"l": [1, 2]}, {"l": [1]})
    assert state == {"l": [1, 2]}
    assert [path for path, _, _ in changes] == [("l",)]


STORE = RESOURCES["leatstream_store"]


def store(password: str | None = "p", version: int | None = None, **more: Any) -> dict[str, Any]:
    sasl = {"mechanism": "plain", "username": "u", "password_wo": password, "password_wo_version": version}
    kafka = {"bootstrap_servers": "h:1", "sasl": sasl}
    found: dict[str, Any] = complete(STORE.attributes, {"name": "s", "kafka": kafka, **more})
    return found


def test_body_takes_the_password_from_the_configuration() -> None:
    config = store("secret")
    planned = propose(STORE.attributes, config, None)
    assert "password" not in body(STORE.attributes, planned)["kafka"]["sasl"]
    assert body(STORE.attributes, planned, config)["kafka"]["sasl"]["password"] == "secret"


@pytest.mark.parametrize(
    ("before", "after", "writes"), [(None, 1, True), (1, 2, True), (1, 1, False), (1, None, True)]
)
def test_password_version_writes(before: Any, after: Any, writes: bool) -> None:
    """Also the first one after an import: it may have come with another password."""
    prior = propose(STORE.attributes, store(version=before), None)
    planned = propose(STORE.attributes, store(version=after), prior)
    assert needs_write(STORE, prior, planned) is writes


QUERY = RESOURCES["leatstream_query"]


def query(**values: Any) -> dict[str, Any]:
    base = {"name": "q", "sql": "CREATE STREAM a AS SELECT * FROM b"}
    found: dict[str, Any] = complete(QUERY.attributes, base | values)
    return found


@pytest.mark.parametrize("change", [{"timeouts": {"create": "1m"}}, {"delete_sink_entity": True}])
def test_provider_side_changes_write_nothing(change: dict[str, Any]) -> None:
    prior = without_unknown(propose(QUERY.attributes, query(), None))
    planned = propose(QUERY.attributes, query(**change), prior)
    assert not needs_write(QUERY, prior, planned)
    assert planned["timeouts"] is None


def test_a_write_makes_volatile_values_unknown_and_keeps_inferred_ones() -> None:
    prior = without_unknown(propose(QUERY.attributes, query(), None)) | {"sink": "d.s.a", "id": "x"}
    planned = propose(QUERY.attributes, query(comment="new"), prior)
    assert needs_write(QUERY, prior, planned)
    forget(QUERY, planned, inferred=False)
    assert planned["status"] is UNKNOWN
    assert planned["generation"] is UNKNOWN
    assert planned["sink"] == "d.s.a"
    assert planned["id"] == "x"
    forget(QUERY, planned, inferred=True)
    assert planned["sink"] is UNKNOWN


def test_another_sink_replaces_once_it_is_known() -> None:
    prior = without_unknown(propose(QUERY.attributes, query(), None)) | {"sink": "d.s.a"}
    planned = dict(prior) | {"sink": UNKNOWN}
    assert replacements(QUERY, prior, planned) == []
    planned["sink"] = "d.s.c"
    assert replacements(QUERY, prior, planned) == [("sink",)]


def test_a_default_that_is_written_out_replaces_nothing() -> None:
    stream = RESOURCES["leatstream_stream"]
    prior = dict.fromkeys(stream.attributes) | {"name": "views", "topic": None}
    written = prior | {"topic": "views"}
    assert replacements(stream, prior, written) == []
    assert replacements(stream, written, prior) == []
    assert replacements(stream, prior, prior | {"topic": "other"}) == [("topic",)]
    assert replacements(stream, prior | {"topic": "other"}, prior) == [("topic",)]
    assert replacements(stream, prior, prior | {"topic": UNKNOWN}) == [("topic",)]


def test_a_name_replaces() -> None:
    prior = without_unknown(propose(QUERY.attributes, query(), None))
    assert replacements(QUERY, prior, propose(QUERY.attributes, query(name="r"), prior)) == [("name",)]


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("varchar", "VARCHAR", True),
        ("STRING", "VARCHAR", True),
        ("decimal(10,2)", "DECIMAL(10, 2)", True),
        ("ARRAY<int>", "array< INTEGER >", True),
        ('STRUCT<"Ab" INT>', 'STRUCT<"Ab" INTEGER>', True),
        ('STRUCT<"Ab" INT>', 'STRUCT<"aB" INT>', False),
        ('STRUCT<"a" BIGINT, `b` INT>', "STRUCT<a: bigint, B int>", True),
        ("BIGINT", "INT", False),
    ],
)
def test_types_are_compared_as_types(one: str, two: str, same: bool) -> None:
    item = RESOURCES["leatstream_stream"].attributes["columns"].attributes["type"]
    assert same_text(item, one, two) is same


def test_prior_spelling_is_kept() -> None:
    item = RESOURCES["leatstream_stream"].attributes["columns"].attributes["type"]
    assert propose({"type": item}, {"type": "string"}, {"type": "VARCHAR"}) == {"type": "VARCHAR"}


def test_unknown_parts_of_a_name_make_it_unknown() -> None:
    resource = RESOURCES["leatstream_stream"]
    planned = {"database": "d", "schema": UNKNOWN, "name": "n"}
    templates(resource, planned)
    assert planned["fqn"] is UNKNOWN
    planned["schema"] = "S"
    templates(resource, planned)
    assert planned["fqn"] == 'd."S".n'


def test_a_provider_side_value_goes_along_with_a_write() -> None:
    planned = propose(QUERY.attributes, query(delete_sink_entity=True, timeouts={"create": "1m"}), None)
    sent = body(QUERY.attributes, planned, query(delete_sink_entity=True, timeouts={"create": "1m"}))
    assert sent["delete_sink_entity"] is True
    assert "timeouts" not in sent
    assert "delete_sink_entity" not in body(QUERY.attributes, planned)


@pytest.mark.parametrize("element", [UNKNOWN, None])
def test_an_element_may_be_unknown_or_null(element: Any) -> None:
    """The plan ended with a defect of the provider."""
    stream = RESOURCES["leatstream_stream"]
    column = {"name": "id", "type": "BIGINT"}
    values = complete(stream.attributes, {"name": "s", "columns": [column, element]})
    sent = body(stream.attributes, values, values)
    assert sent["columns"][0]["name"] == "id"
    assert sent["columns"][1] is element


@pytest.mark.parametrize(
    ("attribute", "one", "two", "same"),
    [
        ("value_format", "JSON", "json", True),
        ("value_format", "json", "avro", False),
        ("key_format", "Primitive", "primitive", True),
        ("timestamp_format", "ISO8601", "iso8601", True),
        ("key_type", "varchar", "VARCHAR", True),
        ("key_type", "string", "VARCHAR", True),
        ("key_type", "BIGINT", "VARCHAR", False),
        ("topic", "Views", "views", False),
        ("timestamp", "At", "at", False),
    ],
)
def test_words_are_compared_without_case_and_names_with_it(
    attribute: str, one: str, two: str, same: bool
) -> None:
    """'value_format = "JSON"' was a difference at every plan."""
    item = RESOURCES["leatstream_stream"].attributes[attribute]
    assert same_text(item, one, two) is same
    assert propose({"x": item}, {"x": one}, {"x": two}) == {"x": two if same else one}
