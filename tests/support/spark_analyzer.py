"""Spark's analyzer as services ask it, in the tests' own session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any, cast

from leatstream.plan.logical import AnalysisFailure, AnalyzedColumn, FunctionShape, LogicalPlan, ViewSchema
from leatstream.services.environment import Environment
from leatstream.services.planning.analysis import typed_plan
from leatstream.sql.passes.quotients import Settled
from leatstream_jobs.analysis.analyze import analyze


class SparkAnalyzer:
    """Answers as the driver does."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark

    def analyze(
        self,
        views: Sequence[ViewSchema],
        sql: str,
        timeout: float,
        functions: Sequence[FunctionShape] = (),
        places: Sequence[tuple[int, int]] = (),
    ) -> list[AnalyzedColumn] | AnalysisFailure:
        answer = analyze(self.spark, [asdict(v) for v in views], sql, [asdict(f) for f in functions], places)
        if "failure" in answer:
            return AnalysisFailure.read(answer["failure"])
        return [AnalyzedColumn(**column) for column in answer["columns"]]


def typed(spark: Any, bound: Callable[[Settled], LogicalPlan]) -> LogicalPlan:
    """The plan with its types, as the services plan it."""
    settings = SimpleNamespace(analysis_timeout=0.0)
    env = SimpleNamespace(analyzer=SparkAnalyzer(spark), settings=settings)
    return typed_plan(cast(Environment, env), bound)
