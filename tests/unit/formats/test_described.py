"""Avro and Protobuf records without Spark: there and back, schemas that change, and damage."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from leatstream.formats import avro_columns, protobuf_schema, registered_schema
from leatstream.formats.avro_schema import UnfitSchema, parse_schema
from leatstream.formats.described import Decoder, Description, Encoder
from leatstream.formats.plain_values import Undecodable, Unencodable, micros_of
from leatstream.formats.proto_text import read_proto
from leatstream.formats.registered_json import RegisteredJson
from leatstream.formats.registry_client import Schema
from leatstream.model.objects import Column
from leatstream.model.types import DataType, parse_type

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
MICROS = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-128, 127),
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "INTEGER": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32, allow_nan=False),
    "DOUBLE": st.floats(allow_nan=False),
    "DECIMAL(38, 9)": st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -9))
    ),
    "DATE": st.dates(),
    "TIME": st.times().map(
        lambda t: t.strftime("%H:%M:%S") + (f".{t.microsecond:06d}".rstrip("0") if t.microsecond else "")
    ),
    "TIMESTAMP": st.datetimes(*MICROS),
    "TIMESTAMP_LTZ": st.datetimes(*MICROS, timezones=st.just(UTC)),
    "VARBINARY": st.binary(max_size=20),
    "VARCHAR": TEXT,
}
DEEP = "STRUCT<a ARRAY<STRUCT<x BIGINT, t TIMESTAMP>>, m MAP<VARCHAR, DATE>>"
ROWS = st.tuples(
    *(st.none() | values for values in VALUES.values()),
    st.tuples(
        st.lists(st.tuples(st.none() | VALUES["BIGINT"], st.none() | VALUES["TIMESTAMP"]), max_size=3),
        st.dictionaries(TEXT, VALUES["DATE"], max_size=3),
    ),
)
COLUMNS = tuple(Column(f"c{i}", parse_type(t)) for i, t in enumerate([*VALUES, DEEP]))


class Registry:
    """Schemas by their ids; the only thing that is asked of a registry here."""

    def __init__(self, *schemas: Schema) -> None:
        self.schemas = dict(enumerate(schemas))
        self.asked: list[int] = []

    def schema(self, number: int) -> Schema | None:
        self.asked.append(number)
        return self.schemas.get(number)


def described(form: str, columns: tuple[Column, ...], text: str | None = None) -> Description:
    names, types = tuple(c.name for c in columns), tuple(str(c.type) for c in columns)
    return Description(form, names, types, tuple(c.not_null for c in columns), schema=text)


def plain(value: Any, kind: DataType) -> Any:
    """A value as decoders give it."""
    if value is None:
        return None
    if kind.kind.startswith("TIMESTAMP"):
        return micros_of(value)
    if kind.kind == "DATE":
        return (value - date(1970, 1, 1)).days
    if kind.kind == "ARRAY":
        return [plain(item, kind.arguments[0]) for item in value]
    if kind.kind == "MAP":
        pairs = value.items() if isinstance(value, Mapping) else value
        return sorted((k, plain(v, kind.arguments[1])) for k, v in pairs)
    if kind.kind == "STRUCT":
        return {n: plain(v, t) for n, v, t in zip(kind.fields, value, kind.arguments, strict=True)}
    return value


def read(value: Any, kind: DataType) -> Any:
    """The same with maps in a fixed order."""
    if kind.kind == "MAP" and value is not None:
        return sorted(value)
    if kind.kind == "STRUCT" and value is not None:
        return {n: read(value[n], t) for n, t in zip(kind.fields, kind.arguments, strict=True)}
    return value


@pytest.mark.parametrize("form", ["avro", "protobuf", "json_schema"])
@given(row=ROWS)
@settings(max_examples=30, deadline=None)
def test_there_and_back(form: str, row: Any) -> None:
    assume(form != "json_schema" or not any(isinstance(v, float) and math.isinf(v) for v in row))
    text = registered_schema.schema_text(form, COLUMNS, "leat.out_value", None)
    record = Encoder(described(form, COLUMNS, text), 0).record(row)
    decoder = Decoder(described(form, COLUMNS), Registry(Schema(registered_schema.schema_type(form), text)))  # type: ignore[arg-type]
    found = decoder.row(record)
    assert [read(v, c.type) for v, c in zip(found, COLUMNS, strict=True)] == [
        plain(v, c.type) for v, c in zip(row, COLUMNS, strict=True)
    ]


@pytest.mark.parametrize("form", ["avro", "protobuf", "json_schema"])
@given(row=ROWS, at=st.integers(0, 400), damage=st.binary(max_size=12), cut=st.booleans())
@settings(max_examples=60, deadline=None)
def test_damage_is_told_or_reads_as_something(form: str, row: Any, at: int, damage: bytes, cut: bool) -> None:
    assume(form != "json_schema" or not any(isinstance(v, float) and math.isinf(v) for v in row))
    text = registered_schema.schema_text(form, COLUMNS, "leat.out_value", None)
    record = Encoder(described(form, COLUMNS, text), 0).record(row)
    decoder = Decoder(described(form, COLUMNS), Registry(Schema(registered_schema.schema_type(form), text)))  # type: ignore[arg-type]
    broken = record[:at] + damage + (b"" if cut else record[at + len(damage) :])
    columns, reasons = decoder.columns([broken, record])
    assert len(columns) == len(COLUMNS)
    assert reasons[1] is None


def test_avro_of_other_writers() -> None:
    """Logical types, unions of numbers, enums, fixed, a default that is not used, and names that refer back."""
    schema = {
        "type": "record",
        "name": "a.R",
        "fields": [
            {"name": "u", "type": ["null", "int", "double"]},
            {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["X", "Y"]}},
            {"name": "f", "type": {"type": "fixed", "name": "F", "size": 2}},
            {"name": "id", "type": {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}},
            {"name": "tm", "type": {"type": "int", "logicalType": "time-millis"}},
            {"name": "ns", "type": {"type": "long", "logicalType": "timestamp-nanos"}},
            {"name": "again", "type": ["E", "null"]},
            {"name": "dec", "type": {"type": "fixed", "name": "D", "size": 3, "logicalType": "decimal", "precision": 5, "scale": 2}},
            {"name": "odd", "type": {"type": "int", "logicalType": "made-up"}},
        ],
    }  # fmt: skip
    parsed = parse_schema(json.dumps(schema))
    assert [str(c.type) for c in avro_columns.columns_of(parsed)] == [
        "DOUBLE", "VARCHAR", "BYTES", "VARCHAR", "TIME", "BIGINT", "VARCHAR", "DECIMAL(5, 2)", "INTEGER",
    ]  # fmt: skip
    columns = tuple(
        Column(n, parse_type(t))
        for n, t in {
            "u": "DOUBLE", "e": "VARCHAR", "f": "BYTES", "id": "VARCHAR", "tm": "TIME", "ns": "TIMESTAMP",
            "again": "VARCHAR", "dec": "DECIMAL(8, 3)", "odd": "BIGINT", "absent": "DATE",
        }.items()
    )  # fmt: skip
    decoder = Decoder(described("avro", columns), Registry(Schema("AVRO", json.dumps(schema))))  # type: ignore[arg-type]
    record = (
        b"\0\0\0\0\0" + b"\x02\x0e" + b"\x02" + b"hi" + bytes(range(16)) + b"\x02" + b"\xce\x1f" + b"\0\x02"
        + b"\xff\xff\x85" + b"\x09"
    )  # fmt: skip
    assert decoder.row(record) == [
        7.0, "Y", b"hi", "00010203-0405-0607-0809-0a0b0c0d0e0f", "00:00:00.001", 2, "Y", Decimal("-1.23"), -5, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        ("[]", "a union"),
        ('"nowhere"', "does not have"),
        ('{"type":"record","name":"R","fields":[{"name":"r","type":["null","R"]}]}', "holds itself"),
        ('{"type":"array","items":"null"}', "take no bytes"),
        ('{"type":"record","name":"R"}', "not a record with fields"),
        ('"string"', "not a record"),
        (
            '{"type":"record","name":"R","fields":[{"name":"u","type":["int","string"]}]}',
            "field u: it is a union of int, string",
        ),
        ("[" * 5000, "not JSON"),
    ],
)
def test_avro_schemas_that_are_refused(text: str, why: str) -> None:
    with pytest.raises(UnfitSchema, match=why):
        avro_columns.columns_of(parse_schema(text))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no message"),
        ("message", "is missing"),
        ("\x00", "no .proto file"),
        ('syntax = "proto3"; message A { group X = 1 { } }', "group"),
        ('edition = "2023"; message A { }', "syntax is 2023"),
        ('syntax = "proto3"; import "nowhere.proto"; message A { }', "imports"),
        ('syntax = "proto3"; message A { B b = 1; }', "do not fit together"),
        ('syntax = "proto3"; message A { int32 a = x; }', "no number"),
        ('syntax = "proto3"; message A { A a = 1; }', "holds itself"),
        ('syntax = "proto3"; message A { }', "has no fields"),
        ("message A { " * 100, "too deep"),
    ],
)
def test_proto_files_that_are_refused(text: str, why: str) -> None:
    with pytest.raises(UnfitSchema, match=why):
        registered_schema.columns_of(Schema("PROTOBUF", text))


WORDS = [
    "message",
    "enum",
    "oneof",
    "{",
    "}",
    ";",
    "=",
    "1",
    '"x"',
    "int32",
    "A",
    "map",
    "<",
    ",",
    ">",
    "optional",
]


@given(text=st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join))
@settings(max_examples=80, deadline=None)
def test_any_text_is_a_proto_file_or_refused(text: str) -> None:
    with contextlib.suppress(UnfitSchema):
        assert registered_schema.columns_of(Schema("PROTOBUF", text))


def test_a_schema_keeps_the_subjects_names_and_numbers() -> None:
    """So that the registry can compare them; a new field never takes a number that was in use."""
    old = 'syntax = "proto3"; package shop; message Order { int64 id = 7; string gone = 9; Line l = 3; message Line { int32 n = 4; } }'
    columns = tuple(
        Column(n, parse_type(t))
        for n, t in {"id": "BIGINT", "fresh": "VARCHAR", "l": "STRUCT<n INTEGER, m INTEGER>"}.items()
    )
    made = registered_schema.schema_text("protobuf", columns, "other.name", Schema("PROTOBUF", old))
    message = protobuf_schema.message_at(protobuf_schema.open_file(Schema("PROTOBUF", made)), (0,))
    assert message.full_name == "shop.Order"
    assert {f.name: f.number for f in message.fields} == {"id": 7, "fresh": 10, "l": 3}
    inner = message.fields_by_name["l"].message_type
    assert (inner.full_name, {f.name: f.number for f in inner.fields}) == (
        "shop.Order.Line",
        {"n": 4, "m": 5},
    )

    record = '{"type":"record","name":"shop.Order","fields":[{"name":"l","type":{"type":"record","name":"Line","fields":[{"name":"n","type":"int"}]}}]}'
    avro = json.loads(registered_schema.schema_text("avro", columns, "other.name", Schema("AVRO", record)))
    assert (avro["namespace"], avro["name"]) == ("shop", "Order")
    assert avro["fields"][2]["type"][1]["name"] == "Line"


@pytest.mark.parametrize(
    ("form", "columns", "why"),
    [
        ("avro", {"a b": "BIGINT"}, "no name for an Avro field"),
        ("avro", {"m": "MAP<INTEGER, INTEGER>"}, "VARCHAR keys"),
        ("protobuf", {"ü": "BIGINT"}, "no name for a Protobuf field"),
        ("protobuf", {"a": "ARRAY<ARRAY<INTEGER>>"}, "no ARRAY directly"),
        ("protobuf", {"m": "MAP<BIGINT, INTEGER>"}, "VARCHAR keys"),
    ],
)
def test_columns_without_a_form(form: str, columns: dict[str, str], why: str) -> None:
    made = [Column(n, parse_type(t)) for n, t in columns.items()]
    with pytest.raises(UnfitSchema, match=why):
        registered_schema.schema_text(form, made, "x.y", None)


def test_values_without_a_form() -> None:
    for form, kind, value, why in (
        ("avro", "TIME", "25:00:00", "beyond the day"),
        ("avro", "TIME", "1:2", "hh:mm:ss"),
        ("avro", "VARCHAR", "\ud800", "half a character"),
        ("protobuf", "ARRAY<INTEGER>", [1, None], "an ARRAY holds NULL"),
        ("protobuf", "MAP<VARCHAR, INTEGER>", {"a": None}, "a MAP holds NULL"),
    ):
        columns = (Column("c", parse_type(kind)),)
        text = registered_schema.schema_text(form, columns, "x.y", None)
        with pytest.raises(Unencodable, match=why):
            Encoder(described(form, columns, text), 1).record([value])


def test_an_unknown_id_is_asked_for_once() -> None:
    """A flood of damaged records is no flood of questions."""
    registry = Registry()
    decoder = Decoder(described("avro", COLUMNS), registry)  # type: ignore[arg-type]
    for _ in range(5):
        with pytest.raises(Undecodable, match="no schema 9"):
            decoder.row(b"\0\0\0\0\x09abc")
    assert registry.asked == [9]


def test_a_schema_of_another_type_does_not_fit() -> None:
    decoder = Decoder(described("avro", COLUMNS), Registry(Schema("JSON", "{}")))  # type: ignore[arg-type]
    with pytest.raises(Undecodable, match="type JSON, not AVRO"):
        decoder.row(b"\0\0\0\0\0")


def test_records_for_people() -> None:
    columns = (
        Column("n", parse_type("DECIMAL(5, 2)")),
        Column("d", parse_type("DATE")),
        Column("t", parse_type("TIMESTAMP_LTZ")),
        Column("s", parse_type("STRUCT<m MAP<VARCHAR, TIMESTAMP>, a ARRAY<DATE>>")),
    )
    text = registered_schema.schema_text("avro", columns, "x.y", None)
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    row = [Decimal("1.50"), date(1969, 12, 31), moment, ({"k": moment.replace(tzinfo=None)}, [date(1, 1, 1)])]
    record = Encoder(described("avro", columns), 0).record(row)
    shown = RegisteredJson(Registry(Schema("AVRO", text))).text(record)  # type: ignore[arg-type]
    assert shown.decode() == (
        '{"n":1.50,"d":"1969-12-31","t":"2026-01-02 03:04:05Z",'
        '"s":{"m":{"k":"2026-01-02 03:04:05"},"a":["0001-01-01"]}}'
    )


def descriptor_set() -> bytes:
    """As protoc writes it, with a file that it imports."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    inner = read_proto('syntax = "proto3"; package shop; message Line { string sku = 1; }', "line.proto")
    outer = read_proto(
        'syntax = "proto3"; package shop; import "line.proto"; import "google/protobuf/timestamp.proto";'
        "message Order { int64 id = 1; repeated Line lines = 2; google.protobuf.Timestamp at = 3; }",
        "order.proto",
    )
    return bytes(FileDescriptorSet(file=[inner, outer]).SerializeToString())


def test_bare_messages_of_a_descriptor_source() -> None:
    """No head, no registry: the type is named."""
    files = descriptor_set()
    columns = protobuf_schema.columns_of(protobuf_schema.message_of(files, "shop.Order"))
    assert [str(c.type) for c in columns] == ["BIGINT", "ARRAY<STRUCT<sku VARCHAR>>", "TIMESTAMP_LTZ"]
    names, types = tuple(c.name for c in columns), tuple(str(c.type) for c in columns)
    decoder = Decoder(Description("protobuf", names, types, files=files, message="shop.Order"), None)
    assert decoder.row(b"\x08\x05\x12\x03\x0a\x01a\x1a\x02\x08\x01") == [5, [{"sku": "a"}], 1_000_000]
    assert decoder.row(b"") == [0, [], None]
    with pytest.raises(Undecodable, match="not of its schema"):
        decoder.row(b"\x08")
    for data, name, why in (
        (files, "shop.None", "no message shop.None"),
        (b"\xff", "shop.Order", "cannot be used"),
        (files[: len(files) // 2], "shop.Order", "cannot be used"),
    ):
        with pytest.raises(UnfitSchema, match=why):
            protobuf_schema.message_of(data, name)
