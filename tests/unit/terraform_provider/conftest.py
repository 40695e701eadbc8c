"""The sample contract."""

from __future__ import annotations

from typing import Any

import pytest
from openapi_sample import OPENAPI


@pytest.fixture(scope="session")
def openapi() -> dict[str, Any]:
    """A contract of the real shape."""
    return OPENAPI
