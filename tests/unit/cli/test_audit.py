"""``leat audit``: a table of the newest events, and lines that continue where they ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from leatstream.cli import audit as module

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Result, Service

    Leat = Callable[..., Result]

REFUSED = {"status": 401, "code": "unauthenticated", "detail": "The token is not valid."}


def event(number: int, **more: Any) -> dict[str, Any]:
    return {
        "number": number,
        "at": "2026-01-31T12:00:00.5Z",
        "principal": "ann",
        "role": "sysadmin",
        "operation": "create",
        "kind": "service_account",
        "name": "ci",
        "outcome": "allowed",
        "address": "127.0.0.1",
        "hash": "00",
        **more,
    }


@pytest.fixture
def log(service: Service, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the server has; a fault is answered once, and the end of the log refuses the token."""
    has: list[Any] = []
    slept: list[float] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked = dict(request.url.params)
        faults = [one for one in has if not isinstance(one, dict)]
        if faults and "after" in asked:
            has.remove(faults[0])
            return faults[0]  # type: ignore[no-any-return]
        events = [one for one in has if isinstance(one, dict)]
        if "after" not in asked:
            return httpx2.Response(200, json={"items": events[::-1][: int(asked["page_size"])]})
        found = [one for one in events if one["number"] > int(asked["after"])]
        if not found and len(slept) > 2:
            return httpx2.Response(401, json=REFUSED)
        return httpx2.Response(200, json={"items": found[:2]})

    monkeypatch.setattr(module, "_sleep", slept.append)
    monkeypatch.setattr(service, "handle", answer)
    return has


def test_the_newest_are_a_table(log: list[Any], leat: Leat) -> None:
    log += [event(1), event(2, name="cd")]
    done = leat("audit", "--limit", "1", "-o", "json")
    assert [one["number"] for one in json.loads(done.out)["items"]] == [2]


def test_lines_continue_behind_the_cursor(log: list[Any], leat: Leat, tmp_path: Path) -> None:
    """From the oldest event without one; over a server that starts again; until the token is refused."""
    cursor = tmp_path / "cursor"
    command = ("audit", "-f", "--cursor", str(cursor), "-o", "ndjson")
    log += [event(3), event(4), event(5), httpx2.Response(503, json={"status": 503, "detail": "no"})]
    done = leat(*command)
    assert [json.loads(line)["number"] for line in done.out.splitlines()] == [3, 4, 5]
    assert (cursor.read_text(), done.status != 0) == ("5\n", True)
    assert "asked again" in done.err
    log += [event(6, outcome="denied", code="permission-denied", name="a\nb")]
    done = leat(*command[:-2])
    line = "2026-01-31T12:00:00Z  denied   ann (sysadmin)  create service account a\\nb  permission-denied  127.0.0.1"
    assert done.out == f"{line}\n"
    assert cursor.read_text() == "6\n"


def test_without_a_cursor_the_last_ones_come_first(log: list[Any], leat: Leat) -> None:
    log += [event(3), event(4), event(5)]
    done = leat("audit", "-f", "--limit", "2", "-o", "ndjson")
    assert [json.loads(line)["number"] for line in done.out.splitlines()] == [4, 5]


@pytest.mark.parametrize("text", ["", "x", "9"])
def test_a_cursor_that_is_none_is_refused(log: list[Any], leat: Leat, tmp_path: Path, text: str) -> None:
    log += [event(3)]
    (tmp_path / "cursor").write_text(text)
    done = leat("audit", "-f", "--cursor", str(tmp_path / "cursor"))
    assert (done.status, done.out) == (2, "")
    assert leat("audit", "--cursor", "x").status == 2
    assert leat("audit", "-f", "-o", "csv").status == 2


def test_a_cursor_that_cannot_be_written_is_refused_at_once(
    log: list[Any], leat: Leat, tmp_path: Path
) -> None:
    log += [event(3)]
    done = leat("audit", "-f", "--cursor", str(tmp_path / "missing" / "cursor"))
    assert (done.status, done.out) == (2, "")
    assert "cannot be written" in done.err


def test_filters_are_the_servers(service: Service, leat: Leat) -> None:
    service.answer("GET", "/v1/audit-events", {"items": []})
    filters = (
        "--account",
        "ann",
        "--operation",
        "delete",
        "--kind",
        "query",
        "--q",
        "shop",
        "--outcome",
        "denied",
    )
    assert leat("audit", *filters, "--since", "2026-01-31T09:00:00Z", "--until", "90m").status == 0
    asked = dict(service.requests[-1].url.params)
    until = datetime.fromisoformat(asked.pop("until"))
    assert timedelta(minutes=89) < datetime.now(UTC) - until < timedelta(minutes=100)
    assert asked == {
        "page_size": "50",
        "account": "ann",
        "operation": "delete",
        "kind": "query",
        "q": "shop",
        "outcome": "denied",
        "since": "2026-01-31T09:00:00Z",
    }


@pytest.mark.parametrize("time", ["yesterday", "90", "1w", ""])
def test_a_time_that_is_none_is_refused(service: Service, leat: Leat, time: str) -> None:
    refused = leat("audit", "--since", time)
    assert (refused.status, service.requests) == (2, [])
    assert "6h" in refused.err
