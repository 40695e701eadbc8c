"""Users' functions in a real Spark: typed both ways, told when they fail, stopped in time, over windows too."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from statement_cases import META, NOW, run_case, stream

from leatstream.errors import RequestError
from leatstream.model.functions import UserFunction
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import FunctionSpec, JobSpec
from leatstream.plan.logical import AnalysisFailure, LogicalPlan
from leatstream.sql.analysis import explain_failure
from leatstream.sql.binder import bind
from leatstream.sql.parser import parse
from leatstream.sql.statements import Select
from leatstream.sql.views import view_schema
from leatstream_jobs.analysis.analyze import analyze
from leatstream_jobs.attempt.failures import chain_of, classify
from leatstream_jobs.functions.user_functions import forget, register

pytestmark = [pytest.mark.spark, pytest.mark.core]
SOURCE = inspect.cleandoc(
    """
    import datetime
    import time
    from decimal import Decimal

    def shout(text, times=1):
        return None if text is None else text.upper() * times

    def same(value):
        return value

    def kinds(a, b, c, d, e, f, g, h):
        return " ".join(type(x).__name__ for x in (a, b, c, d, e, f, g, h)) + f" {e.tzinfo}"

    def names(text):
        import os
        return " ".join(sorted(os.environ))

    def halve(number):
        part = 10
        return part // number

    def text(number):
        return str(number)

    def late(number):
        time.sleep(60)

    def stubborn(number):
        while True:
            try:
                time.sleep(60)
            except Exception:
                pass

    class Spread:
        def create(self):
            return []

        def accumulate(self, seen, value):
            return [*seen, value] if value is not None else seen

        def merge(self, one, other):
            return one + other

        def finish(self, seen):
            return max(seen) - min(seen) if seen else None
    """
)
DIGEST = hashlib.sha256(SOURCE.encode()).hexdigest()
ALL = "b BIGINT, s VARCHAR, n DECIMAL(6, 2), d DATE, z TIMESTAMP_LTZ, t TIMESTAMP, y BYTES, a ARRAY<BIGINT>"


def function(signature: str, returns: str, handler: str, *, aggregate: bool = False) -> UserFunction:
    struct = parse_type(f"STRUCT<{signature}>")
    return UserFunction(
        meta=META,
        name=f"my_{handler.lower()}",
        arguments=tuple(Column(n, k) for n, k in zip(struct.fields, struct.arguments, strict=True)),
        returns=parse_type(returns),
        source="mine",
        handler=handler,
        aggregate=aggregate,
    )


FUNCTIONS = {
    f.name: f
    for f in (
        function("a VARCHAR, b INTEGER", "VARCHAR", "shout"),
        function(
            "b BIGINT, s VARCHAR, n DECIMAL(6, 2), d DATE, z TIMESTAMP_LTZ, t TIMESTAMP, y BYTES, a ARRAY<BIGINT>",
            "VARCHAR",
            "kinds",
        ),
        function("x VARCHAR", "VARCHAR", "names"),
        function("x BIGINT", "BIGINT", "halve"),
        function("x BIGINT", "BIGINT", "text"),
        function("x BIGINT", "BIGINT", "late"),
        function("x BIGINT", "BIGINT", "stubborn"),
        function("x BIGINT", "BIGINT", "Spread", aggregate=True),
    )
}


def specs(plan: LogicalPlan, timeout: int = 30) -> list[FunctionSpec]:
    return [
        FunctionSpec(
            name=use.name,
            function=use.function.name,
            arguments=[str(a.type) for a in use.function.arguments],
            returns=str(use.function.returns),
            aggregate=use.function.aggregate,
            source="mine",
            file="mine.py",
            handler=use.function.handler,
            digest=DIGEST,
            timeout_seconds=timeout,
        )
        for use in plan.functions
    ]


def compiled(text: str, columns: str = "b BIGINT, s VARCHAR", known: Any = FUNCTIONS.get) -> LogicalPlan:
    (statement,) = parse(text)
    assert isinstance(statement, Select)
    return bind(statement.select, lambda _: stream(columns, None), text, find_function=known)


def answers(
    spark: SparkSession, plan: LogicalPlan, rows: list[tuple[Any, ...]], timeout: int = 30
) -> list[Any]:
    """The first output column over these rows."""
    view = view_schema(plan.scans[0])
    hidden = (NOW, None, None)
    spark.createDataFrame([(*row, *hidden) for row in rows], view.ddl).createOrReplaceTempView(view.name)
    found = specs(plan, timeout)
    register(spark, found, {DIGEST: SOURCE}, Path("unused"))
    try:
        return [row[0] for row in spark.sql(plan.sql).collect()]
    finally:
        forget(spark, [{"name": f.name} for f in found])


def failure(spark: SparkSession, expression: str, timeout: int = 30) -> tuple[str, str | None, bool | None]:
    with pytest.raises(Exception) as caught:  # noqa: PT011  (pyspark's own classes, imported lazily)
        answers(spark, compiled(f"SELECT {expression} AS a FROM s"), [(0, "x")], timeout)
    found = classify(chain_of(caught.value), JobSpec.model_construct(sources=[], checkpoint="file:///c"))
    return found.detail, found.condition, found.retryable


def test_values_go_in_and_out_typed(spark: SparkSession) -> None:
    plan = compiled("SELECT my_shout(s, 2) AS a FROM s")
    assert answers(spark, plan, [(1, "a"), (2, None)]) == ["AA", None]
    import datetime
    from decimal import Decimal

    columns = ", ".join(part.split(" ")[0] for part in ALL.replace("6, 2", "6; 2").split(", "))
    plan = compiled(f"SELECT my_kinds({columns}) AS a FROM s", ALL)
    moment = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
    naive = datetime.datetime(2026, 1, 1, 12)
    row = (1, "x", Decimal("1.50"), datetime.date(2026, 1, 1), moment, naive, bytearray(b"x"), [1])
    assert answers(spark, plan, [row]) == ["int str Decimal date datetime datetime bytes list UTC"]


def test_functions_run_apart_from_connectors_and_without_the_environment(spark: SparkSession) -> None:
    """The others' workers have the driver's: there connectors read, perhaps with a cloud's keys."""
    import os

    (told,) = answers(spark, compiled("SELECT my_names(s) AS a FROM s"), [(1, "a")])
    assert "LEATSTREAM_DRIVER_MEMORY" in os.environ
    families = ("PYTHON", "PYSPARK", "SPARK", "LC_", "OMP_", "MALLOC_")
    known = {
        "PATH",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TZDIR",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "VIRTUAL_ENV",
        "HOME",
        "PWD",
    }
    assert [
        n for n in told.split() if not n.startswith(families) and n not in {*known, "SHLVL", "_", "OLDPWD"}
    ] == []

    def shown(batches: Any) -> Any:
        import pyarrow

        yield from (pyarrow.RecordBatch.from_pydict({"name": sorted(os.environ)}) for _ in batches)

    found = spark.range(1, numPartitions=1).mapInArrow(shown, "name string").collect()
    assert "LEATSTREAM_DRIVER_MEMORY" in {row.name for row in found}


