"""Outer interval joins: a record without a match comes out once its time is over, and the state stays small."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from small_api import Pool

COLUMNS = "id BIGINT, v VARCHAR, ts BIGINT"
OUT = "id BIGINT, v VARCHAR, w VARCHAR"
INTERVAL = "INTERVAL 300000 MILLISECONDS"
# As the compiler writes it: of a FULL JOIN either side may be missing.
LEFT = f"""SELECT a.id, a.v, b.v AS w, a.__leat_rowkey, a.__leat_rowtime
FROM leat_src_0 a LEFT OUTER JOIN leat_src_1 b ON a.id = b.id
AND b.__leat_rowtime >= a.__leat_rowtime - {INTERVAL} AND b.__leat_rowtime <= a.__leat_rowtime + {INTERVAL}"""
FULL = (
    LEFT.replace("LEFT OUTER", "FULL OUTER")
    .replace("a.id, a.v,", "coalesce(a.id, b.id) AS id, a.v,")
    .replace("a.__leat_rowkey,", "coalesce(a.__leat_rowkey, b.__leat_rowkey) AS __leat_rowkey,")
    .replace("a.__leat_rowtime\n", "coalesce(a.__leat_rowtime, b.__leat_rowtime) AS __leat_rowtime\n")
)
START = 1_700_000_000_000
HOUR = 3_600_000

Row = tuple[int, str | None, str | None]


def _millis(watermark: str) -> float:
    return datetime.fromisoformat(watermark).timestamp() * 1000


@pytest.mark.parametrize(
    ("kind", "sql"), [pytest.param("left", LEFT, marks=pytest.mark.long), ("full", FULL)]
)
def test_an_outer_join_tells_what_had_no_match(
    pool: Pool, job: Any, topic: Callable[..., str], produce: Any, rows: Any, kind: str, sql: str
) -> None:
    left, right, sink = topic(1), topic(1), topic(1)
    scans = [
        {"entity": entity, "columns": COLUMNS, "timestamp": "ts", "watermark_delay_ms": 1000}
        for entity in (left, right)
    ]
    driver = pool.take()
    pool.prepare()
    driver.run(job(scans, sink, sql, OUT))

    def at(time: int, value: str, *numbers: int) -> list[dict[str, Any]]:
        return [{"id": number, "v": value, "ts": time} for number in numbers]

    # 0-49 have both sides, 50-99 only the left one, 100-149 only the right one; 7 comes a second time, too far
    # off to match.
    produce(left, *at(START, "l", *range(100)))
    produce(right, *at(START + 60_000, "r", *range(50), *range(100, 150)), *at(START + 400_000, "far", 7))
    pairs: set[Row] = {(number, "l", "r") for number in range(50)}
    driver.wait_progress(lambda p: p["input_rows_total"] >= 201)
    # Matches come at once, the others not before it is certain that nothing will match them.
    assert {_row(r) for r in rows(sink, 50)} == pairs

    for hour in (1, 2):
        later = START + hour * HOUR
        produce(left, *at(later, "l", 1000 + hour))
        produce(right, *at(later, "r", 1000 + hour))
        driver.wait_progress(lambda p, t=later: p["watermark"] and _millis(p["watermark"]) >= t - 1000)
        pairs.add((1000 + hour, "l", "r"))
    alone: set[Row] = {(number, "l", None) for number in range(50, 100)}
    if kind == "full":
        alone |= {(number, None, "r") for number in range(100, 150)} | {(7, None, "far")}
    found = [_row(r) for r in rows(sink, len(pairs | alone))]
    assert sorted(found, key=str) == sorted(pairs | alone, key=str)
    driver.wait_progress(lambda p: p["state_rows"] <= 10)

    # Behind the watermark: neither a match nor a record without one, and the query goes on.
    before = driver.last["progress"]["input_rows_total"]
    produce(left, *at(START, "late", 5, 60))
    produce(right, *at(START, "late", 5, 110))
    driver.wait_progress(lambda p: p["input_rows_total"] >= before + 4)
    produce(left, *at(later + 1, "l", 2000))
    produce(right, *at(later + 1, "r", 2000))
    pairs.add((2000, "l", "r"))
    found = [_row(r) for r in rows(sink, len(pairs | alone))]
    assert sorted(found, key=str) == sorted(pairs | alone, key=str)
    assert driver.last["progress"]["state_rows"] <= 10
    pool.give_back(driver)


def _row(record: dict[str, Any]) -> Row:
    return record["id"], record.get("v"), record.get("w")
