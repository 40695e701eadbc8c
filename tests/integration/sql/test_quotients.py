"""``/`` over two whole numbers gives a whole number of the wider type, wherever a query may have it."""

from __future__ import annotations

from typing import Any

import pytest
from spark_analyzer import SparkAnalyzer, typed
from sql_catalog import resolve

from leatstream.plan.logical import AnalysisFailure, AnalyzedColumn, LogicalPlan
from leatstream.sql.binder import bind
from leatstream.sql.parser import parse
from leatstream.sql.passes.quotients import Settled
from leatstream.sql.statements import Select
from leatstream.sql.views import view_schema

pytestmark = pytest.mark.spark

# Expressions over ``kinds``, and Spark's type of each.
TYPES = [
    ("n / n", "int"),
    ("n / big", "bigint"),
    ("big / n", "bigint"),
    ("7 / 2", "int"),
    ("NULL / n", "int"),
    ("CAST(n AS TINYINT) / CAST(n AS SMALLINT)", "smallint"),
    ("n / n / n", "int"),
    ("1 - n / (n / 2) * -n / 2 + big", "bigint"),
    ("n / 2.0", "decimal(17,6)"),
    ("n / 2.0 / n", "decimal(28,17)"),
    ("amount / n", "decimal(21,13)"),
    ("x / n", "double"),
    ("n / 2e0", "double"),
    ("n / 2 / x", "double"),
    ("x / (n / 2)", "double"),
    ("n DIV 2", "bigint"),
    ("CASE WHEN n / 2 = 3 THEN n / 4 END", "int"),
    ("COALESCE(n / 2, big / 2)", "bigint"),
    ("NULLIF(n / 2, 0)", "int"),
    ("ARRAY[n / 2, 3]", "array<int>"),
    ("n / 2 IN (1, 2) AND n / 2 BETWEEN 1 AND n / 3", "boolean"),
    ("TRY_DIVIDE(n, 2)", "int"),
    ("TRY_DIVIDE(big + 1, n / 2)", "bigint"),
    ("TRY_DIVIDE(amount, n)", "decimal(21,13)"),
    ("CAST((at - local) / 2 AS VARCHAR)", "string"),
]


def planned(spark: Any, text: str) -> LogicalPlan:
    (statement,) = parse(text)
    assert isinstance(statement, Select)
    grouped = statement.select.args.get("group") is not None

    def bound(settled: Settled) -> LogicalPlan:
        return bind(statement.select.copy(), resolve, text, changelog=grouped, settled=settled)

    return typed(spark, bound)


def columns(spark: Any, plan: LogicalPlan) -> dict[str, str]:
    views = [view_schema(scan) for scan in plan.scans]
    if plan.matches is not None:
        views.append(plan.matches.view)
    found = SparkAnalyzer(spark).analyze(views, plan.sql, 0.0)
    assert not isinstance(found, AnalysisFailure), found.message
    return {column.name: column.type for column in found if isinstance(column, AnalyzedColumn)}


def test_types(spark: Any) -> None:
    """All at once: also that one quotient's answer is not another's."""
    text = "SELECT " + ", ".join(f"{value} AS c{i}" for i, (value, _) in enumerate(TYPES)) + " FROM kinds"
    found = columns(spark, planned(spark, text))
    assert [(value, found[f"c{i}"]) for i, (value, _) in enumerate(TYPES)] == TYPES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT n / 2 AS a FROM kinds GROUP BY n / 2 HAVING sum(n) / count(*) > n / 2 / 2", {"a": "int"}),
        (
            "SELECT k, sum(n) / count(*) AS a, avg(n / 2) AS b FROM kinds GROUP BY k",
            {"a": "bigint", "b": "double"},
        ),
        (
            "SELECT k, GROUPING_ID() AS g, count(*) / 2 AS a FROM kinds GROUP BY ROLLUP (k) HAVING count(*) / 2 > 1",
            {"a": "bigint"},
        ),
        (
            "WITH w AS (SELECT n / 2 AS half, at FROM kinds) SELECT a.half / 3 AS a FROM w a"
            " JOIN w b WITHIN 5 MINUTES ON a.half / 2 = b.half / 2 WHERE a.half / 5 > 1",
            {"a": "int"},
        ),
        (
            "SELECT * FROM kinds MATCH_RECOGNIZE (PARTITION BY k ORDER BY rowtime"
            " MEASURES a.n / 2 AS half, SUM(b.n) / COUNT(b.n) AS mean PATTERN (a b+) WITHIN 1 MINUTE"
            " DEFINE b AS n / 2 > 1 AND n > a.n / LAST(b.n) / 2)",
            {"k": "string", "half": "int", "mean": "bigint"},
        ),
    ],
)
def test_clauses(spark: Any, text: str, expected: dict[str, str]) -> None:
    plan = planned(spark, text)
    found = columns(spark, plan)
    assert {name: found[name] for name in expected} == expected
    assert " / " not in plan.sql
    assert plan.pattern is None or " / " not in plan.pattern.input
