"""A store kind is one folder: a toy kind, registered by one line, is seen wherever kinds are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture(scope="module")
def faces() -> dict[str, Any]:
    """What each face of the product makes of the toy kinds; see ``toy_world``."""
    shown = subprocess.run(
        [sys.executable, str(_SUPPORT / "toy_world.py")],
        env={**os.environ, "PYTHONPATH": str(_SUPPORT)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert shown.returncode == 0, shown.stderr
    found: dict[str, Any] = json.loads(shown.stdout)
    return found


def test_openapi_has_its_body_and_its_view(faces: dict[str, Any]) -> None:
    schemas = faces["openapi"]["components"]["schemas"]
    body, view = schemas["ToyBody"], schemas["ToyView"]
    assert body["required"] == ["shelf"]
    assert list(body["properties"]) == ["shelf", "colour", "height", "owner", "key", "key_secret"]
    assert body["properties"]["key"]["writeOnly"] is True
    assert body["properties"]["key"]["description"] == "Key of the shelf; left out = the stored one stays."
    assert list(view["properties"]) == ["shelf", "colour", "height", "owner", "key_secret"]
    assert {"required": ["toy"]} in schemas["StoreBody"]["oneOf"]
    assert {"toy": {"shelf": "upper"}} in schemas["StoreBody"]["examples"]
    assert "toy" in schemas["EntityBody"]["properties"]
    assert "toy" in schemas["AssumedStore"]["properties"]


def test_terraform_has_its_attributes(faces: dict[str, Any]) -> None:
    resources = faces["provider"]["resources"]
    toy = resources["leatstream_store"]["attributes"]["toy"]["attributes"]
    assert toy["shelf"]["mode"] == "required"
    assert "key_wo" in toy
    assert toy["key_wo"]["write_only"] is True
    assert "wheels" in resources["leatstream_entity"]["attributes"]["toy"]["attributes"]


def test_sql_reads_its_properties(faces: dict[str, Any]) -> None:
    assert faces["create"]["results"][0]["status"] == "succeeded"
    assert faces["update"]["results"][0]["status"] == "succeeded"
    settings = {"shelf": "upper", "colour": "light_blue", "height": 4, "owner": "ann", "key_secret": None}
    assert faces["store"]["toy"] == settings
    assert "hunter2" not in json.dumps(faces)
    told = {(fault["code"], fault["detail"]) for fault in faces["faults"]["errors"]}
    assert told == {
        ("unsupported", "The store property 'toy.box' is not supported."),
        ("invalid-property", "'toy.shelff' is not a store property."),
        ("invalid-property", "A toy store needs 'toy.shelf'."),
        ("invalid-property", "'toy.colour' is red or light-blue."),
    }


def test_a_stored_secret_is_not_sent_elsewhere(faces: dict[str, Any]) -> None:
    assert faces["moved"]["errors"][0]["pointer"] == "#/toy/key"


def test_its_entities_are_made_and_shown(faces: dict[str, Any]) -> None:
    shown = {item["name"]: item for item in faces["entities"]["items"]}
    assert shown["car"]["toy"] == {"wheels": 4, "sound": "toot"}
    assert shown["bike"]["effective"]["wheels"] == 2
    assert faces["put"]["toy"]["wheels"] == 8
    assert faces["entity_needs"]["code"] == "property-required"
    assert "toy.wheels" in faces["entity_needs"]["detail"]


def test_the_capability_page_has_its_row(faces: dict[str, Any]) -> None:
    assert "| toy | at_least_once | toys may be put back twice | `toy.wheels` |" in faces["page"]
    row = next(item for item in faces["capabilities"]["items"] if item["kind"] == "toy")
    assert (row["built"], row["source"], row["sink"]) == (True, False, True)


@pytest.mark.parametrize(
    ("statement", "detail", "hint"),
    [
        ("read_sink", "which queries cannot read", "INSERT INTO"),
        ("read_for_topic", "which queries cannot read", "INSERT INTO"),
        ("write_source", "Queries cannot write to stores of kind toy_source", "kafka"),
        ("in_views", "Stores of kind toy_views have no relations", "kafka"),
        ("print", "records cannot be shown of store shelf", "kafka"),
        ("create_in_source", "nothing can be created or changed in store src", "kafka"),
    ],
)
def test_the_other_use_is_refused_with_what_works(
    faces: dict[str, Any], statement: str, detail: str, hint: str
) -> None:
    answer = faces[statement]
    assert (answer.get("code"), answer.get("status")) == ("unsupported", 422), answer
    assert detail in answer["detail"]
    assert hint in answer["errors"][0]["hint"]


def test_what_it_can_do_works(faces: dict[str, Any]) -> None:
    assert faces["write_sink"]["results"][0]["kind"] == "insert_into", faces["write_sink"]
