"""A catalog of its own for each test: fresh names, cleaned up afterwards."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from playground import Playground

_numbers = itertools.count(1)


@pytest.fixture
def play(leatstream_server: Any) -> Iterator[Playground]:
    """A playground on the shared server; its queries are deleted at the end, so that drivers are free again."""
    with leatstream_server.client() as http:
        playground = Playground(
            http, leatstream_server.kafka_bootstrap, f"t{next(_numbers)}_{uuid.uuid4().hex[:6]}"
        )
        made = http.put(
            f"/v1/stores/{playground.name}",
            json={"kafka": {"bootstrap_servers": leatstream_server.kafka_bootstrap}},
        )
        assert made.status_code == 201, made.text
        assert made.json()["status"]["state"] == "ready"
        assert http.put(f"/v1/databases/{playground.name}", json={}).status_code == 201
        yield playground
        for query in http.get("/v1/queries", params={"page_size": 1000}).json()["items"]:
            if query["name"].startswith(playground.name) or query["database"] == playground.name:
                http.delete(f"/v1/queries/{query['name']}")
