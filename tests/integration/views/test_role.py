"""Views in PostgreSQL are kept with a role that reaches nothing of the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from postgres_server import PASSWORD, PostgresServer

from leatstream.bootstrap.adapters import open_view_store
from leatstream.errors import InternalError, StoreError
from leatstream.model.types import parse_type
from leatstream.ports import Snapshot
from leatstream.settings import Settings
from leatstream.storage.migrate import migrate
from leatstream.storage.secret_box import open_secret_box
from leatstream.storage.unit_of_work import open_units
from leatstream.views.base import Batch, Table
from leatstream.views.postgresql_role import without_password
from leatstream.views.postgresql_writer import PostgresWriter

pytestmark = pytest.mark.core

TABLE = Table("v_1", 1, (parse_type("BIGINT"),))


class Catalog:
    """A catalog of a role that is no superuser, and its server's start as far as views are concerned."""

    def __init__(self, postgres: PostgresServer, name: str, rights: str, directory: Path) -> None:
        self.postgres, self.name, self.directory = postgres, name, directory
        with postgres.connect("postgres") as connection:
            connection.execute(f"CREATE ROLE {name} LOGIN {rights} PASSWORD '{PASSWORD}'")
            connection.execute(f"CREATE DATABASE {name} OWNER {name}")
        self.url = f"postgresql://{name}:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{postgres.port}/{name}"
        migrate(self.url)

    def start(self, **settings: Any) -> Any:
        """The views of a server that starts."""
        units = open_units(self.url)
        try:
            box = open_secret_box(self.directory / "keys.json")
            return open_view_store(Settings(catalog_url=self.url, **settings), units, box, self.directory)
        finally:
            units.close()

    def drop(self) -> None:
        with self.postgres.connect("postgres") as connection:
            connection.execute(f"DROP DATABASE {self.name} WITH (FORCE)")


@pytest.fixture(params=["CREATEROLE", "SUPERUSER"])
def catalog(request: pytest.FixtureRequest, postgres: PostgresServer, tmp_path: Path) -> Iterator[Catalog]:
    made = Catalog(
        postgres, f"cat_{request.param.lower()}_{tmp_path.name[-12:].lower()}", request.param, tmp_path
    )
    yield made
    made.drop()


def write(views: Any, number: int = 0, table: Table = TABLE) -> None:
    """What a job does, with what a driver is given."""
    writer = PostgresWriter(views.database.location, views.password, table, 1)
    writer.open()
    writer.apply(Batch(number=number, time=1, watermark=None, rows=[(number,)], gone=[]))
    writer.close()


def read(views: Any) -> list[Any]:
    snapshot = Snapshot('SELECT c0 FROM leatstream_views."v_1" ORDER BY c0', (), [("v_1", 1)], 10, 5.0)
    return [row[0] for row in views.read(snapshot)[0]]


def test_a_driver_s_password_opens_the_views_and_nothing_else(catalog: Catalog) -> None:
    views = catalog.start()
    assert views.unusable is None
    assert views.password not in (None, PASSWORD)
    assert urlsplit(views.database.location).username != catalog.name
    write(views)
    assert read(views) == [0]
    views.add_index("v_1", "i", [0])
    views.drop_index("v_1", "i")
    with psycopg.connect(views.database.location, password=views.password, autocommit=True) as connection:
        for statement in (
            "SELECT * FROM tokens",
            "INSERT INTO tokens (id, hash, principal, role, created_at) VALUES ('x','x','x','sysadmin', now())",
            "UPDATE queries SET owner = 'x'",
            "DROP TABLE secrets",
            "CREATE TABLE public.mine (a int)",
            "CREATE SCHEMA mine",
            "CREATE ROLE mine",
            f"SET ROLE {catalog.name}",
            "ALTER SYSTEM SET log_statement = 'all'",
            "COPY (SELECT 1) TO PROGRAM 'true'",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
    views.drop("v_1")


def test_servers_of_a_catalog_use_one_role(catalog: Catalog) -> None:
    one, two = catalog.start(), catalog.start()
    assert (one.database, one.password) == (two.database, two.password)
    write(one)
    write(two, 1)
    assert read(one) == [0, 1]


def test_views_of_an_older_version_go_to_the_role(catalog: Catalog) -> None:
    """They belong to the catalog's role, with which jobs wrote them."""
    plain, password = without_password(catalog.url)
    writer = PostgresWriter(plain, password, TABLE, 1)
    writer.open()
    writer.apply(Batch(number=0, time=1, watermark=None, rows=[(0,)], gone=[]))
    writer.close()
    views = catalog.start()
    assert read(views) == [0]
    write(views, 1)
    write(views, 0, replace(TABLE, generation=2))  # which makes the table anew


@pytest.fixture
def poor(postgres: PostgresServer, tmp_path: Path) -> Iterator[Catalog]:
    """A catalog whose role may make no roles."""
    made = Catalog(postgres, f"poor_{tmp_path.name[-12:].lower()}", "NOCREATEROLE", tmp_path)
    yield made
    made.drop()


def test_where_no_role_may_be_made_the_way_out_is_told(
    poor: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    views = poor.start()
    assert "materialized views cannot be kept: the catalog's role may not make one" in views.unusable
    assert "LEATSTREAM_VIEWS_URL" in caplog.text
    with pytest.raises(InternalError) as told:  # a driver's job fails with this, and gets no password
        _ = views.password
    assert "CREATEROLE" in str(told.value.faults[0].hint)
    for use in (lambda: read(views), lambda: views.drop("v_1")):
        with pytest.raises(StoreError, match="cannot be kept") as refused:
            use()
        assert PASSWORD not in f"{refused.value.detail}{refused.value.faults[0].hint}"


def test_a_role_that_somebody_else_made_is_used(poor: Catalog) -> None:
    role = f"kept_{poor.name}"
    with poor.postgres.connect("postgres") as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'own'")
    url = f"postgresql://{role}:own@127.0.0.1:{poor.postgres.port}/{poor.name}"
    views = poor.start(views_url=url)
    assert (views.unusable, views.password) == (None, "own")
    write(views)
    assert read(views) == [0]
    with (
        psycopg.connect(views.database.location, password="own") as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute("SELECT * FROM tokens")


@pytest.mark.parametrize("wrong", ["catalog's own", "superuser", "password"])
def test_a_role_that_does_not_do_is_refused(poor: Catalog, wrong: str) -> None:
    place = f"127.0.0.1:{poor.postgres.port}/{poor.name}"
    urls = {
        "catalog's own": (poor.url, "another role than the catalog's"),
        "superuser": (f"postgresql://leat@{place}", "is a superuser"),
        "password": (f"postgresql://shop:wrong@{place}", "cannot log in"),
    }
    url, why = urls[wrong]
    unusable = poor.start(views_url=url).unusable
    assert why in unusable
    assert "wrong" not in unusable.replace("wrong password", "")
