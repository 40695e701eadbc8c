"""Results over changelogs in materialized views: real Spark, real SQLite, batch by batch.

A case of tests/fixtures/queries/changelog_views is as those of changelogs; ``expected`` are the view's rows after
each batch, of ``select`` where that is told.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from short_form import one_in
from test_changelogs import RELATIONS, Model, Run, _batch_answer, _records

from leatstream.errors import StoreError
from leatstream_jobs.changelogs.snapshot_store import SnapshotStore
from leatstream_jobs.writing.view_sink import Applier

pytestmark = pytest.mark.spark
FOLDER = Path(__file__).parents[2] / "fixtures" / "queries" / "changelog_views"
CASES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
APPLY, COMMIT = Applier.apply, SnapshotStore.commit


@pytest.mark.parametrize("name", one_in(2, CASES))
def test_case(name: str, spark: SparkSession, tmp_path: Path) -> None:
    case = CASES[name]
    run = Run(spark, tmp_path, case["sql"], case["relations"])
    select = [case["select"]] if "select" in case else []
    for number, (records, expected) in enumerate(zip(case["batches"], case["expected"], strict=True)):
        run.batch(records)
        assert run.kept(*select) == sorted(expected, key=str), f"batch {number}"
    run.stop()


def crash(*_: Any) -> None:
    raise StoreError("store-unreachable", "crash")


def crash_behind(applier: Applier, frame: Any, number: int) -> None:
    APPLY(applier, frame, number)
    crash()


@pytest.mark.long
def test_random_records_and_crashes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a batch is cut off, its repetition leaves in the view what DuckDB finds of all rows, once."""
    select = (
        "SELECT region, count(*) AS c, sum(n) AS total, max(n) AS top FROM accounts GROUP BY region"
        " HAVING count(*) < 12"
    )
    names = ("accounts",)
    run = Run(
        spark,
        tmp_path,
        f"CREATE MATERIALIZED VIEW v AS {select}",
        {name: RELATIONS[name] for name in names},
    )
    chance, model = random.Random("view"), Model()
    crashes = {
        1: (SnapshotStore, "commit", crash),
        2: (Applier, "apply", crash),
        3: (Applier, "apply", crash_behind),
    }
    for batch in range(5):
        run.give(_records(chance, batch, names, model))
        if batch in crashes:
            monkeypatch.setattr(*crashes[batch])
            with pytest.raises(Exception, match="crash"):
                run.work()
            monkeypatch.setattr(Applier, "apply", APPLY)
            monkeypatch.setattr(SnapshotStore, "commit", COMMIT)
        run.work()
        wanted = [list(row.values()) for row in _batch_answer(select, model)]
        assert run.kept() == sorted(wanted, key=str), f"batch {batch}"
    run.stop()


def test_matches_are_kept_once(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(
        spark,
        tmp_path,
        "CREATE MATERIALIZED VIEW v AS SELECT k, low, c FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY rowtime"
        " MEASURES LAST(down.n) AS low, COUNT(*) AS c ONE ROW PER MATCH PATTERN (begin down+ up) WITHIN 5 MINUTES"
        " DEFINE down AS n < PREV(n), up AS n > PREV(n)) AS m",
        {"s": {"columns": "k VARCHAR, n BIGINT"}},
    )

    def rows(*pairs: tuple[int, int]) -> dict[str, Any]:
        return {"s": [[None, {"k": "a", "n": n}, at] for at, n in pairs]}

    run.batch(rows((1, 9), (2, 5)))
    assert run.kept() == []
    run.stop()
    run.give(rows((3, 7), (60, 8)))
    monkeypatch.setattr(Applier, "apply", crash_behind)
    with pytest.raises(Exception, match="crash"):
        run.work()
    monkeypatch.setattr(Applier, "apply", APPLY)
    run.work()
    assert run.kept() == [["a", 5, 3]]
    run.batch(rows((61, 6), (62, 9), (200, 9)))
    run.stop()
    assert run.kept() == [["a", 5, 3], ["a", 6, 3]]
