"""The conformance suite lies beside the tests that use it; importlib mode leaves the folder out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import psycopg
    from change_feed import Feed
    from postgres_server import PostgresServer


@pytest.fixture
def admin(postgres: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    """A superuser's connection that makes what ``shop`` owns."""
    with postgres.connect() as connection:
        connection.execute("SET ROLE shop")
        yield connection


@pytest.fixture
def feed(
    postgres: PostgresServer,
    admin: psycopg.Connection[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[..., Feed]]:
    """Makes sources of changes; see ``change_feed``."""
    from change_feed import feeds

    from leatstream.connectors.postgres import cdc_source

    monkeypatch.setattr(cdc_source, "_GAP", 0.005)
    with feeds(postgres, admin, tmp_path / "changes") as make:
        yield make
