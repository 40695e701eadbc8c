"""What each column type takes from a JSON record, and what it refuses: the one table that readers are held to.

``docs/sql/types.md`` shows it; ``tests/unit/formats/test_value_cases.py`` compares it with plain Python.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final


class _Undecodable:
    def __repr__(self) -> str:
        return "UNDECODABLE"


UNDECODABLE: Final = _Undecodable()


@dataclass(frozen=True, slots=True)
class Case:
    """One value.

    Attributes:
        type: of the column.
        text: the value as it stands in the record, as JSON.
        value: as ``exact_json`` gives it, or ``UNDECODABLE``.
        shown: whether the docs show it.
    """

    type: str
    text: str
    value: Any
    shown: bool = True


@dataclass(frozen=True, slots=True)
class RecordCase:
    """One whole record; its row as values by column, or ``UNDECODABLE``."""

    columns: tuple[tuple[str, str], ...]
    record: bytes
    row: Any


def alike(one: Any, other: Any) -> bool:
    """Equal in value, type and sign, at any depth; NaN equals itself."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    return bool(one == other)


def _all(kind: str, *pairs: tuple[str, Any], shown: bool = True) -> list[Case]:
    return [Case(kind, text, value, shown) for text, value in pairs]


def _no(kind: str, *texts: str, shown: bool = True) -> list[Case]:
    return [Case(kind, text, UNDECODABLE, shown) for text in texts]


def _day(*parts: int) -> datetime:
    return datetime(*parts)  # type: ignore[arg-type]


def _utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


NAN, INFINITY = float("nan"), float("inf")
SHOWN_MOMENT = (2026, 1, 5, 12, 30)
_NO_MOMENTS = (
    '"2026-01-05"',
    '"12:30:00"',
    '"99999"',
    '"20260105123000"',
    "1767616200000",
    '"2026-01-05 12:30:00 garbage"',
    '"2026-02-30 12:30:00"',
    '"2026-01-05 24:00:00"',
    '"2026-01-05 12:30:60"',
    '"2026-01-05 12:30:00 Europe/Berlin"',
)
_MORE_NO_MOMENTS = (
    '""', '" 2026-01-05 12:30:00"', '"2026-01-05 12:30:00 "', '"2026-1-5 12:30:00"', '"2026-01-05 1:30:00"',
    '"2026-01-05  12:30:00"', '"2026-01-05t12:30:00z"', '"2026-01-05 12"', '"2026-01-05T"', '"T12:30:00"',
    '"12:30"', '"2026"', '"2026-01"', '"-5"', '"0000-01-01 00:00:00"', '"0044-03-15 12:00:00 BC"',
    '"+12026-01-05 12:30:00"', '"12026-01-05 12:30:00"', '"-0044-03-15 12:00:00"', '"2026-01-05 12:30:00."',
    '"2026-01-05 12:30:00,5"', '"2026-01-05 12:30:00.0123456789"', '"2026-01-05 12:60:00"',
    '"2026-01-05 12:30:00+1"', '"2026-01-05 12:30:00+1:00"', '"2026-01-05 12:30:00+19:00"',
    '"2026-01-05 12:30:00+18:01"', '"2026-01-05 12:30:00+01:60"', '"2026-01-05 12:30:00+01:00:00"',
    '"2026-01-05 12:30:00 UTC"', '"2026-01-05 12:30:00UTC+1"', '"2026-01-05 12:30:00  Z"',
    '"2026-01-05 12:30:00ZZ"', '"2026-01-05 12:30Z:00"', '"now"', '"today"', '"epoch"', '"infinity"',
    '"0001-01-01 00:00:00+01:00"', '"9999-12-31 23:59:59-00:01"', '"٢٠٢٦-01-05 12:30:00"',
    '"2026-01-05 12:30:00\\n"', '"2026-01-05 12:30:00\\u0000"', "20260105", "2026.5", "true", "{}", "[]",
    '["2026-01-05 12:30:00"]', '{"t":"2026-01-05 12:30:00"}',
)  # fmt: skip


