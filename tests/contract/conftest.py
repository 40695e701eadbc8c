"""An application on real services, with the fakes of ``fakes.py`` behind the ports."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.rest.app import create_app

_NAME = "leatstream_contract_fakes"


def load_fakes() -> Any:
    """The module beside this file; tests are no package, so it is loaded by its path, once."""
    if _NAME not in sys.modules:
        spec = importlib.util.spec_from_file_location(_NAME, Path(__file__).with_name("fakes.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[_NAME] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            # A half module would hide the true error from the tests after this one.
            del sys.modules[_NAME]
            raise
    return sys.modules[_NAME]


@pytest.fixture(scope="module")
def fakes() -> Any:
    """The module of fakes."""
    return load_fakes()


@pytest.fixture
def fresh(tmp_path: Path, fakes: Any) -> Iterator[Any]:
    """A new, empty world."""
    made = fakes.make_world(tmp_path)
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
