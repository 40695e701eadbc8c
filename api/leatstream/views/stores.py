"""Chooses where materialized views are kept: beside the catalog."""

from __future__ import annotations

from pathlib import Path

from leatstream.ports import ViewStore
from leatstream.views.sqlite_store import SqliteViews


def open_views(catalog_url: str, directory: Path) -> ViewStore:
    """The store of views that belongs to a catalog.

    Args:
        catalog_url: SQLAlchemy URL of the catalog.
        directory: of SQLite files, where the catalog is SQLite.
    """
    if catalog_url.startswith("postgresql"):
        from leatstream.views.postgresql_store import PostgresViews

        return PostgresViews(catalog_url)
    return SqliteViews(directory)
