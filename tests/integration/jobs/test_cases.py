"""Statements of tests/fixtures/queries/<topic>/ on real Spark: what each batch of records writes.

With ``LEATSTREAM_REWRITE_CASES=1 LEATSTREAM_TESTS=long`` the outcomes are written down instead: read the difference.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from short_form import one_in
from statement_cases import ordered, run_case

pytestmark = [pytest.mark.spark, pytest.mark.core]
FOLDER = Path(__file__).parents[2] / "fixtures" / "queries"
TOPICS = ("windows", "grouping", "distinct", "unnest", "select", "joins")
PATHS = {f"{topic}/{p.stem}": p for topic in TOPICS for p in sorted((FOLDER / topic).glob("*.json"))}
REWRITE = bool(os.environ.get("LEATSTREAM_REWRITE_CASES"))


@pytest.mark.parametrize("name", one_in(6, PATHS))
def test_case(name: str, spark: SparkSession, job: Callable[..., Any], tmp_path: Path) -> None:
    case = json.loads(PATHS[name].read_text(encoding="utf-8"))
    found, after, dropped = run_case(spark, case, job, tmp_path)
    if REWRITE:
        PATHS[name].write_text(_written(case | {"expected": found, "after": after, "dropped": dropped}))
        return
    for number, (got, expected) in enumerate(zip(found, case["expected"], strict=True)):
        assert ordered(got) == ordered(expected), f"batch {number}"
    assert ordered(after) == ordered(case["after"]), "after the last batch"
    assert dropped == case["dropped"]


def _written(case: dict[str, Any]) -> str:
    """The case with one record per line."""

    def lines(items: list[Any], indent: str) -> str:
        texts = sorted(json.dumps(item, ensure_ascii=False) for item in items)
        return "[" + ",".join(f"\n{indent}  {text}" for text in texts) + (f"\n{indent}]" if texts else "]")

    def lists(items: list[list[Any]]) -> str:
        return "[" + ",".join(f"\n    {lines(item, '    ')}" for item in items) + "\n  ]"

    parts = []
    for key, value in case.items():
        if key == "batches":
            shown = "[" + ",".join(
                "\n    [\n      " + ",\n      ".join(map(json.dumps, b)) + "\n    ]" for b in value
            )
            shown += "\n  ]"
        elif key == "expected":
            shown = lists(value)
        elif key == "after":
            shown = lines(value, "  ")
        else:
            shown = json.dumps(value, ensure_ascii=False)
        parts.append(f'  "{key}": {shown}')
    return "{\n" + ",\n".join(parts) + "\n}\n"
