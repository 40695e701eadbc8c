"""Migrations lead to exactly the tables of the code, and back."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

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


def test_a_column_that_nobody_wrote_goes_and_comes_back(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    migrate(url)
    engine = make_engine(url)
    try:
        with engine.execution_options(leatstream_write=True).begin() as connection:
            text = "INSERT INTO tokens (id, hash, principal, role, created_at) VALUES ('t', 'h', 'p', 'r', '2026-01-01')"
            connection.execute(sa.text(text))
        for step, there in (("head", False), ("r0030", True), ("head", False)):
            migrate(url, step)
            columns = {column["name"] for column in sa.inspect(engine).get_columns("tokens")}
            assert ("last_used" in columns) is there
            with engine.connect() as connection:
                assert connection.execute(sa.text("SELECT id, hash FROM tokens")).all() == [("t", "h")]
    finally:
        engine.dispose()


def test_from_anywhere_to_anywhere(tmp_path: Path) -> None:
    """The way is told by where the catalog is: there is no other one for who needs an older version."""
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    assert revision(url) == "base"
    migrate(url)
    head = revision(url)
    for step in ("r0022", "r0022", "r0030", "r0011", head):
        migrate(url, step)
        assert revision(url) == step
        assert ("savepoints" in _tables(url)) is (step >= "r0030")
    with pytest.raises(StackError, match=r"There is no schema r0012\.") as told:
        migrate(url, "r0012")
    assert "r0011" in str(told.value.faults[0].hint)
    assert at_head(url)


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


@pytest.mark.parametrize("schema", ["base", "r0023"])
def test_a_server_that_may_not_migrate_refuses_an_old_schema(tmp_path: Path, schema: str) -> None:
    settings = Settings(data_dir=tmp_path, migrate=False)
    migrate(settings.catalog)
    migrate(settings.catalog, schema)
    with pytest.raises(StackError, match="not the newest"):
        open_runtime(settings, "http://127.0.0.1:1", {}, migrate_catalog=settings.migrate)
    assert revision(settings.catalog) == schema
