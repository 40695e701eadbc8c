"""A table that does not fit: the hint says what does."""

from __future__ import annotations

from leatstream.connectors.clickhouse.types import CLICKHOUSE_TYPES
from leatstream.connectors.entities import Table, TableColumn
from leatstream.connectors.table_fit import misfits, read_misfits
from leatstream.model.objects import Column
from leatstream.model.types import parse_type


def table(*unique: tuple[str, ...]) -> Table:
    columns = (
        TableColumn("id", parse_type("BIGINT"), "Int64"),
        TableColumn("item", parse_type("VARCHAR"), "String"),
    )
    return Table(columns=columns, unique=unique)


def test_each_type_that_can_be_read_is_named_once() -> None:
    wrong = [Column("item", parse_type("BIGINT")), Column("id", parse_type("DATE"))]
    found = read_misfits(table(), wrong, (), CLICKHOUSE_TYPES)
    assert [one.hint for one in found] == [
        "It can be read as VARCHAR.",
        "It can be read as BIGINT or VARCHAR.",
    ]


def test_a_table_without_a_key_has_a_way_out() -> None:
    columns = [Column("id", parse_type("BIGINT"), not_null=True)]
    (none,) = misfits(table(), columns, ["id"], CLICKHOUSE_TYPES)
    assert none.hint == "It has none. Name a new table, or write to it as a STREAM."
    (other,) = misfits(table(("item",)), columns, ["id"], CLICKHOUSE_TYPES)
    assert other.hint == "Its unique keys: item."
