"""``leat driver list``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Result, Service

    Leat = Callable[..., Result]

ONE: dict[str, Any] = {
    "id": "drv_1",
    "role": "shared",
    "state": "running",
    "since": None,
    "created_at": "2026-01-01T00:00:00Z",
    "heard_at": None,
    "server": "srv_1",
    "launcher": "kubernetes",
    "host": None,
    "pid": None,
    "pod": "leat-drv-1",
    "queries": [
        {"name": "a", "state": "running", "restarts": 0},
        {"name": "b", "state": "running", "restarts": 2},
    ],
    "selects": False,
    "served": 0,
    "heap_limit_bytes": 512 << 20,
    "heap_bytes": 200 << 20,
    "memory_bytes": 700 << 20,
    "cpu_seconds_total": 12.5,
}


def test_a_list_names_queries_and_memory(service: Service, leat: Leat) -> None:
    warming = ONE | {"id": "drv_2", "queries": [], "selects": True, "heap_bytes": None, "memory_bytes": None}
    service.answer("GET", "/v1/drivers", {"items": [ONE, warming], "next_page_token": None})
    done = leat("driver", "list", "--state", "running", "-o", "csv")
    assert done.status == 0, done.err
    assert service.requests[-1].url.params["state"] == "running"
    head, first, second = (line.split(",") for line in done.out.replace('"a, b"', "a+b").splitlines())
    rows = [dict(zip(head, row, strict=True)) for row in (first, second)]
    assert [(row["queries"], row["memory"], row["heap"]) for row in rows] == [
        ("a+b", "700M", "200/512M"),
        ("(SELECT)", "", "?/512M"),
    ]
    assert [row["place"] for row in rows] == ["leat-drv-1"] * 2


def test_programs_get_the_answer_of_the_service(service: Service, leat: Leat) -> None:
    service.answer("GET", "/v1/drivers", {"items": [ONE], "next_page_token": None})
    assert json.loads(leat("driver", "list", "-o", "ndjson").out) == ONE
