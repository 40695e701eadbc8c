from __future__ import annotations

from typing import Any

import pytest

from leatstream_terraform.plan import propose
from leatstream_terraform.planning import Planned, plan
from leatstream_terraform.schema import complete, load
from leatstream_terraform.session import Private, Session
from leatstream_terraform.wire import from_rest

RESOURCES = load().resources
STREAM = RESOURCES["leatstream_stream"]
ENTITY = RESOURCES["leatstream_entity"]
QUERY = RESOURCES["leatstream_query"]
STORE = RESOURCES["leatstream_store"]


def stream(**values: Any) -> dict[str, Any]:
    found: dict[str, Any] = complete(
        STREAM.attributes, {"name": "n", "store": "k", "value_format": "json"} | values
    )
    return found


def test_empty_and_null_are_one_where_terraform_holds_either() -> None:
    for held, told in [(None, {}), ({}, None), ({}, {})]:
        assert (
            from_rest(STREAM.attributes, {"properties": told}, stream(properties=held))["properties"] == held
        )
    assert from_rest(STREAM.attributes, {"properties": {}}, None)["properties"] is None
    assert from_rest(STREAM.attributes, {"comment": None}, stream(comment=""))["comment"] == ""


def test_drift_is_seen() -> None:
    prior = stream(comment="a", properties={"x": "1"})
    read = from_rest(STREAM.attributes, {"comment": "b", "properties": None, "topic": "t"}, prior)
    assert (read["comment"], read["properties"], read["topic"]) == ("b", None, "t")


def test_the_spelling_of_the_state_stays() -> None:
    prior = stream(columns=[{"name": "a", "type": "string", "not_null": False}])
    answer = {"columns": [{"name": "a", "type": "VARCHAR", "not_null": False}]}
    assert from_rest(STREAM.attributes, answer, prior)["columns"][0]["type"] == "string"
    assert from_rest(STREAM.attributes, answer, None)["columns"][0]["type"] == "VARCHAR"


def test_defaults_stand_in_for_what_is_not_told() -> None:
    assert from_rest(QUERY.attributes, {}, None)["desired_state"] == "running"
    columns = from_rest(STREAM.attributes, {"columns": [{"name": "a", "type": "INT"}]}, None)["columns"]
    assert columns[0]["not_null"] is False


def test_provider_side_values_come_from_the_service_only_after_an_import() -> None:
    prior = complete(QUERY.attributes, {"delete_sink_entity": True})
    assert from_rest(QUERY.attributes, {"delete_sink_entity": False}, prior)["delete_sink_entity"] is True
    assert from_rest(QUERY.attributes, {"delete_sink_entity": True}, None)["delete_sink_entity"] is True


def test_values_of_any_type_become_text() -> None:
    answer = {
        "effective": {"p": {"value": 6, "origin": "default"}, "q": {"value": True, "origin": "explicit"}}
    }
    read = from_rest(QUERY.attributes, answer, None)["effective"]
    assert (read["p"]["value"], read["q"]["value"], read["p"]["from"]) == ("6", "true", None)


def test_of_a_live_object_only_what_is_managed_is_read() -> None:
    answer = {
        "name": "t",
        "kafka": {"partitions": 3, "replicas": 1, "configs": {"retention.ms": "5", "set.by.others": "x"}},
    }
    prior = complete(ENTITY.attributes, {"kafka": {"partitions": 2, "configs": {"retention.ms": "1"}}})
    read = from_rest(ENTITY.attributes, answer, prior, live=True)["kafka"]
    assert read == {"partitions": 3, "replicas": None, "configs": {"retention.ms": "5"}}
    assert from_rest(ENTITY.attributes, answer, complete(ENTITY.attributes, {}), live=True)["kafka"] is None
    assert from_rest(ENTITY.attributes, answer, None, live=True)["kafka"]["configs"]["set.by.others"] == "x"


def tls(verify: bool | None, prior: dict[str, Any] | None) -> Any:
    kafka = {"bootstrap_servers": "h:1", "tls": {"verify_hostname": verify, "ca_certificate": "c"}}
    return from_rest(STORE.attributes, {"name": "s", "kafka": kafka}, prior)["kafka"]["tls"]


def test_what_is_switched_off_is_imported_as_such() -> None:
    assert [tls(verify, None)["verify_hostname"] for verify in (False, True, None)] == [False, True, None]
    given = {"verify_hostname": False, "ca_certificate": "c"}
    held = from_rest(STORE.attributes, {"kafka": {"bootstrap_servers": "h:1", "tls": given}}, None)
    config = complete(STORE.attributes, {"name": "s", "kafka": {"bootstrap_servers": "h:1", "tls": given}})
    assert propose(STORE.attributes, config, held)["kafka"] == held["kafka"], "the next plan is empty"


@pytest.mark.parametrize("held", [None, True, False])
@pytest.mark.parametrize("told", [None, True, False])
def test_what_is_switched_off_elsewhere_is_drift(held: bool | None, told: bool | None) -> None:
    """Null is the service's default, which is on: it is not the same as off."""
    kafka = {"bootstrap_servers": "h:1", "tls": {"verify_hostname": held, "ca_certificate": "c"}}
    prior = complete(STORE.attributes, {"name": "s", "kafka": kafka})
    assert tls(told, prior)["verify_hostname"] is told


def table(*columns: tuple[str, bool | None], key: list[str] | None = None) -> dict[str, Any]:
    body = {
        "columns": [{"name": name, "type": "BIGINT", "not_null": said} for name, said in columns],
        "primary_key": key or ["id"],
    }
    found: dict[str, Any] = complete(ENTITY.attributes, {"store": "s", "name": "t", "postgres": body})
    return found


def test_a_key_column_is_not_null_whatever_is_written() -> None:
    """The service tells of no NOT NULL that the key implies; the table was dropped for that difference."""
    answer = {"postgres": table(("id", False), ("n", False))["postgres"]}
    held = table(("id", True), ("n", False))
    assert from_rest(ENTITY.attributes, answer, held, live=True)["postgres"] == held["postgres"]
    read = from_rest(ENTITY.attributes, answer, None, live=True)["postgres"]  # as an import does
    assert [one["not_null"] for one in read["columns"]] == [False, False]
    for config, prior in [(True, False), (False, True), (None, True)]:
        planned = _planned(table(("id", config), ("n", False)), table(("id", prior), ("n", False)))
        assert (planned.replace, planned.state) == ([], table(("id", prior), ("n", False)))


def test_a_word_that_the_key_does_not_say_is_a_change() -> None:
    drifted = {"postgres": table(("id", False), ("n", True))["postgres"]}
    held = table(("id", True), ("n", False))
    read = from_rest(ENTITY.attributes, drifted, held, live=True)["postgres"]
    assert [one["not_null"] for one in read["columns"]] == [True, True]
    assert _planned(table(("id", False), ("n", True)), held).replace == [("postgres", "columns")]
    moved = _planned(table(("n", True), ("id", True)), table(("id", False), ("n", False)))
    assert moved.replace == [("postgres", "columns")]
    assert moved.state is not None
    assert [one["not_null"] for one in moved.state["postgres"]["columns"]] == [True, True]


def _planned(config: dict[str, Any], prior: dict[str, Any]) -> Planned:
    return plan(Session("test"), ENTITY, prior, config, Private())