RETURNS = [
    ("TINYINT", "1", True),
    ("DECIMAL(5, 2)", "1.25", True),
    ("DOUBLE", "CAST(1.5 AS DOUBLE)", True),
    ("VARCHAR", "'é'", True),
    ("BOOLEAN", "TRUE", True),
    ("BYTES", "X'00ff'", True),
    ("DATE", "DATE '2026-01-31'", True),
    ("TIMESTAMP", "TIMESTAMP '2026-01-31 12:00:00.5'", True),
    ("TIMESTAMP_LTZ", "TIMESTAMP_LTZ '2026-01-31 12:00:00.5'", True),
    ("ARRAY<BIGINT>", "ARRAY[CAST(1 AS BIGINT), NULL]", True),
    ("MAP<VARCHAR, INTEGER>", "MAP['a', 1]", True),
    ("STRUCT<x INTEGER, y ARRAY<VARCHAR>>", "named_struct('x', 1, 'y', ARRAY['b'])", True),
]


def test_every_type_comes_back_as_it_went_in(spark: SparkSession) -> None:
    for kind, expression, _ in RETURNS:
        same = function(f"x {kind}", kind, "same")
        plan = compiled(
            f"SELECT my_same({expression}) = {expression} AS a FROM s", known={"my_same": same}.get
        )
        if kind.startswith("MAP"):
            plan = compiled(f"SELECT my_same({expression})['a'] = 1 AS a FROM s", known={"my_same": same}.get)
        assert answers(spark, plan, [(1, "x")]) == [True], kind


def test_what_goes_wrong_is_told_without_data(spark: SparkSession) -> None:
    detail, condition, retryable = failure(spark, "my_halve(b)")
    line = SOURCE.split("\n").index("    return part // number") + 1
    assert detail == f"The function my_halve failed in line {line} of mine.py: ZeroDivisionError."
    assert (condition, retryable) == ("FUNCTION_FAILED", False)
    detail, _, _ = failure(spark, "my_text(b)")
    assert detail == "The function my_text gave str, not BIGINT."
    for name in ("my_late", "my_stubborn"):
        detail, condition, _ = failure(spark, f"{name}(b)", timeout=1)
        assert detail == f"The function {name} took longer than 1 s in one batch and was stopped."
        assert condition == "FUNCTION_TIMED_OUT"


