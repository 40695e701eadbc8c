"""The sample contract, loaded by path: test folders are no packages."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def openapi() -> dict[str, Any]:
    """A contract of the real shape."""
    path = Path(__file__).with_name("openapi_sample.py")
    spec = importlib.util.spec_from_file_location("_openapi_sample", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, Any] = module.OPENAPI
    return found
