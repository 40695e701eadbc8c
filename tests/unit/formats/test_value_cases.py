"""The table of values is what exact Python reading says."""

from __future__ import annotations

import math
from typing import Any

from exact_json import NotExact, read_record
from value_cases import CASES, RECORDS, UNDECODABLE


def same(one: Any, other: Any) -> bool:
    """Equal in value, type and sign; NaN equals itself."""
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or (one, math.copysign(1, one)) == (
            other,
            math.copysign(1, other),
        )
    return type(one) is type(other) and bool(one == other)


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
        if not same(found, case.value):
            unlike.append((case, found))
    assert unlike == []
    wrong = [(case, row) for case in RECORDS if (row := exactly(case.columns, case.record)) != case.row]
    assert wrong == []


def test_no_case_stands_twice() -> None:
    assert len({(case.type, case.text) for case in CASES}) == len(CASES)
