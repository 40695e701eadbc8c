"""JSON Schema: columns of other producers' schemas, the schema of columns, and objects that do not fit."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from leatstream.formats import registered_schema
from leatstream.formats.avro_schema import UnfitSchema
from leatstream.formats.described import Decoder, Description, Encoder
from leatstream.formats.plain_values import Undecodable, Unencodable
from leatstream.formats.registered_json import RegisteredJson
from leatstream.formats.registry_client import Schema
from leatstream.model.objects import Column
from leatstream.model.types import parse_type

HEAD = b"\0\0\0\0\x07"
ORDER = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "required": ["id"],
    "definitions": {
        "money": {"type": "object", "properties": {"of": {"type": "string"}, "n": {"type": "number"}}}
    },
    "properties": {
        "id": {"type": "integer"},
        "price": {"$ref": "#/definitions/money"},
        "kind": {"enum": ["RETAIL", "TRADE", None]},
        "note": {"oneOf": [{"type": "null"}, {"type": "string"}]},
        "paid": {"type": ["boolean", "null"]},
        "ratio": {"type": ["integer", "number"]},
        "at": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "logo": {"type": "string", "contentEncoding": "base64"},
        "tags": {"type": "array", "items": {"type": ["string", "null"]}},
        "stock": {"type": "object", "additionalProperties": {"type": "integer"}},
        "buyer": {"$ref": "buyer.json"},
        "any": {},
        "several": {"type": ["string", "integer"]},
        "free": {"type": "object"},
    },
}
BUYER = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "at": {"$ref": "#/$defs/place"}},
    "$defs": {"place": {"type": "array", "items": {"type": "number"}}},
}
COLUMNS = {
    "id": "BIGINT",
    "price": "STRUCT<of VARCHAR, n DOUBLE>",
    "kind": "VARCHAR",
    "note": "VARCHAR",
    "paid": "BOOLEAN",
    "ratio": "DOUBLE",
    "at": "TIMESTAMP_LTZ",
    "day": "DATE",
    "logo": "BYTES",
    "tags": "ARRAY<VARCHAR>",
    "stock": "MAP<VARCHAR, BIGINT>",
    "buyer": "STRUCT<name VARCHAR, at ARRAY<DOUBLE>>",
    "any": "VARCHAR",
    "several": "VARCHAR",
    "free": "VARCHAR",
}


class Registry:
    def __init__(self, schema: Schema) -> None:
        self.found = schema

    def schema(self, number: int) -> Schema:
        assert number == 7
        return self.found


def decoder(types: dict[str, str], type_: str = "JSON") -> Decoder:
    description = Description("json_schema", tuple(types), tuple(types.values()))
    return Decoder(description, Registry(Schema(type_, "{}")))  # type: ignore[arg-type]


def test_columns_of_another_producers_schema() -> None:
    schema = Schema(
        "JSON", json.dumps(ORDER), references=(("buyer.json", Schema("JSON", json.dumps(BUYER))),)
    )
    found = registered_schema.columns_of(schema)
    assert {c.name: c.type for c in found} == {name: parse_type(text) for name, text in COLUMNS.items()}


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ("{", "not JSON"),
        ("true", "does not describe an object"),
        ('{"type": "string"}', "does not describe an object"),
        (
            '{"properties": {"a": {"$ref": "#/definitions/none"}}}',
            "property a: it refers to #/definitions/none",
        ),
        ('{"properties": {"a": {"$ref": "other.json"}}}', "the registry does not tell of"),
        ('{"properties": {"a": {"$ref": "#"}}}', "nested too deep, or refers to itself"),
        ('{"properties": {"a": {"$ref": "#/properties/a"}}}', "nested too deep, or refers to itself"),
    ],
)
def test_schemas_that_give_no_columns(document: str, why: str) -> None:
    with pytest.raises(UnfitSchema, match=why):
        registered_schema.columns_of(Schema("JSON", document))


def test_the_schema_of_columns_reads_back() -> None:
    given = tuple(Column(n, parse_type(t), not_null=n == "id") for n, t in COLUMNS.items())
    text = registered_schema.schema_text("json_schema", given, "d.s.out_value", None)
    document = json.loads(text)
    assert (document["type"], document["required"], document["additionalProperties"]) == (
        "object",
        ["id"],
        False,
    )
    found = registered_schema.columns_of(Schema("JSON", text))
    assert {c.name: c.type for c in found} == {c.name: c.type for c in given}
    wrong = (Column("m", parse_type("MAP<INTEGER, INTEGER>")),)
    with pytest.raises(UnfitSchema, match="VARCHAR keys"):
        registered_schema.schema_text("json_schema", wrong, "x", None)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("BIGINT", "9223372036854775807", 2**63 - 1),
        ("BIGINT", "1.0", 1),
        ("DOUBLE", "1e2", 100.0),
        ("DOUBLE", "1" + "0" * 400, float("inf")),
        ("DECIMAL(5, 2)", '"1.50"', Decimal("1.50")),
        ("DECIMAL(38, 2)", "123456789012345678901234567890.12", Decimal("123456789012345678901234567890.12")),
        ("VARCHAR", '{"b": [1, 2.50, "\u00fc", null, 1e5]}', '{"b": [1, 2.50, "ü", null, 1e5]}'),
        ("TIMESTAMP", '"1970-01-01 00:00:01.5"', 1_500_000),
        ("TIMESTAMP_LTZ", '"1970-01-01T01:00:00+01:00"', 0),
        ("TIMESTAMP_LTZ", '"1970-01-01T00:00:00.123456789Z"', 123_456),
        ("DATE", '"1970-01-02"', 1),
        ("TIME", '"23:59:59.5"', "23:59:59.5"),
        ("BYTES", '"AGhp"', b"\0hi"),
        ("STRUCT<a TINYINT>", '{"a": -128, "b": 1}', {"a": -128}),
    ],
)
def test_values_that_fit(kind: str, text: str, value: Any) -> None:
    assert decoder({"v": kind}).row(HEAD + b'{"v": ' + text.encode() + b"}") == [value]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("BIGINT", "9223372036854775808"),
        ("BIGINT", "1.5"),
        ("BIGINT", "1e999999999"),
        ("BIGINT", '"1"'),
        ("BIGINT", "true"),
        ("DOUBLE", "NaN"),
        ("DECIMAL(3, 1)", "1.55"),
        ("DECIMAL(3, 1)", '"x"'),
        ("BOOLEAN", "1"),
        ("DATE", '"1970-13-01"'),
        ("DATE", "1"),
        ("TIME", '"24:00:00"'),
        ("TIMESTAMP", '"yesterday"'),
        ("TIMESTAMP", "1"),
        ("BYTES", '"!"'),
        ("ARRAY<BIGINT>", "{}"),
        ("MAP<VARCHAR, BIGINT>", "[]"),
        ("STRUCT<a BIGINT>", '{"a": "x"}'),
        ("BIGINT", "1}, {"),
        ("VARCHAR", "[" * 100_000),
        ("VARCHAR", '{"v": ' * 900 + "1" + "}" * 900),
    ],
)
def test_values_that_do_not(kind: str, text: str) -> None:
    good, bad = HEAD + b'{"v": null}', HEAD + b'{"v": ' + text.encode() + b"}"
    columns, reasons = decoder({"v": kind}).columns([good, bad, HEAD + b"[]", HEAD, b"{}"])
    assert columns == [[None] * 5]
    assert [reason is None for reason in reasons] == [True, False, False, False, False]


def test_a_schema_of_another_type_is_not_taken() -> None:
    _, reasons = decoder({"v": "BIGINT"}, "AVRO").columns([HEAD + b"{}"])
    assert "of type AVRO, not JSON" in str(reasons[0])


def test_what_has_no_number_in_json_is_not_written() -> None:
    description = Description("json_schema", ("v",), ("DOUBLE",))
    assert Encoder(description, 7).record([0.1]) == HEAD + b'{"v":0.1}'
    for value in (float("nan"), float("inf")):
        with pytest.raises(Unencodable, match="no NaN"):
            Encoder(description, 7).record([value])


@pytest.mark.parametrize(
    ("kind", "value"), [("DATE", 3_000_000), ("DATE", -800_000), ("TIMESTAMP", 4 * 10**17)]
)
def test_years_that_iso_8601_has_not_are_told(kind: str, value: int) -> None:
    with pytest.raises(Unencodable, match="the years 1 to 9999"):
        Encoder(Description("json_schema", ("v",), (kind,)), 7).record([value])


def test_print_leaves_what_is_nested_too_deep() -> None:
    reader = RegisteredJson(Registry(Schema("JSON", "{}")))  # type: ignore[arg-type]
    with pytest.raises(Undecodable, match="64 deep"):
        reader.text(HEAD + b'{"a": ' * 65 + b"1" + b"}" * 65)


def test_print_shows_the_whole_object() -> None:
    reader = RegisteredJson(Registry(Schema("JSON", "{}")))  # type: ignore[arg-type]
    for text in (b'{"a": 1.50, "b": {"c": []}}', b'{"a": "\\ud800"}'):
        assert reader.text(HEAD + text) == text


def test_schemas_that_double_at_each_step_are_refused_at_once() -> None:
    """A few hundred bytes that would give columns of 2**30 parts."""
    steps = range(30)
    node = {f"d{i}": {"properties": {k: {"$ref": f"#/$defs/d{i + 1}"} for k in "ab"}} for i in steps}
    text = json.dumps({"$defs": node | {"d30": {"type": "integer"}}, **node["d0"]})
    with pytest.raises(UnfitSchema, match="more than 5000 parts"):
        registered_schema.columns_of(Schema("JSON", text))

    def record(i: int) -> dict[str, Any]:
        fields = [{"name": "a", "type": record(i + 1) if i < 29 else "null"}]
        return {"type": "record", "name": f"R{i}", "fields": [*fields, {"name": "b", "type": f"R{i + 1}"}]}

    # The innermost has nothing that it could name.
    of_nulls = json.dumps(record(0)).replace('"type": "R30"', '"type": "null"')
    with pytest.raises(UnfitSchema, match="more than 5000 parts"):
        registered_schema.columns_of(Schema("AVRO", of_nulls.replace('"null"', '"int"')))
    items = {"type": "array", "items": json.loads(of_nulls)}
    text = json.dumps({"type": "record", "name": "T", "fields": [{"name": "l", "type": items}]})
    with pytest.raises(UnfitSchema, match="take no bytes"):
        registered_schema.columns_of(Schema("AVRO", text))
    proto = 'syntax = "proto3";\n' + "\n".join(
        f"message M{i} {{ M{i + 1} a = 1; M{i + 1} b = 2; }}" for i in steps
    )
    with pytest.raises(UnfitSchema, match="more than 5000 parts"):
        registered_schema.columns_of(Schema("PROTOBUF", proto + "\nmessage M30 { int32 n = 1; }"))
