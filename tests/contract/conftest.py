"""An application on real services, with fakes behind the ports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fakes
import pytest
from scratch import memory_directory
from starlette.testclient import TestClient

from leatstream.rest.app import create_app


@pytest.fixture
def fresh() -> Iterator[Any]:
    """A new, empty world."""
    with memory_directory() as directory:
        made = fakes.make_world(Path(directory))
        yield made
        made.units.close()


@pytest.fixture
def client(fresh: Any) -> Iterator[TestClient]:
    """The administrator's client of a new world."""
    app = create_app(fresh.env)
    with TestClient(app, headers=fresh.headers, raise_server_exceptions=False) as opened:
        yield opened


@pytest.fixture
def pageviews(client: TestClient) -> TestClient:
    """The client of a world that holds a store, a topic and a stream."""
    bodies: dict[str, dict[str, Any]] = {
        "/v1/databases/demo": {},
        "/v1/stores/k": {"kafka": {"bootstrap_servers": "localhost:9092"}},
        "/v1/stores/k/entities/pageviews": {"kafka": {"partitions": 3, "replicas": 1}},
        "/v1/relations/demo.public.pageviews": {
            "columns": [{"name": "viewtime", "type": "BIGINT"}, {"name": "userid", "type": "VARCHAR"}],
            "store": "k",
            "value_format": "json",
        },
    }
    for path, body in bodies.items():
        answer = client.put(path, json=body)
        assert answer.status_code == 201, answer.text
    return client
