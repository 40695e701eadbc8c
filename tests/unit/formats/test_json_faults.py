"""Which column of a record is to blame, and what an error may show of it."""

from __future__ import annotations

import pytest

from leatstream.formats.excerpts import is_private
from leatstream.formats.json_faults import faults_of
from leatstream.plan.job_spec import ColumnSpec


def column(name: str, type: str, not_null: bool = False) -> ColumnSpec:
    return ColumnSpec(name=name, type=type, not_null=not_null)


def told(columns: list[ColumnSpec], text: bytes | str, *, shown: bool = True) -> list[str]:
    raw = text if isinstance(text, bytes) else text.encode()
    return [fault.in_words(shown=shown) for fault in faults_of(columns, raw)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "it is empty"),
        (b"  \n", "it is empty"),
        (b"\xff\xfe{", "it is not UTF-8 (byte 1 of 3)"),
        (b"hello", "it is not JSON (at character 1 of 5)"),
        (b'{"n":1', "it is not JSON (at character 7 of 6)"),
        (b"[1]", "it is JSON, but not one object"),
        (b'{"n":1}{"n":2}', "7 characters follow the object, which ends at character 7"),
        (b"[" * 100_000, "it is nested too deeply"),
    ],
)
def test_records_that_are_no_object(text: bytes, says: str) -> None:
    assert told([column("n", "BIGINT")], text) == [says]


@pytest.mark.parametrize(
    ("type", "value", "says"),
    [
        ("BIGINT", '"yesterday"', 'column c is BIGINT, the record has the string "yesterday"'),
        ("BIGINT", '"12"', 'column c is BIGINT, the record has the string "12" (a number is not quoted)'),
        (
            "INTEGER",
            "2147483648",
            "column c is INTEGER, the record has the number 2147483648 (it is out of range)",
        ),
        ("SMALLINT", "1.5", "column c is SMALLINT, the record has the number 1.5 (it is no whole number)"),
        ("BOOLEAN", "1", "column c is BOOLEAN, the record has the number 1"),
        ("DOUBLE", "true", "column c is DOUBLE, the record has true"),
        (
            "DECIMAL(5, 2)",
            "1.234",
            "column c is DECIMAL(5, 2), the record has the number 1.234 (it has more than 2 digits after the point)",
        ),
        (
            "DECIMAL(5, 2)",
            "12345",
            "column c is DECIMAL(5, 2), the record has the number 12345 (it has more than 3 digits before the point)",
        ),
        ("DECIMAL(10, 2)", '"12,34"', 'column c is DECIMAL(10, 2), the record has the string "12,34"'),
        (
            "DATE",
            '"20260105"',
            'column c is DATE, the record has the string "20260105" (a DATE is written as 2026-01-31)',
        ),
        (
            "TIMESTAMP",
            '"12:30:00"',
            'column c is TIMESTAMP, the record has the string "12:30:00" (a TIMESTAMP is written as 2026-01-31T13:05:00)',
        ),
        ("BYTES", '"?"', 'column c is BYTES, the record has the string "?" (bytes are written in base64)'),
        ("ARRAY<BIGINT>", '{"a":1}', "column c is ARRAY<BIGINT>, the record has an object"),
        ("ARRAY<BIGINT>", '[1,"x"]', 'column c[1] is BIGINT, the record has the string "x"'),
        ("STRUCT<a BIGINT>", '{"a":"x"}', 'column c.a is BIGINT, the record has the string "x"'),
        ("MAP<VARCHAR, BIGINT>", '{"k":"x"}', 'column c[…] is BIGINT, the record has the string "x"'),
    ],
)
def test_values_that_do_not_fit(type: str, value: str, says: str) -> None:
    assert told([column("c", type)], f'{{"c":{value}}}') == [says]