@pytest.mark.parametrize(
    ("expression", "shown", "detail"),
    [
        ("my_halve(s)", "s", "The function takes BIGINT here, not VARCHAR."),
        ("my_halve(1.5)", "1.5", "The function takes BIGINT here, not DECIMAL(2, 1)."),
        ("my_shout(s, b)", "b", "The function takes INTEGER here, not BIGINT."),
    ],
)
def test_arguments_are_checked_at_plan(spark: SparkSession, expression: str, shown: str, detail: str) -> None:
    text = f"SELECT {expression} AS a FROM s"
    plan = compiled(text)
    views = [{"name": v.name, "ddl": v.ddl} for v in map(view_schema, plan.scans)]
    shapes = [{"name": u.name, "returns": str(u.function.returns)} for u in plan.functions]
    found = analyze(spark, views, plan.sql, shapes)
    error = explain_failure(plan, AnalysisFailure(**found["failure"]))
    position = error.faults[0].position
    assert (error.code, error.detail) == ("type-mismatch", detail)
    assert position is not None
    assert text[position.offset : position.offset + position.length] == shown
    right = compiled("SELECT my_halve(CAST(1 AS SMALLINT)) AS a, my_shout(NULL, 1) AS c FROM s")
    shapes = [{"name": u.name, "returns": str(u.function.returns)} for u in right.functions]
    kinds = [c["type"] for c in analyze(spark, views, right.sql, shapes)["columns"]]
    assert kinds[:2] == ["bigint", "string"]


def test_a_whole_number_is_taken_by_any_type_that_has_it(spark: SparkSession) -> None:
    def found(kind: str, number: str) -> Any:
        same = function(f"x {kind}", kind, "same")
        plan = compiled(f"SELECT my_same({number}) AS a FROM s", known={"my_same": same}.get)
        views = [{"name": v.name, "ddl": v.ddl} for v in map(view_schema, plan.scans)]
        shapes = [{"name": u.name, "returns": str(u.function.returns)} for u in plan.functions]
        return (analyze(spark, views, plan.sql, shapes).get("failure") or {}).get("message")

    for kind, number in (
        ("TINYINT", "-128"),
        ("DECIMAL(4, 2)", "99"),
        ("DECIMAL(4, 2)", "-7"),
        ("DOUBLE", "1"),
    ):
        assert found(kind, number) is None, (kind, number)
    for kind, number in (
        ("TINYINT", "128"),
        ("DECIMAL(4, 2)", "100"),
        ("DECIMAL(4, 2)", "b"),
        ("VARCHAR", "1"),
    ):
        assert "takes" in found(kind, number), (kind, number)


def test_an_aggregate_of_a_window(spark: SparkSession, job: Callable[..., Any], tmp_path: Path) -> None:
    sql = (
        "CREATE CHANGELOG c AS SELECT window_start, k, my_spread(n) AS spread, my_shout(k, 2) AS kk"
        " FROM TUMBLE(s, SIZE 1 MINUTE) GROUP BY window_start, window_end, k HAVING my_spread(n) IS NOT NULL"
    )
    at = "2026-01-01 00:00:{:02}".format
    case = {
        "sql": sql,
        "columns": "k VARCHAR, n BIGINT, at TIMESTAMP",
        "batches": [
            [{"k": "a", "n": 3, "at": at(5)}, {"k": "a", "n": 10, "at": at(1)}, {"k": "b", "at": at(2)}],
            [{"k": "a", "n": 1, "at": at(7)}, {"k": "b", "n": 4, "at": at(8)}],
        ],
        "find_function": FUNCTIONS.get,
        "register": lambda plan: register(spark, specs(plan), {DIGEST: SOURCE}, tmp_path),
    }
    written, _, _ = run_case(spark, case, job, tmp_path)
    rows = [sorted((v["k"], v["spread"], v["kk"]) for _, v in batch if v) for batch in written]
    assert rows == [[("a", 7, "AA")], [("a", 9, "AA"), ("b", 0, "BB")]]
    assert [[v for _, v in batch].count(None) for batch in written] == [1, 0]


def test_an_aggregate_needs_a_window() -> None:
    text = "CREATE CHANGELOG c AS SELECT s, my_spread(b) AS a FROM s GROUP BY s"
    (statement,) = parse(text)
    with pytest.raises(RequestError) as caught:
        bind(
            statement.select,  # type: ignore[attr-defined]
            lambda _: stream("b BIGINT, s VARCHAR", None),
            text,
            changelog=True,
            find_function=FUNCTIONS.get,
        )
    assert caught.value.faults[0].detail.startswith("The aggregate my_spread needs a window")
