"""Problem documents: their shape, and what must never be in them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from leatstream.connectors.registry import PLANNED
from leatstream.errors import (
    FAMILIES,
    AccessError,
    CatalogAway,
    CatalogBusy,
    CatalogError,
    Fault,
    Position,
    RequestError,
    StoreError,
)
from leatstream.rest import problem
from leatstream.rest.routes.server import get_problem_type
from leatstream.rest.schemas.base import Problem
from leatstream.rest.schemas.queries import QueryBody
from leatstream.rest.schemas.stores import StoreBody


def _errors(model: type[BaseModel], body: Any) -> list[dict[str, Any]]:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(body)
    return [{**item, "loc": ("body", *item["loc"])} for item in caught.value.errors()]


def test_document() -> None:
    """Every member of the contract, and no empty ones in the faults."""
    faults = [
        Fault("no such column", "unknown-column", position=Position(2, 8, 41, 4), hint="say b"),
        Fault("bad", pointer="#/sql"),
    ]
    error = RequestError("unknown-column", "2 faults", faults=faults, results=[{"kind": "x"}])
    found = problem.document(error, "/v1/statements", "r1")
    assert found == {
        "type": "/problems/unknown-column",
        "title": "Column does not exist",
        "status": 422,
        "code": "unknown-column",
        "detail": "2 faults",
        "instance": "/v1/statements",
        "request_id": "r1",
        "sqlstate": "42703",
        "errors": [
            {
                "detail": "no such column",
                "code": "unknown-column",
                "position": {"line": 2, "column": 8, "offset": 41, "length": 4},
                "hint": "say b",
            },
            {"detail": "bad", "pointer": "#/sql"},
        ],
        "results": [{"kind": "x"}],
    }
    Problem.model_validate(found)


def test_every_code_makes_a_document() -> None:
    """No code of the tree breaks the contract."""
    for family in FAMILIES:
        for code, kind in family.kinds.items():
            found = problem.document(family(code, "d"), "/", "r")
            assert (found["status"], found["code"]) == (kind.status, code)
            assert len(found["sqlstate"]) == 5
            Problem.model_validate(found)


def test_every_type_that_a_document_names_is_explained() -> None:
    """Those of a request that no service has seen too."""
    known = {code: kind.status for family in FAMILIES for code, kind in family.kinds.items()}
    known |= {fault.code: status for status, fault in problem.HTTP_FAULTS.items()}
    assert {"no-such-path", "method-not-allowed", "unsupported-media-type"} <= set(known)
    for code, status in known.items():
        told = get_problem_type(code)
        assert (told.code, told.status, len(told.sqlstate)) == (code, status, 5)
    with pytest.raises(CatalogError, match="no problem code nothing"):
        get_problem_type("nothing")


def test_headers() -> None:
    """What clients and proxies act on."""
    assert (
        problem.answer(AccessError("unauthenticated", "d"), "/", "r").headers["www-authenticate"] == "Bearer"
    )
    assert "retry-after" in problem.answer(StoreError("store-unreachable", "d"), "/", "r").headers
    plain = problem.answer(CatalogError("not-found", "d"), "/", "r")
    assert plain.headers["content-type"] == "application/problem+json"
    assert "retry-after" not in plain.headers


def test_validation_gives_pointers_and_echoes_nothing() -> None:
    """A password in the wrong place, or of the wrong type, does not come back."""
    body = {
        "comment": {"x": "hunter2"},
        "kafka": {
            "bootstrap_servers": "hunter2",
            "sasl": {"mechanism": "hunter2", "username": "u", "password": {"x": "hunter2"}},
        },
    }
    error = problem.from_validation(_errors(StoreBody, body), "application/json")
    text = json.dumps(problem.document(error, "/", "r"))
    assert "hunter2" not in text
    assert {fault.pointer for fault in error.faults} == {
        "#/comment",
        "#/kafka/bootstrap_servers",
        "#/kafka/sasl/mechanism",
        "#/kafka/sasl/password",
    }


def test_pointers_are_escaped() -> None:
    """``/`` and ``~`` in member names."""
    error = problem.from_validation(_errors(QueryBody, {"sql": "x", "a/b~c": 1}), "application/json")
    assert [fault.pointer for fault in error.faults] == ["#/a~1b~0c"]


def test_wrong_content_type_is_named() -> None:
    """A body that was not read as JSON says why."""
    items = [{"loc": ("body",), "type": "model_attributes_type", "msg": "Input should be a valid dictionary"}]
    error = problem.from_validation(items, "text/plain")
    assert "Content-Type" in (error.faults[0].hint or "")


def test_planned_kinds_are_refused_as_unsupported() -> None:
    """Not built is not the same as misspelt."""
    for kind in PLANNED:
        with pytest.raises(RequestError) as caught:
            StoreBody.model_validate({kind: {"uris": "h"}})
        assert (caught.value.code, caught.value.sqlstate) == ("unsupported", "0A000")
    _errors(StoreBody, {"kafak": {}})


def test_sql_faults_point_at_the_sql_member() -> None:
    """Only those that have a position and no pointer yet."""
    faults = [Fault("a", position=Position(1, 1, 0)), Fault("b"), Fault("c", pointer="#/x")]
    with pytest.raises(RequestError) as caught, problem.about_sql():
        raise RequestError("validation", "d", faults=faults)
    assert [fault.pointer for fault in caught.value.faults] == ["#/sql", None, "#/x"]


def test_a_catalog_that_is_away_is_no_internal_error() -> None:
    told = problem.unexpected(CatalogAway("connection to 10.0.0.1 refused"), "/v1/queries", "r1")
    body = json.loads(bytes(told.body))
    assert (told.status_code, told.headers["Retry-After"]) == (503, "1")
    assert (body["code"], body["sqlstate"]) == ("catalog-unreachable", "57015")
    assert "10.0.0.1" not in json.dumps(body)


def test_a_catalog_that_is_busy_is_to_be_asked_again() -> None:
    told = problem.unexpected(CatalogBusy("The catalog is busy."), "/v1/queries", "r1")
    body = json.loads(bytes(told.body))
    assert (told.status_code, told.headers["Retry-After"]) == (503, "1")
    assert (body["code"], body["sqlstate"]) == ("catalog-busy", "55P03")
