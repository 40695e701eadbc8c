"""The table of values is what exact Python reading says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from exact_json import NotExact, read_record
from value_cases import CASES, RECORDS, UNDECODABLE, alike

from leatstream.formats.json_objects import JsonReader
from leatstream.formats.plain_values import Undecodable
from leatstream.formats.values import from_plain
from leatstream.model.types import DataType, parse_type


def exactly(columns: Any, record: bytes) -> Any:
    try:
        return read_record(columns, record)
    except NotExact:
        return UNDECODABLE


def test_the_table_is_what_python_reads() -> None:
    unlike = []
    for case in CASES:
        found = exactly([("v", case.type)], b'{"v":' + case.text.encode() + b"}")
        found = found if found is UNDECODABLE else found["v"]
        if not alike(found, case.value):
            unlike.append((case, found))
    assert unlike == []
    wrong = [(case, row) for case in RECORDS if (row := exactly(case.columns, case.record)) != case.row]
    assert wrong == []


def test_no_case_stands_twice() -> None:
    assert len({(case.type, case.text) for case in CASES}) == len(CASES)


def test_the_reader_of_json_schema_reads_what_the_table_says() -> None:
    """But for whole numbers with a fraction of zeros, which JSON Schema calls integers."""
    unlike = []
    for case in CASES:
        found = _of_json_schema([("v", case.type)], b'{"v":' + case.text.encode() + b"}")
        found = found if found is UNDECODABLE else found["v"]
        if not alike(found, case.value) and not (
            case.type in WHOLE and case.text in ("5.0", "1e2", "-1e0", "[1.0]")
        ):
            unlike.append((case, found))
    for record in RECORDS:
        row = _of_json_schema(record.columns, record.record)
        if not alike(row, record.row) and not any(told.endswith("NOT NULL") for _, told in record.columns):
            unlike.append((record, row))
    assert [one for one in unlike if b'"id":1.0' not in getattr(one[0], "record", b"")] == []


WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "ARRAY<INTEGER>")


def _of_json_schema(columns: Any, record: bytes) -> Any:
    types = [parse_type(told.removesuffix(" NOT NULL")) for _, told in columns]
    reader = JsonReader.of([name for name, _ in columns], types)
    try:
        members = reader.read(record, 0)
        values = [get(members) for get in reader.getters]
    except Undecodable:
        return UNDECODABLE
    pairs = zip(columns, values, types, strict=True)
    return {name: _as_python(value, kind) for (name, _), value, kind in pairs}


def _as_python(value: Any, kind: DataType) -> Any:
    """``from_plain`` of it, with names for the fields of a STRUCT."""
    if value is None:
        return None
    if kind.kind == "STRUCT":
        pairs = zip(kind.fields, kind.arguments, strict=True)
        return {name: _as_python(value[name], part) for name, part in pairs}
    if kind.kind == "ARRAY":
        return [_as_python(item, kind.arguments[0]) for item in value]
    if kind.kind == "MAP":
        return {key: _as_python(item, kind.arguments[1]) for key, item in value}
    return from_plain(value, kind)


BEGIN, END = "<!-- values: begin -->\n", "<!-- values: end -->"


def test_the_page_shows_the_table() -> None:
    """Write it anew with ``UPDATE_GOLDEN=1``."""
    page = Path(__file__).parents[3] / "docs" / "sql" / "types.md"
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    shown, after = rest.split(END)
    if os.environ.get("UPDATE_GOLDEN"):
        page.write_text(before + BEGIN + table_of_values() + END + after, encoding="utf-8")
    else:
        assert shown == table_of_values()


def table_of_values() -> str:
    lines = ["| type | values | undecodable values |", "|---|---|---|"]
    for kind in dict.fromkeys(case.type for case in CASES if case.shown):
        cases = [case for case in CASES if case.type == kind and case.shown]
        taken = [_shown(case.text) for case in cases if case.value is not UNDECODABLE]
        refused = [_shown(case.text) for case in cases if case.value is UNDECODABLE]
        lines.append(f"| `{kind}` | {', '.join(taken)} | {', '.join(refused)} |")
    return "\n".join(lines) + "\n"


def _shown(text: str) -> str:
    return f"`{text}`"
