"""What Spark's analyzer says, told in the user's terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import pytest

from leatstream.plan.logical import AnalysisFailure, LogicalPlan
from leatstream.sql.analysis import explain_failure
from leatstream.sql.views import view_schema


def failure(plan: LogicalPlan, fragment: str, condition: str, message: str, nth: int = 0) -> AnalysisFailure:
    start = -1
    for _ in range(nth + 1):
        start = plan.sql.index(fragment, start + 1)
    return AnalysisFailure(condition, message, "42K09", start, start + len(fragment) - 1, fragment)


@pytest.mark.parametrize(
    ("text", "fragment", "nth", "condition", "message", "expected"),
    [
        (
            "SELECT viewtime,\n concat(pageid, userid) AS x FROM pageviews",
            "concat(`t0`.`pageid`, `t0`.`userid`)",
            0,
            "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
            "[WRONG_NUM_ARGS.WITHOUT_SUGGESTION]"
            " The `upper` requires 1 parameters but the actual number is 2."
            " Please, refer to 'https://spark.apache.org/docs' for a fix. SQLSTATE: 42605; line 1 pos 7",
            (
                "type-mismatch",
                (2, 2),
                "concat(pageid, userid)",
                "The `upper` requires 1 parameters but the actual number is 2.",
            ),
        ),
        (
            "SELECT contact = userid AS a, contact = userid AS b FROM users",
            "`t0`.`contact` = `t0`.`userid`",
            1,
            "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
            '[DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES] Cannot resolve "(contact = userid)" due to data type'
            " mismatch: the left and right operands of the binary operator have incompatible types"
            ' ("STRUCT<a: INT>" and "STRING"). SQLSTATE: 42K09; line 1 pos 53;\n\'Project [...leat_src_0...]',
            (
                "type-mismatch",
                (1, 31),
                "contact = userid",
                "The left and right operands of the binary operator have incompatible types"
                ' ("STRUCT<a: INTEGER>" and "VARCHAR").',
            ),
        ),
        (
            "SELECT userid FROM (SELECT * FROM pageviews) s WHERE pageid",
            "SELECT",
            0,
            "SOMETHING_NEW",
            "[SOMETHING_NEW] Column `leat_src_0`.`__leat_rowtime` is odd. SQLSTATE: 42000",
            ("unsupported", (1, 1), None, "The engine cannot run this (SOMETHING_NEW)."),
        ),
        (
            "SELECT userid FROM pageviews p",
            "`leat_src_0`",
            0,
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] `t0`.`x` cannot be resolved in `leat_src_0`. SQLSTATE: 42",
            ("unknown-column", (1, 20), "pageviews", "`x` cannot be resolved in p."),
        ),
    ],
)
def test_explained(
    bind_text: Callable[[str], LogicalPlan],
    text: str,
    fragment: str,
    nth: int,
    condition: str,
    message: str,
    expected: tuple[str, tuple[int, int], str | None, str],
) -> None:
    error = explain_failure(plan := bind_text(text), failure(plan, fragment, condition, message, nth))
    code, place, shown, detail = expected
    position = error.faults[0].position
    assert position is not None
    assert (error.code, error.detail) == (code, detail)
    if shown is not None:
        assert (position.line, position.column) == place
        assert text[position.offset : position.offset + position.length] == shown


def test_a_filter_that_is_no_condition(bind_text: Callable[[str], LogicalPlan]) -> None:
    text = "SELECT userid FROM pageviews WHERE pageid"
    plan = bind_text(text)
    message = (
        '[X] Cannot resolve "pageid" due to data type mismatch: Filter expression "pageid" is not a boolean.'
    )
    whole = AnalysisFailure(
        "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", message, None, 0, len(plan.sql) - 1, plan.sql
    )
    position = explain_failure(plan, whole).faults[0].position
    assert position is not None
    assert (position.offset, position.length) == (text.index("WHERE ") + 6, 6)


def test_without_a_place(bind_text: Callable[[str], LogicalPlan]) -> None:
    error = explain_failure(bind_text("SELECT userid FROM pageviews"), AnalysisFailure("", ""))
    assert (error.code, error.faults[0].position) == ("unsupported", None)


def test_view_schema(bind_text: Callable[[str], LogicalPlan]) -> None:
    plan = bind_text('SELECT "ID" FROM "Ünï 东西"')
    schema = view_schema(plan.scans[0])
    assert schema.name == "leat_src_0"
    assert schema.ddl == (
        '`ID` INT, `Größe` DOUBLE, `q"``x` STRING, `select` BOOLEAN, `__leat_rowtime` TIMESTAMP,'
        " `__leat_rowkey` BINARY, `__leat_rowmeta`"
        " STRUCT<`topic`: STRING, `partition`: INT, `offset`: BIGINT, `timestamp_type`: INT>"
    )


def test_every_fault_of_a_plan_has_its_place_and_its_way_out(
    bind_text: Callable[[str], LogicalPlan],
) -> None:
    text = "SELECT userid + 1 AS a,\n CAST(viewtime AS TIMESTAMP_LTZ) AS b, viewtime / 0 AS c FROM pageviews"
    plan = bind_text(text)
    cast = "CAST(`t0`.`viewtime` AS TIMESTAMP)"
    divided = failure(
        plan,
        "`t0`.`viewtime` / 0",
        "CONSTANT.DIVIDE_BY_ZERO",
        "Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. If necessary"
        ' set "spark.sql.ansi.enabled" to "false" to bypass this error.',
    )
    body = {
        **asdict(failure(plan, "`t0`.`userid`", "IMPLICIT_CAST", "A VARCHAR stands where BIGINT is needed.")),
        "parameters": {"wanted": "BIGINT", "constant": "false"},
        "more": [
            {
                **asdict(failure(plan, cast, "CAST_OF_TIME", "BIGINT cannot be cast to TIMESTAMP_LTZ.")),
                "parameters": {"given": "BIGINT", "wanted": "TIMESTAMP_LTZ"},
            },
            {**asdict(divided), "sqlstate": "22012"},
            {**asdict(divided), "sqlstate": "22012", "unknown to an older server": 1},
        ],
    }
    error = explain_failure(plan, AnalysisFailure.read(body))
    assert [(f.code, f.sqlstate, f.detail, f.hint) for f in error.faults] == [
        (
            "type-mismatch",
            "42804",
            "This is VARCHAR where BIGINT is needed, and text is not converted by itself.",
            "Write CAST(userid AS BIGINT) (TRY_CAST(userid AS BIGINT) gives NULL for other text), or make the"
            " values beside it text: CAST(… AS VARCHAR).",
        ),
        (
            "type-mismatch",
            "42804",
            "BIGINT cannot be cast to TIMESTAMP_LTZ.",
            "Write TO_TIMESTAMP_LTZ(viewtime, 3) for milliseconds, TO_TIMESTAMP_LTZ(viewtime, 0) for seconds.",
        ),
        (
            "not-computable",
            "22012",
            "Division by zero.",
            "Use `try_divide` to tolerate divisor being 0 and return NULL instead.",
        ),
    ]
    places = [f.position for f in error.faults]
    assert [text[p.offset : p.offset + p.length] for p in places if p is not None] == [
        "userid",
        "CAST(viewtime AS TIMESTAMP_LTZ)",
        "viewtime / 0",
    ]
    assert error.sqlstate == "42804"