def _moments(kind: str, make: Any) -> list[Case]:
    moment = make(*SHOWN_MOMENT)
    texts = (
        '"2026-01-05 12:30:00"',
        '"2026-01-05T12:30:00"',
        '"2026-01-05T12:30:00Z"',
        '"2026-01-05 14:30:00+02:00"',
        '"2026-01-05 12:30"',
    )
    more = (
        '"2026-01-05 12:30:00Z"', '"2026-01-05 12:30:00 Z"', '"2026-01-05T14:30:00+0200"',
        '"2026-01-05T14:30:00+02"', '"2026-01-05T14:30:00 +02:00"', '"2026-01-05T08:45-03:45"',
        '"2026-01-06T06:30+18:00"', '"2026-01-04T18:30:00.000-18:00"', '"2026-01-05T12:30:00-00:00"',
        '"2026-01-05T12:30:00.0000009"', '"2026\\u002d01-05 12:30:00"',
    )  # fmt: skip
    return [
        *_all(kind, *((text, moment) for text in texts)),
        *_all(kind, ('"2026-01-05 12:30:00.123456789"', make(*SHOWN_MOMENT, 0, 123456))),
        *_all(kind, *((text, moment) for text in more), shown=False),
        *_all(
            kind,
            ('"0001-01-01 00:00:00"', make(1, 1, 1)),
            ('"0001-01-01T01:00:00+01:00"', make(1, 1, 1)),
            ('"9999-12-31 23:59:59.999999"', make(9999, 12, 31, 23, 59, 59, 999999)),
            ('"1582-10-10 00:00:00"', make(1582, 10, 10)),
            ('"1899-12-31T23:59:59.5"', make(1899, 12, 31, 23, 59, 59, 500000)),
            ('"1969-12-31T23:59:59.999999Z"', make(1969, 12, 31, 23, 59, 59, 999999)),
            shown=False,
        ),
        *_no(kind, *_NO_MOMENTS),
        *_no(kind, *_MORE_NO_MOMENTS, shown=False),
    ]


def _wholes(kind: str, bits: int) -> list[Case]:
    most = (1 << bits) - 1
    return [
        *_all(kind, (str(most), most), (str(-most - 1), -most - 1)),
        *_all(kind, ("-0", 0), ("0", 0), shown=False),
        *_no(kind, str(most + 1), "5.0", "1e2", '"5"', "true"),
        *_no(kind, str(-most - 2), "256" + "0" * bits, "-1e0", "9" * 400, '""', "{}", "[5]", shown=False),
    ]


