from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from leatstream_terraform.artefacts import SCHEMA
from leatstream_terraform.docs import render
from leatstream_terraform.generate import dumps, generate
from leatstream_terraform.schema import parse

ROOT = Path(__file__).parents[3]
COMMITTED = json.loads((ROOT / SCHEMA / "provider.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def document(openapi: dict[str, Any]) -> dict[str, Any]:
    return generate(openapi)


def test_all_resources_are_there(document: dict[str, Any]) -> None:
    names = {f"leatstream_{noun}" for noun in ("database", "schema", "store", "entity", "stream", "query")}
    assert set(document["resources"]) == names
    assert set(COMMITTED["resources"]) >= names


def test_output_does_not_depend_on_order(openapi: dict[str, Any]) -> None:
    turned = copy.deepcopy(openapi)
    turned["paths"] = dict(reversed(turned["paths"].items()))
    turned["components"]["schemas"] = dict(reversed(turned["components"]["schemas"].items()))
    assert dumps(generate(turned)) == dumps(generate(openapi))


def test_names_in_the_path_are_required_and_replace(document: dict[str, Any]) -> None:
    name = document["resources"]["leatstream_stream"]["attributes"]["schema"]
    assert (name["mode"], name["path"], name["replace"]) == ("required", True, True)


def test_constants_are_no_attributes(document: dict[str, Any]) -> None:
    stream = document["resources"]["leatstream_stream"]
    assert stream["constants"] == {"kind": "stream"}
    assert "kind" not in stream["attributes"]


def test_write_only_members_become_two_attributes(document: dict[str, Any]) -> None:
    sasl = document["resources"]["leatstream_store"]["attributes"]["kafka"]["attributes"]["sasl"][
        "attributes"
    ]
    assert "password" not in sasl
    assert sasl["password_wo"]["write_only"] is True
    assert sasl["password_wo"]["rest"] == "password"
    assert sasl["password_wo_version"] == {
        "type": "number",
        "mode": "optional",
        "provider_only": True,
        "trigger": True,
        "description": sasl["password_wo_version"]["description"],
    }


def test_defaults_and_enums_through_or_null(document: dict[str, Any]) -> None:
    query = document["resources"]["leatstream_query"]["attributes"]
    assert query["desired_state"]["mode"] == "optional_computed"
    assert query["desired_state"]["default"] == "running"
    kafka = document["resources"]["leatstream_store"]["attributes"]["kafka"]["attributes"]
    assert kafka["security_protocol"]["enum"] == ["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]
    assert "default" not in kafka["security_protocol"]


def test_an_example_comes_with_the_pattern_that_it_explains(openapi: dict[str, Any]) -> None:
    changed = copy.deepcopy(openapi)
    servers = changed["components"]["schemas"]["Kafka"]["properties"]["bootstrap_servers"]
    servers["examples"] = ["localhost:9092"]

    def made() -> dict[str, Any]:
        store = generate(changed)["resources"]["leatstream_store"]["attributes"]
        item: dict[str, Any] = store["kafka"]["attributes"]["bootstrap_servers"]
        return item

    assert "example" not in made()
    servers["pattern"] = ":[0-9]+$"
    assert (made()["pattern"], made()["example"]) == (":[0-9]+$", "localhost:9092")
    attributes = parse(generate(changed)).resources["leatstream_store"].attributes["kafka"].attributes
    assert attributes["bootstrap_servers"].example == "localhost:9092"


def test_answers_become_computed_attributes(document: dict[str, Any]) -> None:
    query = document["resources"]["leatstream_query"]["attributes"]
    assert query["effective"]["nesting"] == "map"
    assert query["effective"]["attributes"]["value"]["type"] == "string"
    assert query["effective"]["infer"] == "plan.sink.properties"
    assert "statement_hash" not in query
    assert "pid" not in query["status"]["attributes"]["job"]["attributes"]
    assert query["plan"]["attributes"]["sink"]["attributes"]["entity"]["replace"] is True


@pytest.mark.parametrize("hint", ["path", "key", "import", "path_attributes"])
def test_a_missing_hint_is_named(openapi: dict[str, Any], hint: str) -> None:
    broken = copy.deepcopy(openapi)
    del broken["components"]["schemas"]["QueryBody"]["x-terraform"][hint]
    with pytest.raises(ValueError, match=f"lacks '{hint}'"):
        generate(broken)


def test_a_hint_for_nothing_is_named(openapi: dict[str, Any]) -> None:
    broken = copy.deepcopy(openapi)
    broken["components"]["schemas"]["QueryBody"]["x-terraform"]["attributes"]["typo"] = {"omit": True}
    with pytest.raises(ValueError, match="typo"):
        generate(broken)


def test_a_document_without_hints_is_refused() -> None:
    with pytest.raises(ValueError, match="x-terraform"):
        generate({"paths": {}})


def test_the_wheel_carries_what_is_committed() -> None:
    data = ROOT / SCHEMA / "leatstream_terraform" / "data"
    assert (data / "provider.json").read_bytes() == (ROOT / SCHEMA / "provider.json").read_bytes()
    protocol = ROOT / SCHEMA / "protocol" / "protocol.binpb"
    assert (data / "protocol.binpb").read_bytes() == protocol.read_bytes()


def test_the_pages_are_those_of_the_schema() -> None:
    docs = ROOT / SCHEMA / "docs"
    pages = {str(path.relative_to(docs)): path.read_text(encoding="utf-8") for path in docs.rglob("*.md")}
    assert pages == render(COMMITTED)


def test_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="format 99"):
        parse({"format": 99})


def test_every_computed_or_stored_attribute_is_told(document: dict[str, Any]) -> None:
    def check(attributes: dict[str, Any]) -> None:
        for name, item in attributes.items():
            assert item["mode"] in ("required", "optional", "computed", "optional_computed"), name
            assert item["description"], name
            check(item.get("attributes", {}))

    for resource in (*document["resources"].values(), *COMMITTED["resources"].values()):
        assert resource["description"]
        check(resource["attributes"])
