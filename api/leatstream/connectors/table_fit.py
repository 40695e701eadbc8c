"""Whether rows can be written to a table that is there, or read from it: all that is in the way, at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leatstream.connectors.entities import Misfit, Table, TableColumn
from leatstream.model.names import quote
from leatstream.model.objects import Column
from leatstream.model.types import DataType


@dataclass(frozen=True, slots=True)
class TableTypes:
    """What a kind knows of its tables' column types.

    Attributes:
        server: whose tables they are, such as ``PostgreSQL``.
        alter: how a column is made NOT NULL, with ``{}`` for its name; for hints.
        column_type: how a column of a type is declared in a new table.
        fits: whether values of a type can stand in a table's column.
        readable: whether values of a table's column can be read as a type.
    """

    server: str
    alter: str
    column_type: Callable[[DataType], str]
    fits: Callable[[DataType, TableColumn], bool]
    readable: Callable[[DataType, TableColumn], bool]


def misfits(
    table: Table, columns: Sequence[Column], primary_key: Sequence[str], types: TableTypes
) -> list[Misfit]:
    """What keeps rows of these columns from the table.

    Args:
        table: the table as it is now.
        columns: what would be written.
        primary_key: columns by which rows replace each other; empty = rows are only added.
        types: of the table's kind.
    """
    there = {column.name: column for column in table.columns}
    found: list[Misfit] = []
    for column in columns:
        target = there.get(column.name)
        if target is None:
            found.append(_missing(table, column))
        elif target.generated:
            hint = "Leave it out of the SELECT."
            found.append(Misfit(f"column {quote(column.name)} is written by {types.server} alone", hint))
        elif not types.fits(column.type, target):
            found.append(
                Misfit(
                    f"column {quote(column.name)} is {column.type}, which does not fit into {target.native}",
                    f"CAST({quote(column.name)} AS {target.type}), or ALTER the table to "
                    f"{types.column_type(column.type)}",
                )
            )
    given = {column.name for column in columns}
    for target in table.columns:
        if target.not_null and target.name not in given and not (target.filled or target.generated):
            detail = (
                f"column {quote(target.name)} of the table is NOT NULL, has no default and is not written"
            )
            found.append(Misfit(detail, f"Add a column {quote(target.name)} to the SELECT."))
    keys = _key_misfits(table, primary_key) or _null_key_misfits(table, columns, primary_key, types)
    return [*found, *keys]


def read_misfits(
    table: Table, columns: Sequence[Column], primary_key: Sequence[str], types: TableTypes
) -> list[Misfit]:
    """What keeps the table's rows from being read as these columns; arguments as of ``misfits``."""
    there = {column.name: column for column in table.columns}
    found: list[Misfit] = []
    for column in columns:
        source = there.get(column.name)
        if source is None:
            found.append(_missing(table, column))
        elif not types.readable(column.type, source):
            detail = f"column {quote(column.name)} is {column.type}, but {source.native} in the table"
            ways = dict.fromkeys((str(source.type), "VARCHAR"))
            found.append(Misfit(detail, f"It can be read as {' or '.join(ways)}."))
        elif column.not_null and not source.not_null:
            detail = f"column {quote(column.name)} is NOT NULL, but may be NULL in the table"
            found.append(Misfit(detail, "Leave NOT NULL out, or ALTER the table."))
    return [*found, *_key_misfits(table, primary_key)]


def _missing(table: Table, column: Column) -> Misfit:
    names = ", ".join(quote(c.name) for c in table.columns)
    return Misfit(f"the table has no column {quote(column.name)}", f"It has {names}.")


def _null_key_misfits(
    table: Table, columns: Sequence[Column], primary_key: Sequence[str], types: TableTypes
) -> list[Misfit]:
    """Key columns that may be NULL on both sides: NULLs are not equal, so such a row replaces no other."""
    never = {c.name for c in columns if c.not_null} | {c.name for c in table.columns if c.not_null}
    return [
        Misfit(
            f"rows replace each other by {quote(name)}, which may be NULL in the table: rows with NULL would "
            "pile up there",
            f"{types.alter.format(quote(name))}, and leave NULL out: WHERE {quote(name)} IS NOT NULL",
        )
        for name in primary_key
        if name not in never
    ]


def _key_misfits(table: Table, primary_key: Sequence[str]) -> list[Misfit]:
    if not primary_key or any(set(key) == set(primary_key) for key in table.unique):
        return []
    shown = ", ".join(map(quote, primary_key))
    keys = "; ".join(", ".join(map(quote, key)) for key in table.unique)
    detail = f"rows replace each other by {shown}, but the table has no unique key of just these columns"
    hint = (
        f"Its unique keys: {keys}." if keys else "It has none. Name a new table, or write to it as a STREAM."
    )
    return [Misfit(detail, hint)]
