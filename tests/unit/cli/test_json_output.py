"""``-o json``: the service's own answers, and errors as documents, those of the client's own too."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Result, Service

    Leat = Callable[..., Result]

CAPABILITY = {"kind": "kafka", "built": True, "sink": True, "delivery": [], "properties": []}
PLAN = {"queries": [{"name": "a", "action": "create", "plan": {}}], "removed": []}
APPLICATION = {"name": "shop", "desired_state": "running", "plan": PLAN}


@pytest.fixture
def shop(service: Service, tmp_path: Path) -> tuple[str, ...]:
    """Applies an application, with or without more arguments."""
    service.answer("PUT", "/v1/applications/shop", APPLICATION)
    file = tmp_path / "shop.sql"
    file.write_text("BEGIN …")
    return ("application", "apply", "shop", "-f", str(file), "-o", "json")


@pytest.mark.parametrize(
    ("argv", "path", "answer"),
    [
        (("capabilities",), "/v1/server/capabilities", {"items": [CAPABILITY]}),
        (("capabilities",), "/v1/server/capabilities", {"items": []}),
        (("query", "events", "q"), "/v1/queries/q/events", {"items": [{"state": "running"}]}),
        (("query", "history", "q"), "/v1/queries/q/history", {"items": [{"generation": 1}]}),
        (("store", "list"), "/v1/stores", {"items": [{"name": "k"}], "next_page_token": None}),
        (("store", "get", "k"), "/v1/stores/k", {"name": "k", "comment": None}),
    ],
)
def test_answers_are_written_as_they_came(
    service: Service, leat: Leat, argv: tuple[str, ...], path: str, answer: dict[str, Any]
) -> None:
    service.answer("GET", path, answer)
    result = leat(*argv, "-o", "json")
    assert (result.status, json.loads(result.out), result.err) == (0, answer, "")


def test_what_was_applied_is_written_as_it_came(service: Service, leat: Leat, shop: tuple[str, ...]) -> None:
    result = leat(*shop, "--no-wait")
    assert (result.status, json.loads(result.out)) == (0, APPLICATION)


def test_a_wait_that_fails_is_a_document(service: Service, leat: Leat, shop: tuple[str, ...]) -> None:
    error = {"code": "source-gone", "detail": "topic t is gone", "hint": "make it again"}
    failed = {"state": "failed", "message": "a: no more", "error": error}
    service.answer("GET", "/v1/applications/shop", {**APPLICATION, "status": failed})
    result = leat(*shop)
    told = "Application shop is failed. topic t is gone"
    assert (result.status, json.loads(result.err)) == (
        1,
        {
            "title": "The wait failed",
            "detail": told,
            "code": "source-gone",
            "errors": [{"detail": told, "code": "source-gone", "hint": "make it again"}],
        },
    )


def test_a_wait_that_ends_in_vain_is_a_document(service: Service, leat: Leat, shop: tuple[str, ...]) -> None:
    starting = {"state": "starting", "message": None}
    service.answer("GET", "/v1/applications/shop", {**APPLICATION, "status": starting})
    result = leat(*shop, "--timeout", "0")
    told = json.loads(result.err)
    assert (result.status, told["title"]) == (7, "The wait timed out")
    assert told["detail"].startswith("Application shop is starting, not running")


def test_no_server_is_a_document(leat: Leat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LEATSTREAM_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    result = leat("store", "list", "-o", "json")
    told = json.loads(result.err)
    assert (result.status, told["title"]) == (69, "No server")
    assert "leat dev" in told["detail"]
    assert result.out == ""


def test_no_answer_is_a_document(service: Service, leat: Leat, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("Connection refused", request=request)

    monkeypatch.setattr(service, "handle", refuse)
    result = leat("store", "list", "-o", "json")
    told = json.loads(result.err)
    assert (result.status, told["title"]) == (69, "No answer")
    assert "Connection refused" in told["detail"]


def test_a_wait_that_fails_is_told_to_people_with_its_hint(
    service: Service, leat: Leat, shop: tuple[str, ...]
) -> None:
    error = {"detail": "topic [t]\x1b is gone", "hint": "make it again"}
    service.answer(
        "GET", "/v1/applications/shop", {**APPLICATION, "status": {"state": "failed", "error": error}}
    )
    result = leat(*shop[:-2])
    assert result.status == 1
    assert result.err == "Application shop is failed. topic [t]\\x1b is gone\nhint: make it again\n"
