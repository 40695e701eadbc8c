"""Indexes of materialized views: data-skipping indexes of the table with a view's rows.

They are named ``<name>.<place>.<type>``: one or two for each column. Queries with ``FINAL`` use them since
ClickHouse 25.6; older servers ignore them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leatstream.connectors.clickhouse.admin import ClickHouseAdmin
from leatstream.connectors.clickhouse.names import place, quoted, split_entity
from leatstream.model.objects import Column

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_TEXTS = ("VARCHAR", "TIME", "BYTES", "VARBINARY", "ARRAY", "MAP", "STRUCT")
_FOUND = (
    "SELECT name FROM system.data_skipping_indices"
    " WHERE database = {database:String} AND table = {table:String} AND startsWith(name, {prefix:String})"
)


def add(admin: ClickHouseAdmin, entity: str, name: str, columns: Sequence[Column], timeout: float) -> None:
    """Add the indexes that are missing; existing rows are indexed in the background.

    Args:
        admin: of the store.
        entity: the table; where there is none, nothing is done.
        name: of the index.
        columns: of the table.
        timeout: seconds.
    """
    wanted = {
        f"{name}.{i}.{kind}": f"({quoted(column.name)}) TYPE {kind} GRANULARITY 1"
        for i, column in enumerate(columns)
        for kind in _kinds(column)
    }
    with admin.client(f"indexing table {entity}", timeout) as client:
        if not _exists(client, admin, entity):
            return
        there = _there(client, admin, entity, name)
        missing = {one: how for one, how in wanted.items() if one not in there}
        if missing:
            parts = [f"ADD INDEX IF NOT EXISTS {quoted(one)} {how}" for one, how in missing.items()]
            _alter(client, admin, entity, parts)
            _alter(client, admin, entity, [f"MATERIALIZE INDEX {quoted(one)}" for one in missing])


def drop(admin: ClickHouseAdmin, entity: str, name: str, timeout: float) -> None:
    """Drop the indexes of this name.

    Args:
        admin: of the store.
        entity: the table.
        name: of the index.
        timeout: seconds.
    """
    with admin.client(f"dropping an index of table {entity}", timeout) as client:
        there = _there(client, admin, entity, name)
        if there:
            _alter(client, admin, entity, [f"DROP INDEX IF EXISTS {quoted(one)}" for one in there])


def _kinds(column: Column) -> tuple[str, ...]:
    """Bloom filters serve equality, and minmax ranges. Bloom filters support neither decimals nor dates."""
    if column.type.kind in _WHOLE:
        return ("minmax", "bloom_filter")
    return ("bloom_filter",) if column.type.kind in _TEXTS else ("minmax",)


def _exists(client: Client, admin: ClickHouseAdmin, entity: str) -> bool:
    ((found,),) = client.query(f"EXISTS TABLE {place(entity, admin.config.home)}").result_rows
    return bool(found)


def _there(client: Client, admin: ClickHouseAdmin, entity: str, name: str) -> list[str]:
    database, table = split_entity(entity, admin.config.home)
    rows = client.query(_FOUND, {"database": database, "table": table, "prefix": f"{name}."}).result_rows
    # The prefix "a." also matches the index "a.b"; only a place and a type may follow the name.
    return [row[0] for row in rows if row[0].removeprefix(f"{name}.").count(".") == 1]


def _alter(client: Client, admin: ClickHouseAdmin, entity: str, parts: Sequence[str]) -> None:
    client.command(f"ALTER TABLE {place(entity, admin.config.home)} {', '.join(parts)}")
