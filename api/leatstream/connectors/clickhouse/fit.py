"""Whether rows can be written to a table that is there: its columns, and what its engine makes of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from leatstream.connectors import table_fit
from leatstream.connectors.clickhouse.admin import DELETED, VERSION, engine_of_table
from leatstream.connectors.clickhouse.types import CLICKHOUSE_TYPES
from leatstream.connectors.entities import Misfit, Table
from leatstream.model.objects import Column


def misfits(table: Table, columns: Sequence[Column], primary_key: Sequence[str]) -> list[Misfit]:
    """What keeps rows of these columns from the table.

    Args:
        table: as it is now.
        columns: what would be written.
        primary_key: columns by which rows replace each other; empty = rows are only added.
    """
    wrong = engine_misfits(table, primary_key)
    # What the engine says of a key is the whole of it.
    key = () if wrong else primary_key
    return [*table_fit.misfits(_key_set(table), columns, key, CLICKHOUSE_TYPES), *wrong]


def _key_set(table: Table) -> Table:
    """The table as if its key were never NULL: two NULLs are one key to ClickHouse."""
    columns = (replace(c, not_null=c.not_null or c.name in table.primary_key) for c in table.columns)
    return replace(table, columns=tuple(columns))


def engine_misfits(table: Table, primary_key: Sequence[str]) -> list[Misfit]:
    """Why the table's engine would lose or double rows."""
    engine = engine_of_table(table)
    if not engine.merges:
        hint = "Write to a table of the MergeTree family."
        detail = f"the engine {engine.name} does not recognize a repeated insert, which would double rows"
        return [Misfit(detail, hint)]
    if primary_key and (engine.version is None or engine.deleted is None):
        shown = f"ENGINE = ReplacingMergeTree({VERSION}, {DELETED})"
        detail = (
            f"rows replace each other by {', '.join(primary_key)}, but the engine {engine.name} has no "
            "columns for the version and the deletion of a row"
        )
        hint = (
            f"Create it again with {VERSION} UInt64, {DELETED} UInt8 and {shown}, or leave it to leatstream."
        )
        return [Misfit(detail, hint)]
    if primary_key and table.details.get("version_type") != "UInt64":
        detail = f"its column {engine.version}, the version of a row, is not UInt64"
        return [Misfit(detail, "Create the table again with a version of UInt64.")]
    if not primary_key and engine.replaces:
        detail = (
            f"the engine {engine.name} keeps one row of each key ({table.details.get('sorting_key')}), and "
            "each row of a stream is to be kept"
        )
        return [Misfit(detail, "Write a changelog of this key, or to a table with ENGINE = MergeTree.")]
    return []
