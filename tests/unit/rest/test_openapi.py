"""The published contract: the committed document is this version's, valid, and keeps the house's rules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from openapi_spec_validator import validate
from pydantic import BaseModel

from leatstream.model.access import OBJECT_PRIVILEGES
from leatstream.rest.needs import CHANGES, OPERATIONS, STATEMENTS, Needs
from leatstream.rest.openapi import render_document
from leatstream.rest.schemas import databases, entities, queries, relations, statements, stores

ROOT = Path(__file__).parents[3]
OPEN = {"get_health", "get_readiness", "get_problem_type", "get_sign_in", "get_session", "end_session"}
BODIES: list[type[BaseModel]] = [
    databases.DatabaseBody,
    databases.DatabaseCreation,
    databases.SchemaBody,
    stores.StoreBody,
    entities.EntityBody,
    relations.RelationBody,
    queries.QueryBody,
    queries.QueryPatch,
    statements.StatementBody,
    statements.ValidationBody,
]


@pytest.fixture(scope="module")
def text() -> str:
    return render_document()


@pytest.fixture(scope="module")
def document(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(text, yaml.CSafeLoader)
    return found


def test_committed_document_is_this_versions(text: str) -> None:
    assert (ROOT / "openapi.yaml").read_text() == text, "run: make generate"


def test_valid(document: dict[str, Any]) -> None:
    validate(document)


def _operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(p, m, o) for p, item in document["paths"].items() for m, o in item.items()]


def test_every_operation_is_told_whole(document: dict[str, Any]) -> None:
    """Id, one tag of the list, summary, description, and the errors that any call may get."""
    tags = {tag["name"] for tag in document["tags"]}
    ids = [operation["operationId"] for _, _, operation in _operations(document)]
    assert len(ids) == len(set(ids))
    for path, _, operation in _operations(document):
        assert set(operation["tags"]) <= tags
        assert operation["summary"]
        assert operation["description"].endswith("."), path
        if operation["operationId"] not in OPEN:
            assert {"401", "403", "422", "500"} <= set(operation["responses"]), path


def test_errors_are_problem_documents(document: dict[str, Any]) -> None:
    """No operation answers an error in another form, but for readiness."""
    for path, _, operation in _operations(document):
        for status, response in operation["responses"].items():
            if int(status) >= 400 and path != "/readyz":
                assert response == {"$ref": f"#/components/responses/Problem{status}"}


def test_only_health_is_open(document: dict[str, Any]) -> None:
    """Everything else wants the bearer token."""
    assert document["security"] == [{"bearer": []}]
    unguarded = {o["operationId"] for _, _, o in _operations(document) if o.get("security") == []}
    assert unguarded == OPEN


def test_internal_routes_are_not_published(document: dict[str, Any]) -> None:
    assert not [path for path in document["paths"] if "/drivers/" in path]


def test_every_operation_says_what_it_needs(document: dict[str, Any]) -> None:
    """A new operation needs a line in ``rest/needs.py``; tests/contract/test_access_matrix.py compares it."""
    operations = {one["operationId"] for item in document["paths"].values() for one in item.values()}
    assert operations == set(OPERATIONS)
    assert set(CHANGES) <= operations
    store = document["paths"]["/v1/stores/{store}"]["put"]["x-access"]
    for needs in (store, store["change"]):
        assert {one["needs"] for one in needs["also"]} >= {
            "USE_MACHINE_CREDENTIALS on organization",
            "USAGE on secret",
        }


@pytest.mark.parametrize("needs", [*OPERATIONS.values(), *CHANGES.values(), *STATEMENTS.values()])
def test_only_what_can_be_granted_is_needed(needs: Needs) -> None:
    for one in (*needs.privileges, *(one for one, _ in needs.also)):
        privilege, _, kind = one.partition(" ")
        assert privilege in OBJECT_PRIVILEGES[kind]


def test_nothing_of_openapi_3_2(text: str) -> None:
    assert "itemSchema" not in text.replace("x-item-schema", "")


def test_passwords_are_write_only(document: dict[str, Any]) -> None:
    """No answer has a member for a secret."""
    schemas = document["components"]["schemas"]
    assert schemas["SaslBody"]["properties"]["password"]["writeOnly"] is True
    assert "password" not in schemas["SaslView"]["properties"]


@pytest.mark.parametrize("model", BODIES)
def test_examples_fit_their_models(model: type[BaseModel]) -> None:
    examples = model.model_json_schema()["examples"]
    assert examples
    for example in examples:
        model.model_validate(example)


@pytest.mark.parametrize("model", BODIES)
def test_bodies_take_nothing_undeclared(model: type[BaseModel]) -> None:
    assert model.model_config["extra"] == "forbid"


def test_importing_the_face_loads_neither_spark_nor_the_database() -> None:
    """It sees services only."""
    heavy = ("pyspark", "sqlalchemy", "confluent_kafka")
    code = f"import sys, leatstream.rest.app; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_server_starts_without_the_libraries_of_graphql_and_sign_in() -> None:
    """They take half a second, and are loaded when they are first needed."""
    text = "import sys, leatstream.rest.app, leatstream.bootstrap; print({'strawberry', 'joserfc'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
