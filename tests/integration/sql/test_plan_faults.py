"""What Spark's analyzer lets pass and what would end the query, or be wrong, at run time: refused at plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from leatstream.errors import RequestError
from leatstream.plan.logical import AnalysisFailure, LogicalPlan
from leatstream.sql.analysis import explain_failure
from leatstream.sql.views import view_schema
from leatstream_jobs.analysis.analyze import analyze

pytestmark = [pytest.mark.spark, pytest.mark.core]
Bind = Callable[[str], LogicalPlan]
TEXT, TIME, CONSTANT = "type-mismatch", "type-mismatch", "not-computable"


def refusal(spark: Any, bind_text: Bind, text: str) -> RequestError | None:
    """The error of a query; None if it may run."""
    plan = bind_text(text)
    views = [asdict(view_schema(scan)) for scan in plan.scans]
    answer = analyze(spark, views, plan.sql)
    if "failure" not in answer:
        return None
    return explain_failure(plan, AnalysisFailure.read(answer["failure"]))


def marked(error: RequestError, text: str) -> list[str | None]:
    """What each fault points at in the user's text."""
    places = [fault.position for fault in error.faults]
    return [text[p.offset : p.offset + p.length] if p is not None else None for p in places]


# An expression over ``kinds``, what the fault points at, and a piece of its hint.
TEXTS = [
    ("COALESCE(n, 'none')", "'none'", "Write it as BIGINT"),
    ("CASE WHEN ok THEN n ELSE k END", "k", "CAST(k AS BIGINT)"),
    ("k = 5", "k", "CAST(k AS BIGINT)"),
    ("5 <> k", "k", "TRY_CAST(k AS BIGINT)"),
    ("n = '5'", "'5'", "Write it as BIGINT"),
    ("k IN (1, 2)", "k", "CAST(k AS BIGINT)"),
    ("n IN (1, k)", "k", "CAST(k AS BIGINT)"),
    ("n BETWEEN 1 AND k", "k", "CAST(k AS BIGINT)"),
    ("k BETWEEN 1 AND 2", "k", "CAST(k AS BIGINT)"),
    ("NULLIF(n, k)", "k", "CAST(k AS BIGINT)"),
    ("IF(ok, n, k)", "k", "CAST(k AS BIGINT)"),
    ("k + 1", "k", "CAST(k AS BIGINT)"),
    ("n % k", "k", "CAST(k AS BIGINT)"),
    ("-k", "k", "CAST(k AS DOUBLE)"),
    ("amount > k", "k", "CAST(k AS "),
    ("ROUND(k)", "k", "CAST(k AS DOUBLE)"),
    ("POWER(k, 2)", "k", "CAST(k AS DOUBLE)"),
    ("ARRAY[1, k]", "k", "CAST(k AS BIGINT)"),
    ("MAP['a', 1, k, 2][n]", None, None),
    ("CONCAT(names, ARRAY[1])", "names", "CAST(names AS BIGINT)"),
    ("ok = k", "k", "CAST(k AS BOOLEAN)"),
    ("k AND ok", "k", "CAST(k AS BOOLEAN)"),
    ("at > k", "k", "CAST(k AS TIMESTAMP_LTZ)"),
    ("day = k", "k", "CAST(k AS DATE)"),
    ("YEAR(k)", "k", "CAST(k AS DATE)"),
    ("DATE_ADD(k, 1)", "k", "CAST(k AS DATE)"),
    ("SUBSTRING(k, k)", "k", "CAST(k AS INTEGER)"),
    ("REPEAT(k, UPPER(k))", "UPPER(k)", "CAST(… AS INTEGER)"),
    # Refused by Spark itself.
    ("GREATEST(n, k)", "GREATEST(n, k)", "CAST(… AS VARCHAR)"),
    ("names[k]", "names[k]", None),
]
TIMES = [
    ("CAST(big AS TIMESTAMP_LTZ)", "TO_TIMESTAMP_LTZ(big, 3)"),
    ("TRY_CAST(n AS TIMESTAMP_LTZ)", "TO_TIMESTAMP_LTZ(n, 3)"),
    ("CAST(x AS TIMESTAMP_LTZ)", "TO_TIMESTAMP_LTZ(x, 3)"),
    ("CAST(amount AS TIMESTAMP_LTZ)", "TO_TIMESTAMP_LTZ(amount, 3)"),
    ("CAST(big + 1 AS TIMESTAMP_LTZ)", "TO_TIMESTAMP_LTZ(…, 3)"),
    ("CAST(ARRAY[big] AS ARRAY<TIMESTAMP_LTZ>)", "TO_TIMESTAMP_LTZ(…, 3)"),
    ("CAST(big AS TIMESTAMP)", "TO_TIMESTAMP_LTZ("),
    ("CAST(n AS DATE)", "DATE_FROM_UNIX_DATE("),
    ("CAST(at AS BIGINT)", "UNIX_MILLIS(at)"),
    ("CAST(at AS DOUBLE)", "UNIX_MILLIS(at)"),
    ("CAST(local AS BIGINT)", "UNIX_MILLIS(CAST("),
    ("CAST(day AS INTEGER)", "UNIX_DATE("),
    ("at > 5", None),
    ("at = big", None),
]
CONSTANTS = [
    "DATE_FORMAT(at, 'YYYY-MM-dd')",
    "DATE_FORMAT(at, 'bad')",
    "DATE_FORMAT(at, 'yyyy-MM-dd''T')",
    "TO_TIMESTAMP(k, 'YYYY')",
    "TO_DATE(k, 'dd.MM.uuuu.QQQQQQ')",
    "UNIX_TIMESTAMP(k, 'YYYY')",
    "FROM_UNIXTIME(big, 'YYYY')",
    "k RLIKE '('",
    "'a' RLIKE '('",
    "REGEXP(k, 'a{')",
    "REGEXP_LIKE(k, '*')",
    "REGEXP_REPLACE(k, '[', 'x')",
    "REGEXP_EXTRACT(k, '(a', 1)",
    "REGEXP_EXTRACT_ALL(k, '(a')",
    "REGEXP_EXTRACT(k, 'a(b)', 2)",
    "REGEXP_EXTRACT(k, 'a(b)', -1)",
    "REGEXP_EXTRACT_ALL(k, 'a(?:b)', 1)",
    "REGEXP_COUNT(k, '(')",
    "REGEXP_INSTR(k, '(')",
    "REGEXP_SUBSTR(k, '(')",
    "SPLIT(k, '[')",
    "STR_TO_MAP(k, '(', ':')",
    "k LIKE 'a!b' ESCAPE '!'",
    "k ILIKE 'a!' ESCAPE '!'",
    "CAST('2026-02-30' AS DATE)",
    "CAST('x' AS INTEGER)",
    "CAST('' AS DOUBLE)",
    "CAST('maybe' AS BOOLEAN)",
    "CAST('25:00' AS TIMESTAMP)",
    "CAST(UPPER('x') AS INTEGER)",
    "CAST(300 AS TINYINT)",
    "CAST(99999999999 AS INTEGER)",
    "CAST(12345 AS DECIMAL(4, 2))",
    "TO_TIMESTAMP('2026-02-30')",
    "TO_DATE('30.02.2026', 'dd.MM.yyyy')",
    "day = '2026-02-30'",
    "at > 'yesterday'",
    "n / 0",
    "x / 0",
    "n % 0",
    "MOD(n, 0)",
    "1 / 0",
    "2147483647 + 1",
    "9223372036854775807 * 2",
    "CONVERT_TZ(k, 'UTC', 'No/Where')",
    "CONVERT_TIMEZONE('No/Where', 'UTC', local)",
    "DECODE(raw, 'no-such-set')",
    "ENCODE(k, 'no-such-set')",
    "ELEMENT_AT(names, 0)",
    "SPLIT_PART(k, ',', 0)",
    "MAKE_DATE(n, 13, 1)",
    "MAKE_DATE(2026, 2, 30)",
    "DATE_TRUNC('FOO', at)",
    "TRUNC(day, 'FOO')",
    "SHA2(k, 17)",
    "CONV(k, 10, 99)",
    "NEXT_DAY(day, 'someday')",
    "FORMAT_STRING('%q', n)",
    "FORMAT_STRING('%d', k)",
    "TIMESTAMPADD(YEAR, 999999999, at)",
]
RIGHT = [
    "CONCAT(n, 'x')",
    "n || k",
    "UPPER(n)",
    "k LIKE n",
    "k LIKE 'C:\\Users%'",
    "k LIKE k || '\\%'",
    "SHA2(k, 256)",
    "MD5(k)",
    "BASE64(k)",
    "COALESCE(CAST(n AS VARCHAR), 'none')",
    "CAST(k AS INTEGER) = 5",
    "TRY_CAST('x' AS INTEGER)",
    "COALESCE(n, NULL)",
    "n = x",
    "n IN (1, big, 2.5)",
    "at > '2026-01-01'",
    "at > '2026-01-01 12:30:00'",
    "day BETWEEN '2026-01-01' AND '2026-12-31'",
    "at > day",
    "DATE_FORMAT(at, 'yyyy-MM-dd''T''HH:mm')",
    "TO_DATE(k, 'dd.MM.yyyy')",
    "TO_TIMESTAMP(k)",
    "TO_TIMESTAMP_LTZ(big, 3)",
    "UNIX_MILLIS(at)",
    "CAST(at AS DATE)",
    "CAST(day AS TIMESTAMP)",
    "CAST(at AS VARCHAR)",
    "CAST(k AS TIMESTAMP_LTZ)",
    "TO_NUMBER(k, '999')",
    "FROM_UNIXTIME(big, 'yyyy')",
    "CASE WHEN n = 0 THEN 0 ELSE 10 / n END",
    "MAKE_DATE(2026, 2, n)",
    "n + 2147483647",
    "ELT(n, 'a', 'b')",
    "names[n]",
    "REGEXP_EXTRACT(k, '([a-z]+)-([0-9]+)', 2)",
    "REGEXP_EXTRACT(k, 'ab')",
    "REGEXP_EXTRACT(k, k, 3)",
    "REGEXP_EXTRACT(k, '(a)', n)",
    "SPLIT_INDEX(k, '|', 1)",
    "TRY_DIVIDE(n, 0)",
    "RAND() > 0.5",
    "CURRENT_TIMESTAMP > at",
    "ELEMENT(names)",
    "UUID()",
    "URL_DECODE(k)",
    "JSON_VALUE(k, '$.a')",
    "n NOT BETWEEN 1 AND 2",
    "SPLIT_INDEX(k, '|', -1)",
    "CASE WHEN 1 = 2 THEN 1 / 0 ELSE n END",
    "IF(1 = 1, n, 1 / 0)",
]
# Nothing large or slow is computed only to look for faults.
DEAR = [
    "UPPER(REPEAT('x', 2000000000))",
    "LPAD(k, 2000000000, ' ')",
    "LPAD('x', 2000000000, ' ')",
    "SPACE(2000000000)",
    "LPAD(X'00', 2000000000, X'00')",
    "CASE WHEN UPPER(REPEAT('x', 2000000000)) = 'x' THEN 1 END",
    "CARDINALITY(SEQUENCE(1, 2000000000))",
    "FORMAT_STRING('%2000000000d', n)",
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!' RLIKE '(a+)+$'",
    "REPLACE(REPEAT('x', 100000), 'x', REPEAT('y', 100000))",
]


