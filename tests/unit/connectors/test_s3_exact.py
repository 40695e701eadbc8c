"""Texts in CSV and Parquet, and JSON objects in lines, against exact parsing in Python: no value changes."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from exact_json import NotExact, members, read_value
from hypothesis import given, settings
from hypothesis import strategies as st
from random_json import random_value
from value_cases import CASES, UNDECODABLE, alike

from leatstream.connectors.s3.files import rows
from leatstream.connectors.s3.layout import Layout
from leatstream.model.types import parse_type

KINDS = {
    "b": "BOOLEAN",
    "i": "BIGINT",
    "f": "DOUBLE",
    "d": "DECIMAL(38,10)",
    "v": "VARCHAR",
    "day": "DATE",
    "at": "TIMESTAMP",
    "seen": "TIMESTAMP_LTZ",
    "clock": "TIME",
    "raw": "BYTES",
}
WORDS = [
    "true",
    "FALSE",
    "NaN",
    "Infinity",
    "-0",
    "1e999",
    "12,34",
    "1.234,56",
    "20260105",
    "-5",
    "12:30:00",
    "99999",
]
WORDS += [
    "2026-01-05",
    "2026-01-05 garbage",
    "2026-01-05T23:00:00-05:00",
    "2026-02-30",
    "",
    " ",
    "007",
    "+1",
    "0x1",
]
DIGITS = st.text("0123456789", min_size=1, max_size=40)
TEXTS = st.one_of(
    st.sampled_from(WORDS),
    DIGITS,
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.floats().map(repr),
    st.tuples(DIGITS, st.sampled_from(".,eE"), DIGITS).map("".join),
    st.dates().map(str),
    st.datetimes().map(str),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
)
_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?\Z")


class Number(str):
    """A number of JSON, with its digits as they stand."""


def parsed(value: bytes) -> dict[str, Any]:
    found = json.loads(value, parse_float=Number, parse_int=Number, parse_constant=Number)
    assert isinstance(found, dict)
    return found


def read(data: bytes, layout: Layout) -> list[bytes]:
    found = [row for chunk in rows("f", io.BytesIO(data), layout) for row in chunk]
    assert [row.fault for row in found if row.fault] == []
    return [row.value for row in found]


def layout(form: str, **more: Any) -> Layout:
    return Layout(form, {name: parse_type(kind) for name, kind in KINDS.items()}, **more)


def expected(text: str, kind: str) -> Any:
    """What a field's text is in JSON: a number with the same digits, a truth value, or the text itself."""
    bare = text.strip()
    if kind in ("BIGINT", "DOUBLE") or kind.startswith("DECIMAL"):
        if _JSON_NUMBER.match(bare):
            return Number(bare)
        # A decoder takes such a text for a DECIMAL only if it is one: the reader must not have made it one.
        return bare if kind.startswith("DECIMAL") and _is_decimal(bare) else text
    if kind == "BOOLEAN" and bare.lower() in ("true", "false"):
        return bare.lower() == "true"
    return text


def _is_decimal(text: str) -> bool:
    try:
        return Decimal(text).is_finite() and text.isascii() and "_" not in text
    except ArithmeticError:
        return False


ROWS = st.lists(st.fixed_dictionaries(dict.fromkeys(KINDS, TEXTS)), min_size=1, max_size=4)


@settings(max_examples=40)
@given(
    rows=ROWS, delimiter=st.sampled_from(",;|\t"), header=st.booleans(), end=st.sampled_from(["\n", "\r\n"])
)
def test_csv(rows: list[dict[str, str]], delimiter: str, header: bool, end: str) -> None:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, KINDS, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    if header:
        writer.writeheader()
    writer.writerows(rows)
    found = read(out.getvalue().encode(), layout("csv", delimiter=delimiter, header=header))
    assert [parsed(value) for value in found] == [
        {name: expected(text, KINDS[name]) for name, text in row.items()} for row in rows
    ]
    assert [{n: type(v) for n, v in parsed(value).items()} for value in found] == [
        {name: type(expected(text, KINDS[name])) for name, text in row.items()} for row in rows
    ]


