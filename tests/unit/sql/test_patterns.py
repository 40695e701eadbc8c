"""Row patterns with their types: what the matcher is given, and what it cannot compute as Spark would."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from leatstream.errors import RequestError
from leatstream.plan.logical import LogicalPlan, TypedPattern

Bind = Callable[[str], LogicalPlan]


def typed(bind_text: Bind, types: dict[str, str], clauses: str, by: str = "d") -> TypedPattern:
    """``clauses`` over ``t``, whose columns have these Spark types in this test."""
    text = (
        f"CREATE STREAM m AS SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY {by} ORDER BY rowtime {clauses})"
    )
    pattern = bind_text(text).pattern
    assert pattern is not None
    columns = pattern.input.partition(" FROM ")[0].removeprefix("SELECT ").split(", ")
    kinds = []
    for column in columns[: pattern.cells]:
        value = column.partition(" AS ")[0].split(".")[-1].strip("`")
        kinds.append({"d": "string", "TRUE": "boolean"}.get(value) or types.get(value) or "int")
    return pattern.typed(kinds)


def test_what_the_matcher_is_given(bind_text: Bind) -> None:
    found = typed(
        bind_text,
        {"a": "bigint", "c": "decimal(9,2)", "g": "float"},
        "MEASURES SUM(A.c) AS c, MAX(g) AS g, AVG(a) AS a, COUNT(*) AS n, MATCH_NUMBER() AS k, CLASSIFIER() AS v,"
        " MATCH_ROWTIME() AS w, PREV(FIRST(u.a, 1), 2) AS p AFTER MATCH SKIP TO NEXT ROW PATTERN (a b{1,2}?)"
        " WITHIN 3 SECONDS SUBSET u = (a, b)"
        " DEFINE b AS a - LAST(b.a, 1) > c AND NOT u.a BETWEEN a.a AND PREV(b.a, 3)",
    )
    spec = found.spec
    assert found.view.name == spec.view == "leat_match_0"
    assert found.view.ddl == (
        "`p0` STRING, `m0` DECIMAL(19, 2), `m1` FLOAT, `m2` DOUBLE, `m3` BIGINT, `m4` BIGINT, `m5` STRING,"
        " `m6` TIMESTAMP, `m7` BIGINT, `__leat_rowkey` BINARY, `__leat_rowtime` TIMESTAMP"
    )
    assert (spec.partitions, spec.within_ms, spec.to_next, spec.memory) == (1, 3000, True, 3)
    assert spec.term == ["sequence", [["variable", "a"], ["repeat", ["variable", "b"], 1, 2, False]]]
    a, c = spec.types.index("bigint"), spec.types.index("decimal(9,2)")
    here = ["cell", a, None, None]
    assert spec.define == {
        "b": [
            "and",
            "",
            [
                ">",
                "exact",
                ["-", "64", here, ["cell", a, [["b"], True, 1, 0], None]],
                ["cell", c, None, None],
            ],
            [
                "not",
                "",
                [
                    "and",
                    "",
                    [">=", "exact", here, ["cell", a, [["a"], True, 0, 0], None]],
                    ["<=", "exact", here, ["cell", a, [None, True, 0, 3], None]],
                ],
            ],
        ]
    }
    assert spec.measures[-1] == ["cell", a, [["a", "b"], False, 1, 2], None]
    assert spec.results["m4"] == "BIGINT"


def test_whole_values_pass_and_do_not_part(bind_text: Bind) -> None:
    """ARRAY, MAP and STRUCT are given as they are; rows are parted by what can be compared."""
    spec = typed(
        bind_text,
        {"a": "struct<x:map<string,date>>"},
        "MEASURES FIRST(a) AS x PATTERN (a b) DEFINE b AS TRUE",
    ).spec
    assert spec.results["m0"] == "STRUCT<x MAP<VARCHAR, DATE>>"
    with pytest.raises(RequestError, match="not by STRUCT"):
        typed(
            bind_text,
            {"a": "struct<x:map<string,date>>"},
            "MEASURES LAST(a) AS x PATTERN (a b) DEFINE b AS TRUE",
            by="a",
        )


@pytest.mark.parametrize(
    ("types", "clauses", "code", "word"),
    [
        ({}, "MEASURES d AS x PATTERN (a b) DEFINE a AS a", "type-mismatch", "BOOLEAN"),
        ({}, "MEASURES d AS x PATTERN (a b) DEFINE b AS a.a", "type-mismatch", "BOOLEAN"),
        ({"a": "array<int>"}, "MEASURES MIN(a) AS x PATTERN (a b) DEFINE a AS TRUE", "unsupported", "ARRAY"),
        (
            {"a": "array<int>"},
            "MEASURES d AS x PATTERN (a b) DEFINE b AS a = a.a",
            "unsupported",
            "two ARRAY",
        ),
        ({"a": "interval day"}, "MEASURES a AS x PATTERN (a b) DEFINE a AS TRUE", "unsupported", "interval"),
        (
            {"a": "variant"},
            "MEASURES a AS x PATTERN (a b) DEFINE a AS TRUE",
            "unsupported",
            "type variant has",
        ),
        ({"a": "string"}, "MEASURES SUM(a) AS x PATTERN (a b) DEFINE a AS TRUE", "type-mismatch", "VARCHAR"),
        (
            {"a": "decimal(9,2)"},
            "MEASURES AVG(a) AS x PATTERN (a b) DEFINE a AS TRUE",
            "unsupported",
            "DECIMAL",
        ),
        ({"a": "string"}, "MEASURES d AS x PATTERN (a b) DEFINE b AS c = a.a", "unsupported", "VARCHAR"),
        (
            {"a": "date", "c": "timestamp"},
            "MEASURES d AS x PATTERN (a b) DEFINE b AS c > a.a",
            "unsupported",
            "DATE",
        ),
        ({"a": "date"}, "MEASURES d AS x PATTERN (a b) DEFINE b AS a - a.a = 3", "unsupported", "two DATE"),
        ({"a": "float"}, "MEASURES d AS x PATTERN (a b) DEFINE b AS a - a.a > c", "unsupported", "FLOAT"),
        (
            {"a": "decimal(38,0)"},
            "MEASURES d AS x PATTERN (a b) DEFINE b AS a - a.a > c",
            "unsupported",
            "DECIMAL",
        ),
        (
            {"a": "decimal(38,0)", "c": "decimal(38,9)"},
            "MEASURES d AS x PATTERN (a b) DEFINE b AS c > a.a",
            "unsupported",
            "comparison",
        ),
        ({}, "MEASURES d AS x PATTERN (a b) DEFINE b AS (a.a OR c > a.c)", "type-mismatch", "OR"),
    ],
)
def test_what_it_cannot_do(
    bind_text: Bind, types: dict[str, str], clauses: str, code: str, word: str
) -> None:
    with pytest.raises(RequestError) as caught:
        typed(bind_text, types, clauses)
    assert caught.value.code == code
    assert word in caught.value.detail
    assert all(fault.position is not None for fault in caught.value.faults)
