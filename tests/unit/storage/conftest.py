"""A migrated catalog in a temporary directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from leatstream.storage.migrate import migrate
from leatstream.storage.unit_of_work import SqlUnits, open_units


@pytest.fixture
def url(tmp_path: Path) -> str:
    """URL of a new catalog."""
    found = f"sqlite:///{tmp_path / 'catalog.db'}"
    migrate(found)
    return found


@pytest.fixture
def units(url: str) -> Iterator[SqlUnits]:
    """Units of work on a new catalog."""
    opened = open_units(url)
    yield opened
    opened.close()