def meant(kind: str, text: str) -> Any:
    """What a field is worth, by exact parsing; blanks around numbers and truth values mean nothing."""
    bare = (
        text.strip()
        if kind not in ("VARCHAR", "BYTES", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ")
        else text
    )
    if kind == "BOOLEAN":
        return {"true": True, "false": False}.get(bare.lower(), UNDECODABLE)
    plain = bare is not text or kind in NUMERIC
    try:
        if plain and _JSON_NUMBER.match(bare):
            return read_value(parse_type(kind), bare)
        return read_value(parse_type(kind), json.dumps(bare if kind.startswith("DECIMAL") else text))
    except NotExact:
        return UNDECODABLE


def field_of(raw: str) -> str:
    """The text of a value that the table of JSON values has: what stands in its quotes."""
    return str(json.loads(raw)) if raw.startswith('"') else raw


PLAIN = sorted({case.type for case in CASES if "<" not in case.type})
NUMERIC = [
    kind
    for kind in PLAIN
    if kind.split("(")[0] in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")
]


@given(st.integers(0, 2**32))
def test_csv_values_are_those_of_the_table(number: int) -> None:
    """Every case of the table, and values like them, as fields of every type."""
    seed = random.Random(number)
    fields = [(kind, field_of(random_value(seed, parse_type(kind)))) for kind in PLAIN for _ in range(2)]
    fields += [(case.type, field_of(case.text)) for case in seed.sample(CASES, 20) if case.type in PLAIN]
    fields = [(kind, text) for kind, text in fields if not re.search("[\ud800-\udfff\0]", text)]
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows(
        [[f"c{i}" for i in range(len(fields))], [t for _, t in fields]]
    )
    columns = {f"c{i}": parse_type(kind) for i, (kind, _) in enumerate(fields)}
    (value,) = read(out.getvalue().encode(), Layout("csv", columns))
    raw = dict(members(value.decode()))
    for i, (kind, text) in enumerate(fields):
        assert alike(exactly(kind, raw[f"c{i}"]), meant(kind, text)), (kind, text)


def exactly(kind: str, raw: str) -> Any:
    try:
        return read_value(parse_type(kind), raw)
    except NotExact:
        return UNDECODABLE


@given(st.decimals(allow_nan=False, allow_infinity=False, places=5))
def test_decimal_commas_keep_every_digit(number: Decimal) -> None:
    text = f"d\n{number:f}\n".replace(".", ",")
    given = Layout("csv", {"d": parse_type("DECIMAL(38,10)")}, delimiter=";", decimal_comma=True)
    assert parsed(read(text.encode(), given)[0]) == {"d": f"{number:f}"}


@settings(max_examples=40)
@given(ROWS)
def test_parquet_texts(rows: list[dict[str, str]]) -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({name: [row[name] for row in rows] for name in KINDS}), out)
    assert [json.loads(value) for value in read(out.getvalue(), layout("parquet"))] == rows


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(), st.decimals(allow_nan=False, allow_infinity=False), st.floats()), min_size=1
    )
)
def test_parquet_numbers_keep_their_digits(values: list[tuple[int, Decimal, float]]) -> None:
    values = [(i % 2**63, Decimal(int(d) % 10**28).scaleb(-10), f) for i, d, f in values]
    columns = zip(
        ("i", "d", "f"),
        zip(*values, strict=True),
        (pa.int64(), pa.decimal128(38, 10), pa.float64()),
        strict=True,
    )
    out = io.BytesIO()
    pq.write_table(pa.table({name: pa.array(items, kind) for name, items, kind in columns}), out)
    for (whole, decimal, fraction), value in zip(
        values, read(out.getvalue(), layout("parquet")), strict=True
    ):
        found = parsed(value)
        assert int(found["i"]) == whole
        assert Decimal(found["d"]) == decimal
        assert str(float(found["f"])) == str(fraction)


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=4,
)
BETWEEN = st.sampled_from(["", " ", "\t", "\n", "\r\n", "\n\n", "\n\ufeff"])


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.dictionaries(TEXTS, VALUES, max_size=4), st.booleans(), BETWEEN), min_size=1, max_size=6
    ),
    st.booleans(),
)
def test_json_objects_stay_byte_for_byte(objects: list[tuple[dict[str, Any], bool, str]], mark: bool) -> None:
    """Whatever stands between them; what is in them is left to the decoder."""
    texts = [json.dumps(value, ensure_ascii=ascii_) for value, ascii_, _ in objects]
    data = "".join(text + between for text, (_, _, between) in zip(texts, objects, strict=True))
    assert read((("\ufeff" if mark else "") + data).encode(), layout("json")) == [
        text.encode() for text in texts
    ]