CASES: tuple[Case, ...] = (
    *_all("BOOLEAN", ("true", True), ("false", False)),
    *_no("BOOLEAN", '"true"', "1"),
    *_no("BOOLEAN", "0", '""', "{}", "[true]", shown=False),
    *_wholes("TINYINT", 7),
    *_wholes("SMALLINT", 15),
    *_wholes("INTEGER", 31),
    *_wholes("BIGINT", 63),
    *_all("DOUBLE", ("1.5", 1.5), ("3", 3.0), ("1e3", 1000.0), ("1e999", INFINITY), ('"NaN"', NAN)),
    *_all("DOUBLE", ('"Infinity"', INFINITY), ('"-Infinity"', -INFINITY)),
    *_all(
        "DOUBLE", ("-0.0", -0.0), ("0.1", 0.1), ("5e-324", 5e-324), ("1e-400", 0.0), ("-1e999", -INFINITY),
        ("9007199254740993", 9007199254740992.0), ("1" + "0" * 308, 1e308), ("2.2250738585072012e-308",
        2.2250738585072014e-308), ("1" * 400, INFINITY), ("0.30000000000000004", 0.30000000000000004),
        ("8.98846567431158e307", 8.98846567431158e307), shown=False,
    ),
    *_no("DOUBLE", '"1.5"', '"INF"', "true"),
    *_no("DOUBLE", '"+INF"', '"-INF"', '"+Infinity"', '"nan"', '"1e5"', '""', "{}", "[1.5]", shown=False),
    *_all("FLOAT", ("1.5", 1.5), ("1e39", INFINITY), ('"NaN"', NAN)),
    *_all(
        "FLOAT", ("0.1", 0.10000000149011612), ("16777217", 16777216.0), ("-3.4028235e38", -3.4028234663852886e38),
        ("1e-46", 0.0), ("1.4e-45", 1.401298464324817e-45), ('"Infinity"', INFINITY),
        # Between two singles by less than a double can tell: rounding twice gives the wrong one.
        ("1.00000017881393432617187499", 1.00000011920928955078125),
        ("1.00000005960464477539062500000000001", 1.00000011920928955078125),
        shown=False,
    ),
    *_no("FLOAT", '"1.5"', "true"),
    *_no("FLOAT", '"INF"', "[]", shown=False),
    *_all("DECIMAL(10, 2)", ("12.34", Decimal("12.34")), ("5", Decimal("5.00")), ('"12.34"', Decimal("12.34"))),
    *_all("DECIMAL(10, 2)", ("12.3400", Decimal("12.34")), ("1.5e3", Decimal("1500.00"))),
    *_all(
        "DECIMAL(10, 2)", ("-0.0", Decimal("0.00")), ("99999999.99", Decimal("99999999.99")),
        ("123e-2", Decimal("1.23")), ("0e999999999", Decimal("0.00")), ("12" + ".34" + "0" * 60, Decimal("12.34")),
        ('"007.50"', Decimal("7.50")), ('"-1E+3"', Decimal("-1000.00")), ("1E-2", Decimal("0.01")),
        ("0.00000000000000000000000000000000000000000000000001e50", Decimal("1.00")), shown=False,
    ),
    *_no("DECIMAL(10, 2)", "12.345", "123456789.1", '"12,34"', '" 12.34"', '"1_000"', '""', "true"),
    *_no(
        "DECIMAL(10, 2)", '"1,234.5"', '"12.34 "', '"12.34\\n"', '"$5"', '"5 EUR"', '"NaN"', '"Infinity"', '"0x10"',
        '"5d"', '"5."', '".5"', '"-"', '"--5"', '"1e"', '"5,"', '",5"', '"٥"', "1e8", "1e999999999", "1e-999999999",
        "-1e99999999999999999999", "12.34" + "0" * 40 + "1", "5e-3", "1" * 300, '"12.345"', "{}", "[5]",
        '"12.34" '.strip().replace("12", "1 2"), "12.3400000000000000000000000000000000000001", shown=False,
    ),
    *_all("DECIMAL", ("1234567890", Decimal(1234567890)), ("1.0", Decimal(1)), shown=False),
    *_no("DECIMAL", "12345678901", "0.5", shown=False),
    *_all("DECIMAL(38, 2)", ("12.34", Decimal("12.34"))),
    *_all("DECIMAL(38, 2)", ("9" * 36 + ".99", Decimal("9" * 36 + ".99")), ("-" + "1" * 36, Decimal("-" + "1" * 36
        + ".00")), ("123456789012345678.9", Decimal("123456789012345678.90")), ('"0.10"', Decimal("0.10")), shown=False),
    *_no("DECIMAL(38, 2)", "12.345"),
    # As doubles these would be other, shorter numbers.
    *_no("DECIMAL(38, 2)", "12.30000000000000001", "1230000000000000001e-17", "0.10000000000000000555", shown=False),
    *_all("DECIMAL(38, 16)", ("0.1234567890123456", Decimal("0.1234567890123456")), shown=False),
    *_all("DECIMAL(38, 16)", ("1234567890123456e-10", Decimal("123456.7890123456")), shown=False),
    *_all("DECIMAL(38, 16)", ("-123456789.012345", Decimal("-123456789.012345")), shown=False),
    *_all("DECIMAL(38, 16)", ("0.00012345678901", Decimal("0.00012345678901")), shown=False),
    *_no("DECIMAL(38, 2)", "1" + "0" * 36, "0.001", '"12.345"', "12.340000000000000001", shown=False),
    *_all("DECIMAL(38, 0)", ("5.0", Decimal(5))),
    *_all("DECIMAL(38, 0)", ("9" * 38, Decimal("9" * 38)), shown=False),
    *_no("DECIMAL(38, 0)", "5.5"),
    *_no("DECIMAL(38, 0)", "1" + "0" * 38, "0.4", '"5.5"', shown=False),
    *_all("DECIMAL(38, 38)", ("0." + "1" * 38, Decimal("0." + "1" * 38)), ("-1e-38", Decimal("-1e-38")), shown=False),
    *_no("DECIMAL(38, 38)", "1", "0." + "1" * 39, "1e-39", shown=False),
    *_all("DECIMAL(18, 18)", ("0.123456789012345678", Decimal("0.123456789012345678")), shown=False),
    *_all("VARCHAR", ('"text"', "text"), ("19.90", "19.90"), ("12345678901234567.89", "12345678901234567.89")),
    *_all("VARCHAR", ("1e999", "1e999"), ("true", "true"), ('{"a": 1.50}', '{"a": 1.50}'), ("[1.10, 2]", "[1.10, 2]")),
    *_all(
        "VARCHAR", ('""', ""), ("0", "0"), ("-0", "-0"), ("-0.0", "-0.0"), ("false", "false"), ("1E5", "1E5"),
        ("1e5", "1e5"), ("1.0", "1.0"), ("100000000000000000000000000000000000000000", "1" + "0" * 41),
        ("0.1000", "0.1000"), ("-12.50e+03", "-12.50e+03"), ('"19.90"', "19.90"), ('"1.0E5"', "1.0E5"),
        ('"{\\"a\\": 1.50}"', '{"a": 1.50}'), ('"[1.10]"', "[1.10]"), ('"\\"Infinity\\""', '"Infinity"'),
        ('"null"', "null"), ('"\\ud83d\\ude00 \\u00e9\\n\\"\\\\\\/"', '😀 é\n"\\/'), ('"😀"', "😀"), ("{}", "{}"),
        ("[ ]", "[ ]"), ('{ "k" : "\\u00e9\\"}" , "l":[ {},"[" ]}', '{ "k" : "\\u00e9\\"}" , "l":[ {},"[" ]}'),
        ('{"a":1.0,"a":2.0}', '{"a":1.0,"a":2.0}'), ("[[[[1.00]]]]", "[[[[1.00]]]]"), ('"\\u0000"', "\0"),
        ('[null, "a,b", -0]', '[null, "a,b", -0]'), ('"?"', "?"), ('"\\\\ud800"', "\\ud800"), ('" 1 "', " 1 "),
        ("[\n1.50\t]", "[\n1.50\t]"), ('["\\udfff"]', '["\\udfff"]'), shown=False,
    ),
    *_no("VARCHAR", '"\\ud800"'),
    *_no("VARCHAR", '"\\udc00\\ud800"', '"x\\uDBFFy"', '"\\udfff?"', shown=False),
    *_all("BYTES", ('"aGk="', b"hi")),
    *_all("BYTES", ('""', b""), ('"AAAA"', b"\0\0\0"), ('"+/8="', b"\xfb\xff"), ('"1234"', b"\xd7m\xf8"),
        ('"\\u0061Gk\\u003d"', b"hi"), shown=False),
    *_no("BYTES", '"aGk"', '"a Gk="', '"aG-_"', "1234"),
    *_no("BYTES", '"!!"', '"aGk=="', '"aGk=\\n"', '"aGk=aGk="', '"="', '"a==="', "true", "[]", shown=False),
    *_all("DATE", ('"2026-01-05"', date(2026, 1, 5))),
    *_all("DATE", ('"0001-01-01"', date.min), ('"9999-12-31"', date.max), ('"2024-02-29"', date(2024, 2, 29)),
        ('"1582-10-10"', date(1582, 10, 10)), ('"2026\\u002d01-05"', date(2026, 1, 5)), shown=False),
    *_no("DATE", '"20260105"', "20260105", '"2026-02-30"', '"2026-1-5"', '"2026-01-05 garbage"'),
    *_no("DATE", '"2026-01-05T23:00:00-05:00"', '"0044-03-15 BC"', '"0000-01-01"'),
    *_no(
        "DATE", '"45678"', '"-5"', '""', '" 2026-01-05"', '"2026-01-05 "', '"2026-01-05T"', '"2026-01"', '"2026"',
        '"2026-01-05Z"', '"2026-01-05 00:00:00"', '"2026/01/05"', '"05.01.2026"', '"12026-01-05"', '"+2026-01-05"',
        '"-0044-03-15"', '"2023-02-29"', '"2026-13-01"', '"2026-00-01"', '"2026-01-00"', '"2026-W01-1"', '"2026-005"',
        '"today"', '"epoch"', '"infinity"', '"٢٠٢٦-٠١-٠٥"', '"2026-01-05\\n"', "2026.5", "5", "true", "{}",
        '["2026-01-05"]', shown=False,
    ),
    *_all("TIME", ('"12:30:00"', "12:30:00"), ('"12:30:00.5"', "12:30:00.5")),
    *_all("TIME", ('"00:00:00"', "00:00:00"), ('"23:59:59.999999999"', "23:59:59.999999999"), shown=False),
    *_no("TIME", '"24:00:00"', '"12:30"', '"12:30:00Z"'),
    *_no("TIME", '"1:30:00"', '"12:30:60"', '" 12:30:00"', '"12:30:00\\n"', '"12:30:00."', '"12:30:00.1234567890"',
        '"٢٢:30:00"', '""', "123000", "12.5", "[]", shown=False),
    *_moments("TIMESTAMP", _day),
    *_moments("TIMESTAMP_LTZ", _utc),
    *_all("ARRAY<INTEGER>", ("[1, null]", [1, None])),
    *_all("ARRAY<INTEGER>", ("[]", []), ("[ ]", []), ("[ 1 ,2 ]", [1, 2]), shown=False),
    *_no("ARRAY<INTEGER>", "1", '[1, "2"]', "{}"),
    *_no("ARRAY<INTEGER>", "[1.0]", '"[1]"', "[[1]]", shown=False),
    *_all("ARRAY<VARCHAR>", ("[19.90, true, null, [1.0]]", ["19.90", "true", None, "[1.0]"])),
    *_all("ARRAY<VARCHAR>", ('["a,b", "]", 1e999, {"x":[2.50]} , ""]', ["a,b", "]", "1e999", '{"x":[2.50]}', ""]),
        ('["1.0"]', ["1.0"]), shown=False),
    *_all("ARRAY<DECIMAL(38, 2)>", ('[1.10, "2", 3e0]', [Decimal("1.10"), Decimal("2.00"), Decimal("3.00")]), shown=False),
    *_no("ARRAY<DECIMAL(38, 2)>", "[1.105]", '["1,5"]', shown=False),
    *_no("ARRAY<DATE>", '["2026-01-05", "20260105"]', shown=False),
    *_no("ARRAY<TIMESTAMP_LTZ>", '["12:30:00"]', shown=False),
    *_all("MAP<VARCHAR, INTEGER>", ('{"a": 1}', {"a": 1})),
    *_all("MAP<VARCHAR, INTEGER>", ("{}", {}), ('{"a":1,"a":2}', {"a": 2}), ('{"":null}', {"": None}),
        ('{"\\u0061":1,"a\\"b":2}', {"a": 1, 'a"b': 2}), ('{"a":1,"\\u0061":2,"b":3}', {"a": 2, "b": 3}), shown=False),
    *_no("MAP<VARCHAR, INTEGER>", '{"a": "1"}', "[]"),
    *_no("MAP<VARCHAR, INTEGER>", '{"\\ud800":1}', shown=False),
    *_all("MAP<VARCHAR, VARCHAR>", ('{"a": 19.90, "b": {"c": 1.0}}', {"a": "19.90", "b": '{"c": 1.0}'})),
    *_all("MAP<VARCHAR, VARCHAR>", ('{"1.0":1.0,"{":"}","x":1e999}', {"1.0": "1.0", "{": "}", "x": "1e999"}), shown=False),
    *_no("MAP<VARCHAR, DECIMAL(10, 2)>", '{"a": "12,34"}', '{"a":12.345}', shown=False),
    *_all("STRUCT<a INTEGER, b VARCHAR>", ('{"a": 1, "b": 1.0, "c": 2}', {"a": 1, "b": "1.0"})),
    *_all("STRUCT<a INTEGER, b VARCHAR>", ("{}", {"a": None, "b": None}), ('{"A":1,"b":"1.0"}', {"a": None, "b": "1.0"}),
        ('{"b":2.50,"b":3.50}', {"a": None, "b": "3.50"}), ('{"x":{"a":5},"a":6}', {"a": 6, "b": None}), shown=False),
    *_no("STRUCT<a INTEGER, b VARCHAR>", '{"a": "1"}', "[1]"),
    *_no("STRUCT<d DECIMAL(38, 2), e DATE>", '{"d":12.345}', '{"d":"12,34"}', '{"e":"2026-01-05x"}', shown=False),
    *_all("STRUCT<m MAP<VARCHAR, ARRAY<STRUCT<v VARCHAR, d DECIMAL(38, 1)>>>>", (
        '{"m": {"k": [null, {"v": 1.00, "d": 2.5}, {"v":{ "z":-0 }}]}}',
        {"m": {"k": [None, {"v": "1.00", "d": Decimal("2.5")}, {"v": '{ "z":-0 }', "d": None}]}}), shown=False),
    *_no("STRUCT<m MAP<VARCHAR, ARRAY<STRUCT<v VARCHAR, d DECIMAL(38, 1)>>>>", '{"m":{"k":[{"d":2.55}]}}', shown=False),
)  # fmt: skip