@pytest.mark.parametrize(("expression", "place", "hint"), TEXTS)
def test_text_is_not_converted_by_itself(
    spark: Any, bind_text: Bind, expression: str, place: str | None, hint: str | None
) -> None:
    text = f"SELECT n,\n  {expression} AS v FROM kinds"
    error = refusal(spark, bind_text, text)
    assert error is not None
    assert error.code == TEXT, error.detail
    assert place is None or marked(error, text)[0] == place
    assert hint is None or hint in (error.faults[0].hint or "")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT n FROM kinds UNION ALL SELECT k FROM kinds", "k"),
        ("SELECT k FROM kinds UNION ALL SELECT n FROM kinds", "k"),
        ("SELECT a.n FROM kinds a JOIN users u WITHIN 5 MINUTES ON a.big = u.userid", "u.userid"),
        (
            "SELECT a.n FROM kinds a FULL JOIN users u WITHIN 5 MINUTES ON a.k = u.userid AND a.big = u.gender",
            "u.gender",
        ),
        ("SELECT a.n FROM kinds a JOIN accounts u ON a.big = u.id", "u.id"),
        ("SELECT a.n FROM kinds a LEFT JOIN makers m ON a.big = m.id", "m.id"),
        ("SELECT n FROM kinds WHERE ok AND k = 5", "k"),
        (
            "SELECT k, window_start, window_end, SUM(n) AS s FROM TUMBLE(kinds, SIZE 5 MINUTES) GROUP BY k, window_start, window_end HAVING SUM(n) > k",
            "SUM(n) > k",
        ),
        (
            "SELECT n, window_start, window_end, SUM(k) AS s FROM TUMBLE(kinds, SIZE 5 MINUTES) GROUP BY n, window_start, window_end",
            "k",
        ),
        ("SELECT v FROM (SELECT COALESCE(n, k) AS v FROM kinds) AS i WHERE v > 1", "k"),
        ("WITH i AS (SELECT n + k AS v FROM kinds) SELECT v FROM i", "k"),
        ("SELECT n FROM kinds, UNNEST(names) AS u(name) WHERE name = n", "name"),
    ],
)
def test_text_beside_numbers_is_refused_wherever_it_stands(
    spark: Any, bind_text: Bind, text: str, place: str
) -> None:
    error = refusal(spark, bind_text, text)
    assert error is not None
    assert error.code == TEXT, error.detail
    assert marked(error, text)[0] == place
    assert "leat_" not in error.detail + str(error.faults[0].hint)


