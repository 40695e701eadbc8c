"""Both kinds of database that keep views: SQLite files, and the tests' PostgreSQL server."""

from __future__ import annotations

from pathlib import Path

import pytest
from postgres_server import PostgresServer

from leatstream.ports import ViewStore
from leatstream.views.stores import open_views


@pytest.fixture(scope="session")
def postgresql(postgres: PostgresServer) -> str:
    """URL of a database, for its superuser, that sorts texts as people do where it is not told otherwise."""
    with postgres.connect("postgres") as connection:
        connection.execute("CREATE DATABASE sorted TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'und'")
    return postgres.url.removesuffix("postgres") + "sorted"


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ViewStore:
    """A view store of each kind."""
    if request.param == "sqlite":
        return open_views("sqlite:///catalog.db", tmp_path / "views")
    return open_views(request.getfixturevalue("postgresql"), tmp_path)
