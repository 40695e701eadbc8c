"""The unit tests' catalog serves here too, and the contract tests' services."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def _conftest(folder: str) -> ModuleType:
    """The conftest of another folder of tests."""
    path = Path(__file__).parents[2] / folder / "conftest.py"
    spec = importlib.util.spec_from_file_location(f"conftest_of_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bind_text = _conftest("unit/sql")._bind_text


@pytest.fixture(scope="module")
def fakes() -> Any:
    """What the contract tests put behind the ports."""
    return _conftest("contract").load_fakes()
