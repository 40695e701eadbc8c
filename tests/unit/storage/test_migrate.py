"""Migrations lead to exactly the tables of the code, and back."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from leatstream.storage.engine import make_engine
from leatstream.storage.migrate import at_head, migrate
from leatstream.storage.tables import metadata


def _tables(url: str) -> set[str]:
    engine = make_engine(url)
    try:
        return set(sa.inspect(engine).get_table_names())
    finally:
        engine.dispose()


def test_up_down_up(tmp_path: Path) -> None:
    """Going down drops everything, going up twice changes nothing."""
    url = f"sqlite:///{tmp_path / 'new' / 'catalog.db'}"
    assert not at_head(url)
    migrate(url)
    assert at_head(url)
    assert _tables(url) == {*metadata.tables, "alembic_version"}
    migrate(url, "base")
    assert _tables(url) == {"alembic_version"}
    assert not at_head(url)
    migrate(url)
    migrate(url)
    assert at_head(url)


def test_models_are_what_the_migrations_make(tmp_path: Path) -> None:
    """A change of tables.py without a revision fails here."""
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    migrate(url)
    engine = make_engine(url)
    try:
        with engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            assert compare_metadata(context, metadata) == []
    finally:
        engine.dispose()
