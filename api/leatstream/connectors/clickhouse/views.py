"""Materialized views that ClickHouse holds: tables of rows, and a plain view of the newest ones.

ClickHouse's own materialized views are triggers of inserts. These here hold what a query has worked out: the
rows of ``<view>_rows`` replace each other by key, and ``<view>`` shows them with the user's column names.

A query that is to take over from another one writes a table of its own, ``<view>_rows_<version>``. The view
is then exchanged for a view over that table, in one step: readers see either version. Tables of rows are not
exchanged, because jobs write to them by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leatstream.connectors.clickhouse.admin import ClickHouseAdmin, create_statement
from leatstream.connectors.clickhouse.names import entity_name, literal, place, quoted, split_entity
from leatstream.connectors.entities import StoredView
from leatstream.errors import StoreError

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

TIME = "_leat_time"
"""When a row was written, by ClickHouse's clock."""
_OURS = "A materialized view of leatstream"
_HEAD = (
    "SELECT engine, comment FROM system.tables WHERE database = {database:String} AND name = {name:String}"
)
# Databases of an engine that cannot exchange, and users who may not.
_NO_EXCHANGE = (48, 497)  # NOT_IMPLEMENTED, ACCESS_DENIED
_VERSION_DIGITS = 8  # of an id's last, which are random: enough for the two or three versions of one view


def rows_entity(view: str, version: str = "") -> str:
    """The table with the rows of a version of a view."""
    return f"{view}_rows_{version[-_VERSION_DIGITS:]}" if version else f"{view}_rows"


def create_rows(admin: ClickHouseAdmin, view: StoredView, timeout: float) -> None:
    """Create the table of a version's rows; idempotent.

    Args:
        admin: of the store.
        view: and the version.
        timeout: seconds.
    """
    with admin.client(f"creating the rows of view {view.entity}", timeout) as client:
        _make_rows(client, admin.config.home, view)


def show(admin: ClickHouseAdmin, view: StoredView, timeout: float) -> None:
    """Have a view show the rows of a version; creates the view and their table where they are missing.

    Args:
        admin: of the store.
        view: and the version.
        timeout: seconds.

    Raises:
        StoreError: entity-conflict, another table or view has the name.
    """
    home = admin.config.home
    database, name = split_entity(view.entity, home)
    with admin.client(f"creating view {view.entity}", timeout) as client:
        found = client.query(_HEAD, {"database": database, "name": name}).result_rows
        if found and found[0][1] != _OURS:
            raise StoreError(
                "entity-conflict",
                f"'{entity_name(database, name, home)}' of store {admin.store} is no view of leatstream.",
                hint="Give the view another name, with 'clickhouse.table.name'.",
            )
        _make_rows(client, home, view)
        if found:
            _exchange(client, home, view)
        else:
            client.command(view_statement(view, home))


def _exchange(client: Client, home: str, view: StoredView) -> None:
    """Put the new view in the place of the old one, in one step.

    CREATE OR REPLACE VIEW alone would drop and create on older servers: a reader might find no view between.
    """
    from clickhouse_connect.driver.exceptions import DatabaseError

    shown, coming = place(view.entity, home), _coming(view.entity, home)
    client.command(view_statement(view, home, coming))
    try:
        client.command(f"EXCHANGE TABLES {shown} AND {coming}")
    except DatabaseError as error:
        if error.code not in _NO_EXCHANGE:
            raise
        client.command(view_statement(view, home))
    client.command(f"DROP VIEW IF EXISTS {coming}")


def _coming(view: str, home: str) -> str:
    """Where a view is made that is to take a view's place, and the old one is dropped."""
    return place(f"{view}_rows_next", home)


def drop(admin: ClickHouseAdmin, view: str, versions: Sequence[str], timeout: float) -> None:
    """Drop a view of ours and the rows of these versions; does nothing where there is no such view.

    Args:
        admin: of the store.
        view: its name as an entity.
        versions: whose rows are dropped with it.
        timeout: seconds.
    """
    home = admin.config.home
    database, name = split_entity(view, home)
    with admin.client(f"dropping view {view}", timeout) as client:
        found = client.query(_HEAD, {"database": database, "name": name}).result_rows
        if found and found[0][1] == _OURS:
            # The rows first: without the view nobody would know whose they are.
            for version in versions:
                client.command(f"DROP TABLE IF EXISTS {place(rows_entity(view, version), home)}")
            client.command(f"DROP VIEW IF EXISTS {_coming(view, home)}")
            client.command(f"DROP VIEW IF EXISTS {place(view, home)}")


def drop_rows(admin: ClickHouseAdmin, view: str, version: str, timeout: float) -> None:
    """Drop the table of a version's rows, which the view does not show; does nothing where there is none.

    Args:
        admin: of the store.
        view: its name as an entity.
        version: whose rows they are.
        timeout: seconds.
    """
    with admin.client(f"dropping rows of view {view}", timeout) as client:
        client.command(f"DROP TABLE IF EXISTS {place(rows_entity(view, version), admin.config.home)}")


def rows_statement(view: StoredView, home: str) -> str:
    """CREATE TABLE of a version's rows.

    Args:
        view: and the version.
        home: the store's own database.
    """
    ttl = ""
    if view.retention_ms is not None:
        # ClickHouse deletes late, and in whole seconds; the view is exact.
        ttl = f" TTL toDateTime({TIME}) + toIntervalSecond({-(-view.retention_ms // 1000)})"
    rows = place(rows_entity(view.entity, view.version), home)
    time = f"{TIME} DateTime64(6, 'UTC') DEFAULT now64(6)"
    table = create_statement(rows, view.columns, view.primary_key, [time], ttl)
    return table.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1)


def view_statement(view: StoredView, home: str, name: str | None = None) -> str:
    """CREATE OR REPLACE of the view over a version's rows.

    Args:
        view: and the version.
        home: the store's own database.
        name: another place for it, quoted.
    """
    shown = ", ".join(quoted(column.name) for column in view.columns)
    rows = place(rows_entity(view.entity, view.version), home)
    final = " FINAL" if view.primary_key else ""
    where = ""
    if view.retention_ms is not None:
        where = f" WHERE {TIME} > now64(6) - toIntervalMillisecond({view.retention_ms})"
    # Without an alias COMMENT would be read as one.
    select = f"SELECT {shown} FROM {rows} AS rows{final}{where}"  # noqa: S608
    return f"CREATE OR REPLACE VIEW {name or place(view.entity, home)} AS {select} COMMENT {literal(_OURS)}"


def _make_rows(client: Client, home: str, view: StoredView) -> None:
    database, _ = split_entity(view.entity, home)
    if database != home:
        client.command(f"CREATE DATABASE IF NOT EXISTS {quoted(database)}")
    client.command(rows_statement(view, home))
