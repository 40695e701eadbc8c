"""A real Spark analyzes what the binder writes, passes strings unchanged, and bounds the joins' state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leatstream.errors import RequestError
from leatstream.plan.logical import AnalysisFailure, LogicalPlan
from leatstream.sql.analysis import explain_failure
from leatstream.sql.function_table import table
from leatstream.sql.passes.functions import ROW
from leatstream.sql.views import view_schema
from leatstream_jobs.analysis.plan_faults import plan_faults

pytestmark = [pytest.mark.spark, pytest.mark.core]
CORPUS = Path(__file__).parents[2] / "fixtures" / "sql"


def empty_views(spark: Any, plan: LogicalPlan) -> None:
    for scan in plan.scans:
        schema = view_schema(scan)
        spark.createDataFrame([], schema.ddl).createOrReplaceTempView(schema.name)


def corpus() -> list[tuple[str, str]]:
    """Every statement of the corpus that compiles."""
    found = []
    for path in sorted(CORPUS.glob("*.sql")):
        for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
            title, _, rest = block.strip("\n").partition("\n")
            text, _, expected = rest.partition("\n=>")
            if expected.lstrip().startswith("SELECT"):
                found.append((f"{path.stem}: {title}", text))
    return found


# Right for us, but the analyzer knows more: a BIGINT has no time without a zone.
REFUSED = {"expressions: -- DeltaStream's types"}


def test_the_corpus_analyzes(spark: Any, bind_text: Callable[[str], LogicalPlan]) -> None:
    refused = {}
    cases = corpus()
    assert len(cases) >= 30
    for title, text in cases:
        plan = bind_text(text)
        empty_views(spark, plan)
        try:
            if plan.pattern is not None:
                kinds = {f.name: f.dataType.simpleString() for f in spark.sql(plan.pattern.input).schema}
                matches = plan.pattern.typed([kinds[f"c{i}"] for i in range(plan.pattern.cells)]).view
                spark.createDataFrame([], matches.ddl).createOrReplaceTempView(matches.name)
            frame = spark.sql(plan.sql)
            columns = frame.columns
            analyzed = frame._jdf.queryExecution().analyzed()
            if faults := plan_faults(spark, analyzed, plan.sql):
                refused[title] = str(faults)
        except Exception as error:
            refused[title] = str(error)[:300]
            continue
        assert columns[-2:] == ["__leat_rowkey", "__leat_rowtime"]
    assert set(refused) == REFUSED, refused


def test_every_allowed_function_exists(spark: Any) -> None:
    known = {row[0] for row in spark.sql("SHOW FUNCTIONS").collect()}
    own_form = {"extract", "json_array", "json_object", "timestampadd", "timestampdiff"}
    asked = {rule for f in table() for rule in (f.rules or {None: f.name}).values()}
    assert {name for name in asked if name.isidentifier()} - own_form - ROW - known == set()


@pytest.mark.parametrize(
    "value",
    ["it's", "a\\b", "\\'; DROP --", "${env:HOME}", "$", "`", '"', "\t\n\0", "é东𝒳", "\\u0041", "%\\_"],
)
def test_strings_come_through(spark: Any, bind_text: Callable[[str], LogicalPlan], value: str) -> None:
    quoted = value.replace("'", "''")
    plan = bind_text(f"SELECT '{quoted}' AS a FROM pageviews")
    schema = view_schema(plan.scans[0])
    row = (None,) * (len(plan.scans[0].relation.columns) + 3)
    spark.createDataFrame([row], schema.ddl).createOrReplaceTempView(schema.name)
    assert spark.sql(plan.sql).first()["a"] == value


@pytest.mark.parametrize(
    ("text", "expression", "expected"),
    [
        ("a|b|c", "SPLIT_INDEX(userid, '|', 1)", "b"),
        ("a|b", "SPLIT_INDEX(userid, '|', 5)", None),
        ("xaby", "REGEXP_EXTRACT(userid, 'a(b)')", "ab"),
        ('{"k": 7}', "JSON_VALUE(userid, '$.k')", "7"),
        ("7", "TO_TIMESTAMP_LTZ(CAST(userid AS BIGINT) * 1000, 3) = TO_TIMESTAMP_LTZ(7, 0)", True),
        ("x", "ARRAY['a', 'b'][2]", "b"),
        ("x", "ARRAY['a'][3]", None),
        ("x", "MAP['k', 1]['z']", None),
        ("xxax", "TRIM(LEADING 'x' FROM userid)", "ax"),
        ("5", "CASE WHEN 1 + 2 * 3 - (4 - 1) = 4 AND NOT userid = '6' THEN 'y' END", "y"),
        ("a_b", "userid LIKE 'a!_b' ESCAPE '!' AND userid NOT LIKE 'ab'", True),
        ("C:\\Users", "userid LIKE 'C:\\Users%' AND userid LIKE 'C:\\%'", True),
        ("C:\\Users", "userid ILIKE CONCAT('c:', CHR(92), 'u%') AND userid NOT LIKE 'C:\\\\%'", True),
        ("nope", "TRY_CAST(userid AS INT) IS NOT DISTINCT FROM NULL", True),
    ],
)
def test_values(
    spark: Any, bind_text: Callable[[str], LogicalPlan], text: str, expression: str, expected: object
) -> None:
    plan = bind_text(f"SELECT {expression} AS a FROM pageviews")
    schema = view_schema(plan.scans[0])
    row = (1, text, "p", None, None, None)
    spark.createDataFrame([row], schema.ddl).createOrReplaceTempView(schema.name)
    assert spark.sql(plan.sql).first()["a"] == expected


@pytest.mark.parametrize(
    ("text", "code", "shown"),
    [
        (
            "SELECT userid,\n months_between(userid, pageid, 1) a FROM pageviews",
            "type-mismatch",
            "months_between(userid, pageid, 1)",
        ),
        ("SELECT CAST(contact AS INT) a FROM users", "type-mismatch", "CAST(contact AS INT)"),
        ("SELECT userid FROM pageviews WHERE pageid", "type-mismatch", "pageid"),
        (
            "SELECT p.pageid FROM pageviews p JOIN users u WITHIN 1 DAY ON p.userid = u.contact",
            "type-mismatch",
            "p.userid = u.contact",
        ),
        ("SELECT 1e999 a FROM pageviews", "type-mismatch", "1e999"),
        ("SELECT (CASE WHEN 1 = 1 THEN contact END)->nope a FROM users", "unknown-column", None),
    ],
)
def test_refusals_point_into_the_users_text(
    spark: Any, bind_text: Callable[[str], LogicalPlan], text: str, code: str, shown: str | None
) -> None:
    plan = bind_text(text)
    empty_views(spark, plan)
    with pytest.raises(Exception) as caught:  # noqa: PT011  (pyspark's own classes, imported lazily)
        spark.sql(plan.sql)
    context = next(iter(caught.value.getQueryContext()), None)  # type: ignore[attr-defined]
    failure = AnalysisFailure(
        condition=caught.value.getCondition(),  # type: ignore[attr-defined]
        message=str(caught.value),
        start=context.startIndex() if context else None,
        stop=context.stopIndex() if context else None,
        fragment=context.fragment() if context else None,
    )
    error = explain_failure(plan, failure)
    assert isinstance(error, RequestError)
    assert error.code == code, error.detail
    assert "leat_" not in error.detail
    assert "`t0`" not in error.detail
    position = error.faults[0].position
    if shown is not None:
        assert position is not None
        assert text[position.offset : position.offset + position.length] == shown


@pytest.mark.parametrize("kind", ["INNER", "LEFT", "FULL"])
def test_interval_joins_have_bounded_state(
    spark: Any, bind_text: Callable[[str], LogicalPlan], kind: str, tmp_path: Path, eventually: Any
) -> None:
    plan = bind_text(
        f"SELECT p.userid, u.gender FROM pageviews p {kind} JOIN users u WITHIN 5 MINUTES"
        " ON p.userid = u.userid"
    )
    for scan in plan.scans:
        schema = view_schema(scan)
        fields = spark.createDataFrame([], schema.ddl).schema.fields
        columns = [
            f"timestamp AS `{f.name}`"
            if f.name == "__leat_rowtime"
            else f"CAST(NULL AS {f.dataType.simpleString()}) AS `{f.name}`"
            for f in fields
        ]
        rate = spark.readStream.format("rate").option("rowsPerSecond", 1).load()
        rate.selectExpr(*columns).withWatermark("__leat_rowtime", "10 seconds").createOrReplaceTempView(
            schema.name
        )
    query = (
        spark.sql(plan.sql)
        .writeStream.format("noop")
        .outputMode("append")
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    try:
        # A rate source never ends: the first batch is enough.
        eventually(lambda: query.lastProgress or query.exception(), 60, "the first batch")
        assert query.exception() is None
        explained = query._jsq.explainInternal(False)
    finally:
        query.stop()
    cleanup = explained.split("state cleanup [")[1].split("]")[0]
    assert "left value predicate: (__leat_rowtime" in cleanup
    assert "right value predicate: (__leat_rowtime" in cleanup
