"""Types of Iceberg and of relations, each way."""

from __future__ import annotations

import pytest
from pyiceberg.types import FixedType, ListType, NestedField, StructType, TimestampNanoType, UUIDType

from leatstream.connectors.entities import Table, TableColumn
from leatstream.connectors.iceberg.types import (
    ICEBERG_TYPES,
    column_type,
    fits,
    kept_type,
    native_text,
    read_type,
    readable,
    table_schema,
)
from leatstream.connectors.table_fit import misfits
from leatstream.model.objects import Column
from leatstream.model.types import parse_type

_NESTED = "STRUCT<a INTEGER, b ARRAY<MAP<VARCHAR, DECIMAL(10, 2)>>>"


@pytest.mark.parametrize(
    "text",
    ["BOOLEAN", "TINYINT", "BIGINT", "FLOAT", "DECIMAL", "DECIMAL(38, 10)", "VARCHAR(9)", "TIME", "BYTES", _NESTED],
)  # fmt: skip
def test_a_new_column_holds_its_own_type(text: str) -> None:
    kind = parse_type(text)
    (made,) = table_schema([Column("c", kind)], []).fields
    assert native_text(made.field_type) == column_type(kind)
    assert read_type(made.field_type) == kept_type(kind)
    assert fits(kind, column_type(kind), kept_type(kind))
    assert readable(kept_type(kind), column_type(kind), kept_type(kind))


@pytest.mark.parametrize(
    ("kind", "native", "ok"),
    [
        ("SMALLINT", "long", True),
        ("BIGINT", "int", False),
        ("INTEGER", "decimal(10, 0)", True),
        ("INTEGER", "decimal(9, 0)", False),
        ("DECIMAL(10, 2)", "decimal(12, 2)", True),
        ("DECIMAL(10, 2)", "decimal(10, 3)", False),
        ("FLOAT", "double", True),
        ("DOUBLE", "float", False),
        ("VARCHAR", "uuid", False),
        ("TIME", "string", True),
        ("TIMESTAMP", "timestamptz", False),
        ("BYTES", "fixed[16]", False),
    ],
)
def test_what_fits(kind: str, native: str, ok: bool) -> None:
    assert fits(parse_type(kind), native, parse_type("VARCHAR")) is ok


def test_types_without_a_counterpart_are_read_as_text_or_bytes() -> None:
    for kind, shown in ((UUIDType(), "VARCHAR"), (TimestampNanoType(), "VARCHAR"), (FixedType(4), "BYTES")):
        assert str(read_type(kind)) == shown


def test_a_foreign_type_inside_another_one_keeps_rows_out() -> None:
    field = NestedField(1, "x", UUIDType(), required=False)
    native, read = native_text(StructType(field)), read_type(StructType(field))
    assert not fits(parse_type("STRUCT<x VARCHAR>"), native, read)
    named = StructType(NestedField(1, "uuid", ListType(2, UUIDType()).element_type, required=False))
    assert not fits(parse_type("STRUCT<uuid VARCHAR>"), native_text(named), read_type(named))
    (plain,) = table_schema([Column("c", parse_type("STRUCT<uuid VARCHAR>"))], []).fields
    assert fits(
        parse_type("STRUCT<uuid VARCHAR>"), native_text(plain.field_type), read_type(plain.field_type)
    )


def test_what_keeps_rows_from_a_table() -> None:
    table = Table(
        columns=(
            TableColumn("id", parse_type("BIGINT"), "long", not_null=True),
            TableColumn("name", parse_type("VARCHAR"), "string"),
        )
    )
    columns = [Column("id", parse_type("BIGINT"), True), Column("name", parse_type("BIGINT"))]
    found = [one.detail for one in misfits(table, columns, ["id"], ICEBERG_TYPES)]
    assert len(found) == 2
    assert "column name is BIGINT" in found[0]
    assert "no unique key" in found[1]
