"""``leat events``: changes a line each, and a stream that is opened again where it ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from leatstream.cli import events as module

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Result, Service

    Leat = Callable[..., Result]

AT = "2026-01-31T12:00:00.5Z"
FIRST = {"id": "evt_1", "type": "created", "at": AT, "kind": "schema_registry", "name": "sr", "generation": 1}
FAILED = {
    "id": "evt_2",
    "type": "state",
    "at": AT,
    "kind": "query",
    "name": "q",
    "generation": 1,
    "state": "failed",
    "message": "The topic\nis gone.",
    "error": "source-gone",
}


def lines(*items: Any) -> httpx2.Response:
    return httpx2.Response(200, text="".join(f"{json.dumps(one)}\n" for one in items))


def test_changes_have_a_line_each(service: Service, leat: Leat) -> None:
    service.answers["GET", "/v1/events"] = [lines(FIRST, FAILED, {"position": "evt_3"}, {"end": {}})]
    done = leat("events", "demo.public", "--kind", "query", "--tail", "7")
    assert (done.status, done.out.splitlines()) == (
        0,
        [
            "2026-01-31T12:00:00Z  created   schema registry sr",
            "2026-01-31T12:00:00Z  failed    query q  source-gone: The topic\\nis gone.",
        ],
    )
    asked = dict(service.requests[-1].url.params)
    assert asked == {"name": "demo.public", "kind": "query", "tail": "7", "follow": "false"}


def test_ndjson_is_the_changes_alone(service: Service, leat: Leat) -> None:
    service.answers["GET", "/v1/events"] = [lines(FIRST, {"position": "evt_3"}, FAILED, {"end": {}})]
    done = leat("events", "-o", "ndjson")
    assert [json.loads(line) for line in done.out.splitlines()] == [FIRST, FAILED]
    assert leat("events", "-o", "csv").status == 2


def test_a_stream_that_ends_is_opened_again_behind_its_position(
    service: Service, leat: Leat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nothing was seen since, or the token ended, which is renewed; it ends with the refusal."""
    slept: list[float] = []
    monkeypatch.setattr(module, "_sleep", slept.append)
    gone = {"error": {"code": "unauthenticated", "detail": "The token is not valid."}}
    parts: list[Any] = [
        lines(FIRST, {"position": "evt_9"}, {"end": {}}),
        httpx2.ConnectError("nobody there"),
        httpx2.Response(502, text="bad gateway"),
        lines({"reset": {"reason": "too old"}, "position": "evt_12"}, {"end": {}}),
        lines(FAILED, gone),
        httpx2.Response(401, json={"status": 401, **gone["error"]}),
    ]

    def next_part(request: httpx2.Request) -> httpx2.Response:
        service.requests.append(request)
        part = parts.pop(0)
        if isinstance(part, Exception):
            raise part
        return part  # type: ignore[no-any-return]

    monkeypatch.setattr(service, "handle", next_part)
    done = leat("events", "--follow", "-o", "ndjson")
    asked = [one.url.params.get("after") for one in service.requests]
    positions = [None, "evt_9", "evt_9", "evt_9", "evt_12", "evt_2"]
    assert (asked, slept, parts) == (positions, [1, 1, 1, 1, 1], [])
    assert [json.loads(line)["id"] for line in done.out.splitlines()] == ["evt_1", "evt_2"]
    assert "too old" in done.err
    assert done.status != 0
