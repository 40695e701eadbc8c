"""Every example of the function table, run by a real Spark through our own grammar and encoder.

Rewrite the results with ``LEATSTREAM_REWRITE_CORPUS=1`` and read the difference.
"""

from __future__ import annotations

import json as plain_json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from leatstream.formats import json_writing
from leatstream.model.types import from_spark
from leatstream.plan.job_spec import ColumnSpec
from leatstream.plan.logical import LogicalPlan
from leatstream.sql import function_table
from leatstream.sql.function_page import ROWS
from leatstream.sql.function_table import ROW, Function, table
from leatstream.sql.views import view_schema
from leatstream_jobs.analysis.analyze import analyze

pytestmark = [pytest.mark.spark, pytest.mark.core]
CHUNK = 60
EXAMPLES = [(f, example, result) for f in table() for example, result in f.examples]
SCALARS = [e for e in EXAMPLES if not e[0].aggregate]
GROUPS = [SCALARS[at : at + CHUNK] for at in range(0, len(SCALARS), CHUNK)]
AGGREGATES = [e for e in EXAMPLES if e[0].aggregate]
Bind = Callable[[str], LogicalPlan]


def results(spark: Any, plan: LogicalPlan, rows: list[tuple[Any, ...]], count: int) -> list[str]:
    """The first ``count`` output columns of one row, each as the JSON value that a sink would get."""
    view = view_schema(plan.scans[0])
    answer = analyze(spark, [asdict(view)], plan.sql)
    assert "failure" not in answer, answer
    spark.createDataFrame(rows, view.ddl).createOrReplaceTempView(view.name)
    frame = spark.sql(plan.sql)
    written = []
    for index, field in enumerate(frame.schema.fields[:count]):
        kind = str(from_spark(field.dataType.simpleString()))
        written.append(
            json_writing.encode([ColumnSpec(name="v", type=kind)], [frame[index]]).alias(f"j{index}")
        )
    (row,) = frame.select(*written).collect()
    return [plain_json.dumps(plain_json.loads(text)["v"], ensure_ascii=False) for text in row]


def scalars(spark: Any, bind_text: Bind, group: list[tuple[Function, str, str]]) -> list[str]:
    items = ", ".join(f"{example} AS e{i}" for i, (_, example, _) in enumerate(group))
    plan = bind_text(f"SELECT {items} FROM pageviews")
    return results(spark, plan, [(1, "u", "p", None, None, None)], len(group))


def aggregates(spark: Any, bind_text: Bind, group: list[tuple[Function, str, str]]) -> list[str]:
    from datetime import UTC, datetime

    items = ", ".join(f"{example} AS e{i}" for i, (_, example, _) in enumerate(group))
    plan = bind_text(f"CREATE CHANGELOG c AS SELECT {items}, g FROM examples GROUP BY g")
    times = [datetime(2026, 1, 1, 0, minute, tzinfo=UTC) for minute in range(len(ROWS))]
    rows = [("g", *row, time, None, None) for row, time in zip(ROWS, times, strict=True)]
    return results(spark, plan, rows, len(group))


@pytest.mark.parametrize("group", GROUPS, ids=[f"{g[0][0].name}-{g[-1][0].name}" for g in GROUPS])
def test_scalar_examples(spark: Any, bind_text: Bind, group: list[tuple[Function, str, str]]) -> None:
    found = scalars(spark, bind_text, group)
    wrong = [(e, f, r) for (_, e, r), f in zip(group, found, strict=True) if f != r]
    assert wrong == []


def test_aggregate_examples(spark: Any, bind_text: Bind) -> None:
    found = aggregates(spark, bind_text, AGGREGATES)
    wrong = [(e, f, r) for (_, e, r), f in zip(AGGREGATES, found, strict=True) if f != r]
    assert wrong == []


def test_every_function_has_an_example() -> None:
    assert [f.name for f in table() if not f.examples and f.category != ROW] == []


if os.environ.get("LEATSTREAM_REWRITE_CORPUS"):

    def test_rewrite(spark: Any, bind_text: Bind) -> None:
        found = [r for group in GROUPS for r in scalars(spark, bind_text, group)]
        found += aggregates(spark, bind_text, AGGREGATES)
        path = Path(function_table.__file__).with_name("function_list.txt")
        text = path.read_text(encoding="utf-8")
        for (_, example, old), new in zip([*SCALARS, *AGGREGATES], found, strict=True):
            before = f"\n  {example} => {old}\n" if old else f"\n  {example}\n"
            assert before in text, example
            text = text.replace(before, f"\n  {example} => {new}\n", 1)
        path.write_text(text, encoding="utf-8")
