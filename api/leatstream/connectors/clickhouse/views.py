"""Materialized views that ClickHouse holds: a table of rows, and a plain view of the newest ones.

ClickHouse's own materialized views are triggers of inserts. These here hold what a query has worked out: the
rows of ``<view>_rows`` replace each other by key, and ``<view>`` shows them with the user's column names.
"""

from __future__ import annotations

from collections.abc import Sequence

from leatstream.connectors.clickhouse.admin import ClickHouseAdmin, create_statement
from leatstream.connectors.clickhouse.names import entity_name, literal, place, quoted, split_entity
from leatstream.errors import StoreError
from leatstream.model.objects import Column

TIME = "_leat_time"
"""When a row was written, by ClickHouse's clock."""
_OURS = "A materialized view of leatstream"
_HEAD = (
    "SELECT engine, comment FROM system.tables WHERE database = {database:String} AND name = {name:String}"
)


def rows_entity(view: str) -> str:
    """The table with a view's rows."""
    return f"{view}_rows"


def create(
    admin: ClickHouseAdmin,
    view: str,
    columns: Sequence[Column],
    primary_key: Sequence[str],
    retention_ms: int | None,
    timeout: float,
) -> None:
    """Create a view and the table of its rows; idempotent.

    Args:
        admin: of the store.
        view: its name as an entity.
        columns: of the view.
        primary_key: columns by which rows replace each other; empty = every row is kept.
        retention_ms: how long a row is seen; None = for ever.
        timeout: seconds.

    Raises:
        StoreError: entity-conflict, another table or view has the name.
    """
    home = admin.config.home
    database, name = split_entity(view, home)
    rows = place(rows_entity(view), home)
    ttl = where = ""
    if retention_ms is not None:
        # ClickHouse deletes late, and in whole seconds; the view is exact.
        ttl = f" TTL toDateTime({TIME}) + toIntervalSecond({-(-retention_ms // 1000)})"
        where = f" WHERE {TIME} > now64(6) - toIntervalMillisecond({retention_ms})"
    shown = ", ".join(quoted(column.name) for column in columns)
    final = " FINAL" if primary_key else ""
    time = f"{TIME} DateTime64(6, 'UTC') DEFAULT now64(6)"
    table = create_statement(rows, columns, primary_key, [time], ttl)
    with admin.client(f"creating view {view}", timeout) as client:
        if database != home:
            client.command(f"CREATE DATABASE IF NOT EXISTS {quoted(database)}")
        found = client.query(_HEAD, {"database": database, "name": name}).result_rows
        if found and found[0][1] != _OURS:
            raise StoreError(
                "entity-conflict",
                f"'{entity_name(database, name, home)}' of store {admin.store} is no view of leatstream.",
                hint="Give the view another name, with 'clickhouse.table.name'.",
            )
        client.command(table.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1))
        select = f"SELECT {shown} FROM {rows}{final}{where}"  # noqa: S608
        client.command(f"CREATE OR REPLACE VIEW {place(view, home)} AS {select} COMMENT {literal(_OURS)}")


def drop(admin: ClickHouseAdmin, view: str, timeout: float) -> None:
    """Drop a view of ours and its rows; does nothing where there is none.

    Args:
        admin: of the store.
        view: its name as an entity.
        timeout: seconds.
    """
    home = admin.config.home
    database, name = split_entity(view, home)
    with admin.client(f"dropping view {view}", timeout) as client:
        found = client.query(_HEAD, {"database": database, "name": name}).result_rows
        if found and found[0][1] == _OURS:
            # The rows first: without the view nobody would know whose they are.
            client.command(f"DROP TABLE IF EXISTS {place(rows_entity(view), home)}")
            client.command(f"DROP VIEW IF EXISTS {place(view, home)}")
