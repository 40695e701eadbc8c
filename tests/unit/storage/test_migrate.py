"""Migrations lead to exactly the tables of the code, and back."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from next_schema import NEXT, next_schema

from leatstream.bootstrap import open_runtime
from leatstream.errors import StackError
from leatstream.settings import Settings
from leatstream.storage.engine import make_engine
from leatstream.storage.migrate import at_head, migrate, revision
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


def test_from_anywhere_to_anywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The way is told by where the catalog is: there is no other one for who needs an older version."""
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    assert revision(url) == "base"
    migrate(url)
    first = revision(url)
    next_schema(monkeypatch, tmp_path)
    assert not at_head(url)
    for step in (NEXT, NEXT, first, first, NEXT):
        migrate(url, step)
        assert revision(url) == step
        assert ("more" in _tables(url)) is (step == NEXT)
    with pytest.raises(StackError, match=r"There is no schema r0012\.") as told:
        migrate(url, "r0012")
    assert first in str(told.value.faults[0].hint)
    assert at_head(url)


@pytest.mark.parametrize("before", ["r0001", "r0032"])
def test_a_schema_of_before_the_first_release_is_not_taken_for_a_newer_one(
    tmp_path: Path, before: str
) -> None:
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    migrate(url)
    engine = make_engine(url)
    with engine.execution_options(leatstream_write=True).begin() as connection:
        connection.execute(sa.text(f"UPDATE alembic_version SET version_num = '{before}'"))
    engine.dispose()
    with pytest.raises(StackError, match=f"schema {before}, which is older than") as told:
        migrate(url)
    assert "leat catalog migrate --new" in str(told.value.faults[0].hint)


def test_an_older_version_says_how_to_come_back_to_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    migrate(url)
    head, engine = revision(url), make_engine(url)
    with engine.execution_options(leatstream_write=True).begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = 'r9999'"))
    engine.dispose()
    with pytest.raises(StackError, match="r9999 of a newer leatstream") as told:
        migrate(url)
    assert f"leat catalog migrate --to {head}" in str(told.value.faults[0].hint)


def test_a_server_that_may_not_migrate_refuses_an_old_schema(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = Settings(data_dir=tmp_path / "data", migrate=False)
    settings.data_dir.mkdir()
    migrate(settings.catalog)
    first = revision(settings.catalog)
    next_schema(monkeypatch, tmp_path)
    for schema in (first, "base"):
        migrate(settings.catalog, schema)
        with pytest.raises(StackError, match="not the newest"):
            open_runtime(settings, "http://127.0.0.1:1", {}, migrate_catalog=settings.migrate)
        assert revision(settings.catalog) == schema
