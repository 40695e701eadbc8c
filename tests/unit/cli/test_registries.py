"""``leat schema-registry``: what it has beyond other nouns."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Result, Service

    Leat = Callable[..., Result]

BASE = "/v1/schema-registries/sr"
ONE = {"subject": "a/b", "version": 2, "id": 42, "type": "AVRO", "text": '{"type": "long"}', "references": []}


def test_subjects_and_versions(service: Service, leat: Leat) -> None:
    service.answer("GET", f"{BASE}/subjects", {"items": [{"name": "a/b"}], "next_page_token": None})
    service.answer("GET", f"{BASE}/subjects/a%2Fb/versions", {"items": [{"version": 2}]})
    assert leat("schema-registry", "subjects", "sr", "--q", "A", "-o", "csv").out == "name\na/b\n"
    assert service.requests[-1].url.params["q"] == "A"
    assert leat("schema-registry", "versions", "sr", "a/b", "-o", "csv").out == "version\n2\n"


def test_a_schema_is_shown_as_it_is_written(service: Service, leat: Leat) -> None:
    service.answer("GET", f"{BASE}/subjects/a%2Fb/versions/latest", ONE)
    service.answer("GET", f"{BASE}/subjects/a%2Fb/versions/2", ONE)
    assert leat("schema-registry", "subject", "sr", "a/b").out.endswith('\n\n{"type": "long"}\n')
    done = leat("schema-registry", "subject", "sr", "a/b", "--version", "2", "-o", "json")
    assert json.loads(done.out) == ONE


@pytest.mark.parametrize(("ready", "status"), [(True, 0), (False, 1)])
def test_a_tested_registry_decides_the_exit_status(
    service: Service, leat: Leat, ready: bool, status: int
) -> None:
    service.answer("POST", f"{BASE}:test", {"ready": ready, "message": None, "error_code": None})
    assert leat("schema-registry", "test", "sr", "-o", "json").status == status
