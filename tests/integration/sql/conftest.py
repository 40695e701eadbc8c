"""The unit tests' catalog serves here too."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sql_catalog

from leatstream.plan.logical import LogicalPlan


@pytest.fixture(scope="session")
def bind_text() -> Callable[[str], LogicalPlan]:
    """Parses one query and binds it."""
    return sql_catalog.bind_text