@pytest.mark.parametrize(
    ("type", "value"),
    [
        ("VARCHAR", "1.50"),
        ("VARCHAR", '{"a":1}'),
        ("BIGINT", "-9223372036854775808"),
        ("DOUBLE", '"NaN"'),
        ("DOUBLE", "1e300"),
        ("DECIMAL(5, 2)", '"123.40"'),
        ("DECIMAL(5, 2)", "123.4000"),
        ("DECIMAL(3, 0)", "1e2"),
        ("DATE", '"2026-01-31"'),
        ("TIME", '"13:05:00.5"'),
        ("TIMESTAMP", '"2026-01-31 13:05:00.123456789"'),
        ("TIMESTAMP_LTZ", '"2026-01-31T13:05:00.123+01:00"'),
        ("BYTES", '"aGk="'),
        ("BIGINT", "null"),
        ("ARRAY<BIGINT>", "[1,null]"),
    ],
)
def test_values_that_fit(type: str, value: str) -> None:
    assert told([column("c", type)], f'{{"c":{value}}}') == []


def test_not_null_and_all_faults_at_once() -> None:
    columns = [
        column("a", "BIGINT", True),
        column("b", "BIGINT", True),
        column("c", "BOOLEAN"),
        column("d", "BIGINT"),
    ]
    assert told(columns, '{"b":null,"c":"x","d":1}') == [
        "column a is NOT NULL, and is missing in the record",
        "column b is NOT NULL, and is null in the record",
        'column c is BOOLEAN, the record has the string "x"',
    ]


SECRET = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"


@pytest.mark.parametrize(
    "name", ["password", "user_password", "apiKey", "access_token", "card_number", "email", "ssn", "pin"]
)
def test_private_columns_are_not_shown(name: str) -> None:
    assert is_private(name)
    (said,) = told([column(name, "BIGINT")], f'{{"{name}":"hunter2"}}')
    assert said == f"column {name} is BIGINT, the record has the string of 7 characters (not shown)"


def test_a_private_field_of_a_struct_is_not_shown() -> None:
    assert "hunter2" not in str(
        told([column("u", "STRUCT<password BIGINT>")], '{"u":{"password":"hunter2"}}')
    )


def test_values_that_look_like_keys_are_not_shown_and_long_ones_are_cut() -> None:
    assert SECRET not in str(told([column("n", "BIGINT")], f'{{"n":"{SECRET}"}}'))
    assert "pw" not in str(told([column("n", "BIGINT")], '{"n":"kafka://user:pw@host"}'))
    (said,) = told([column("n", "BIGINT")], '{"n":"' + "long text " * 20 + '"}')
    assert said.endswith('long text long text long text long text…"')
    assert len(said) < 120


def test_control_characters_cannot_steer_a_terminal() -> None:
    (said,) = told([column("n", "BIGINT")], '{"n":"a\\u001b[2Jb"}')
    assert "\x1b" not in said


def test_no_value_is_shown_where_the_server_says_so() -> None:
    (said,) = told([column("n", "BIGINT")], '{"n":"yesterday"}', shown=False)
    assert said == "column n is BIGINT, the record has the string of 9 characters (not shown)"


@pytest.mark.parametrize("name", ["viewtime", "n", "customer", "passenger", "mapping", "pinned", "amount"])
def test_plain_columns_are_shown(name: str) -> None:
    assert not is_private(name)


def test_what_is_blamed_is_what_readers_refuse() -> None:
    """The table that every reader of JSON is held to: a fault is found in each record that none reads."""
    cases = pytest.importorskip("value_cases")
    differing = []
    for case in cases.CASES:
        found = faults_of([column("c", case.type)], f'{{"c":{case.text}}}'.encode())
        if bool(found) != (case.value is cases.UNDECODABLE):
            differing.append((case.type, case.text, [fault.in_words(shown=True) for fault in found]))
    for case in cases.RECORDS:
        columns = [
            column(name, kind.removesuffix(" NOT NULL"), kind.endswith(" NOT NULL"))
            for name, kind in case.columns
        ]
        if bool(faults_of(columns, case.record)) != (case.row is cases.UNDECODABLE):
            differing.append((case.columns, case.record[:80], case.row))
    assert differing == []