_ID = (("id", "BIGINT"),)
_TEXT = (("id", "BIGINT"), ("v", "VARCHAR"))
BOM = b"\xef\xbb\xbf"
RECORDS: tuple[RecordCase, ...] = (
    *(RecordCase(_ID, text, {"id": 1}) for text in (
        b'{"id":1}', b' \t\r\n{ "id" : 1 }\r\n', b'{"x":[{"y":"}{"}],"id":1}', b'{"id":3,"id":1}', BOM + b'{"id":1}',
        b'{"id":1,"x":{}}', b'{"id":1,"x":"}"}', b'{"id":1,"x":1e999,"y":"\\u0000"}', b'{"\\u0069d":1}',
    )),
    *(RecordCase(_ID, text, {"id": None}) for text in (b"{}", b"{ }\n", b'{"ID":1}', b'{"id":null}', b'{"x":{"id":1}}')),
    *(RecordCase(_ID, text, UNDECODABLE) for text in (
        b'{"id":1}{"id":2}', b'{"id":9}{"oops"}', b'{"id":10}garbage}', b'{"id":1} {"id":2}', b'{"id":1}\n{"id":2}\n',
        b'{"id":1},{"id":2}', b'{"id":1}}', b'{"id":1}]', b'{"id":1}]}', b'{"id":1},"x":2}', b'{"id":1};', b'{"id":1}0',
        b'{"id":1}null', b'[{"id":1}]', b'{"id":1', b'{"id":}', b'{"id":1,}', b'{"id" 1}', b"{'id':1}", b"{id:1}", b"",
        b" ", b"null", b"1", b'"x"', b"[]", b'{"id":01}', b'{"id":+1}', b'{"id":1.}', b'{"x":.5}', b'{"x":01}', b'{"x":NaN}',
        b'{"x":Infinity}', b'{"x":-Infinity}', b'{"x":+INF}', b'{"x":tru}', b'{"x":undefined}', b'{"id":1}\x00', b'\x0c{"id":1}',
        b'{"id":1}\xc2\xa0', b'{"id":1/**/}', b'//x\n{"id":1}', b'{"x":"\x01"}', b'{"x":"a\nb"}', b'{"x":"\\x41"}', b'{"x":"\\u12"}',
        b'{"x":"\xff"}', b'{"\xed\xa0\x80":1}', BOM + BOM + b'{"id":1}', b'{"id":1}' + BOM, b'{"x":"\\\'"}',
        '{"id":1}'.encode("utf-16"), b'{}{}', b'{"id":1}{', b'{"id":1}}{"id":2}', b'{"a":[1,]}', b'{"a":[}]}', b'{,"id":1}',
        b'{"id":1,"x":' + b"[" * 70 + b"]" * 70 + b"}",
    )),
    *(RecordCase(_TEXT, text, row) for text, row in (
        (b'{"id":1,"v":1.10,"w":"x"}', {"id": 1, "v": "1.10"}), (b'{"v":{"id":2.0},"id":1}', {"id": 1, "v": '{"id":2.0}'}),
        (b'{"id":1,"v":"a","v":1.10}', {"id": 1, "v": "1.10"}), (b'{"id":1,"v":1.10,"v":"a"}', {"id": 1, "v": "a"}),
        (b'{"id":1,"\\u0076":1.10}', {"id": 1, "v": "1.10"}), (b'{"id":1,"v":1.10,"v":null}', {"id": 1, "v": None}),
        (BOM + b'{"id":1,"v":1.10}', {"id": 1, "v": "1.10"}), (b'{"x":{"v":1.10},"v":"2.20"}', {"id": None, "v": "2.20"}),
        (b'{"x":"\\"v\\":1.10","v":2.20}', {"id": None, "v": "2.20"}), (b'\n{ "v" :\t2.20\r\n}\n', {"id": None, "v": "2.20"}),
        (b'{"x":' + b'[' * 60 + b'"]"' + b']' * 60 + b',"v":2.20}', {"id": None, "v": "2.20"}),
        (b'{"v":NaN}', UNDECODABLE), (b'{"v":[1.0,NaN]}', UNDECODABLE), (b'{"v":Infinity}', UNDECODABLE),
        (b'{"id":1,"v":1.10}{"v":2.2}', UNDECODABLE), (b'{"v":1.10]}', UNDECODABLE), (b'{"v":{"a":1.0}', UNDECODABLE),
        (b'{"id":"1","v":1.10}', UNDECODABLE), (b'{"id":1.0,"v":1.10}', UNDECODABLE),
    )),
    RecordCase((("d", "DOUBLE"),), b'{"d":NaN}', UNDECODABLE),
    RecordCase((("d", "DOUBLE"),), b'{"d":-Infinity}', UNDECODABLE),
    RecordCase((("d", "ARRAY<DOUBLE>"),), b'{"d":[1.5,NaN]}', UNDECODABLE),
    RecordCase((("d", "FLOAT"),), b'{"d":INF}', UNDECODABLE),
    RecordCase((("id", "BIGINT NOT NULL"),), b"{}", UNDECODABLE),
    RecordCase((("v", "VARCHAR NOT NULL"),), b'{"v":null}', UNDECODABLE),
    RecordCase((("v", "VARCHAR NOT NULL"),), b'{"v":1.0}', {"v": "1.0"}),
    RecordCase((("a.b", "BIGINT"), ('q"q', "VARCHAR"), ("t`k", "VARCHAR")), b'{"a.b":1,"q\\"q":1.0,"t`k":2.0}',
        {"a.b": 1, 'q"q': "1.0", "t`k": "2.0"}),
    RecordCase((("d", "DECIMAL(38, 2)"), ("v", "VARCHAR"), ("at", "TIMESTAMP_LTZ")),
        b'{"d":1.50,"v":"1.50","at":"2026-01-05T12:30:00Z"}',
        {"d": Decimal("1.50"), "v": "1.50", "at": datetime(2026, 1, 5, 12, 30, tzinfo=UTC)}),
)  # fmt: skip