@pytest.mark.parametrize(("expression", "hint"), TIMES)
def test_numbers_are_no_times(spark: Any, bind_text: Bind, expression: str, hint: str | None) -> None:
    text = f"SELECT n, {expression} AS v FROM kinds"
    error = refusal(spark, bind_text, text)
    assert error is not None
    assert error.code == TIME
    assert marked(error, text) == [expression]
    assert hint is None or hint in (error.faults[0].hint or "")


@pytest.mark.parametrize("expression", CONSTANTS)
def test_constants_that_cannot_work(spark: Any, bind_text: Bind, expression: str) -> None:
    for text in (
        f"SELECT n,\n {expression} AS v FROM kinds",
        f"SELECT CASE WHEN ok THEN {expression} END AS v FROM kinds",
    ):
        error = refusal(spark, bind_text, text)
        assert error is not None
        assert error.code == CONSTANT, error.detail
        assert error.sqlstate.startswith("22")
        assert "spark" not in error.detail.lower() + str(error.faults[0].hint)
        (place, *_) = marked(error, text)
        assert place is not None
        assert place in expression or expression in place


@pytest.mark.parametrize("expressions", [RIGHT, DEAR])
def test_what_works_may_run(spark: Any, bind_text: Bind, expressions: list[str]) -> None:
    items = ", ".join(f"{expression} AS v{i}" for i, expression in enumerate(expressions))
    text = f"SELECT {items} FROM kinds"
    error = refusal(spark, bind_text, text)
    assert error is None, [(f.detail, m) for f, m in zip(error.faults, marked(error, text), strict=True)]


def test_all_faults_at_once_and_in_order(spark: Any, bind_text: Bind) -> None:
    text = "SELECT k + 1 AS a, CAST(big AS TIMESTAMP_LTZ) AS b,\n n / 0 AS c FROM kinds WHERE k RLIKE '('"
    error = refusal(spark, bind_text, text)
    assert error is not None
    assert sorted(marked(error, text), key=lambda m: text.index(m or "")) == [
        "k",
        "CAST(big AS TIMESTAMP_LTZ)",
        "n / 0",
        "k RLIKE '('",
    ]
    assert [fault.code for fault in error.faults].count("not-computable") == 2
