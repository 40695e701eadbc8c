"""The small catalog, as fixtures."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sql_catalog

from leatstream.model.objects import Relation
from leatstream.plan.logical import LogicalPlan


@pytest.fixture(scope="session")
def bind_text() -> Callable[[str], LogicalPlan]:
    """Parses one query and binds it."""
    return sql_catalog.bind_text


@pytest.fixture(scope="session")
def relations() -> dict[str, Relation]:
    """All that can be read, by name."""
    return sql_catalog.RELATIONS
