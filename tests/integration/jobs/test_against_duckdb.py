"""Windows, groups and lists of random rows against DuckDB, which sees the same rows as one table.

Each statement runs over batches of rows in any order, with a delay that lets none be late. The last batch holds one
row of a far later time, so that every window before it closes: ``LAST`` is where a stream's results end.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession
from short_form import one_in
from statement_cases import run_case

pytestmark = pytest.mark.spark
COLUMNS = "k VARCHAR, n BIGINT, ts TIMESTAMP, tags ARRAY<VARCHAR>, marks MAP<VARCHAR, BIGINT>, items ARRAY<STRUCT<a VARCHAR, b BIGINT>>"
LAST = "2026-03-01 00:00:00"
TUMBLE = "(SELECT *, time_bucket(INTERVAL 5 MINUTES, ts, TIMESTAMP '1970-01-01') AS window_start FROM s)"
HOP = """(SELECT s.*, time_bucket(INTERVAL 5 MINUTES, ts, TIMESTAMP '1970-01-01') - to_minutes(5 * i) AS window_start
    FROM s, range(0, 4) r(i))"""
CUMULATE = """(SELECT s.*, time_bucket(INTERVAL 1 HOUR, ts, TIMESTAMP '1970-01-01') AS window_start,
    window_start + to_minutes(10 * i) AS window_end FROM s, range(1, 7) r(i) WHERE window_end > ts)"""


def session(partition: str) -> str:
    """Rows with the number of their session, GAP 4 MINUTES."""
    over = f"OVER (PARTITION BY {partition} ORDER BY ts)"
    begins = f"coalesce(ts - lag(ts) {over} > INTERVAL 4 MINUTES, TRUE)"
    return f"(SELECT *, sum(CAST(begun AS INT)) {over} AS number FROM (SELECT *, {begins} AS begun FROM s))"


# Our statement, and the same for DuckDB. A stream's windows that LAST belongs to are not closed.
STREAMS = {
    "tumble": (
        "SELECT window_start, k, count(*) AS c, sum(n) AS total, min(n) AS low, avg(n) AS mean, max(ts) AS newest"
        " FROM TUMBLE(s, SIZE 5 MINUTES) GROUP BY window_start, window_end, k",
        f"SELECT window_start, k, count(*), sum(n), min(n), avg(n), max(ts) FROM {TUMBLE} GROUP BY window_start, k",
    ),
    "hop, filtered": (
        "SELECT window_start, window_end, count(n) AS c, count_if(n > 0) AS positive"
        " FROM HOP(s, SIZE 20 MINUTES, ADVANCE BY 5 MINUTES) WHERE k <> 'a' GROUP BY window_start, window_end",
        "SELECT window_start, window_start + INTERVAL 20 MINUTES, count(n), count_if(n > 0)"
        f" FROM {HOP} WHERE k <> 'a' GROUP BY ALL",
    ),
    "cumulate": (
        "SELECT window_start, window_end, k, count(*) AS c, sum(n) AS total"
        " FROM CUMULATE(s, SIZE 1 HOUR, STEP 10 MINUTES) GROUP BY window_start, window_end, k HAVING count(*) > 2",
        f"SELECT window_start, window_end, k, count(*), sum(n) FROM {CUMULATE} GROUP BY ALL HAVING count(*) > 2",
    ),
    "session by key": (
        "SELECT k, window_start, window_end, count(*) AS c, sum(n) AS total FROM SESSION(s, GAP 4 MINUTES)"
        " GROUP BY window_start, window_end, k",
        "SELECT k, min(ts), max(ts) + INTERVAL 4 MINUTES, count(*), sum(n)"
        f" FROM {session('k')} GROUP BY k, number",
    ),
    "session of all": (
        "SELECT window_start, window_end, count(DISTINCT k) AS c FROM SESSION(s, GAP 4 MINUTES)"
        " GROUP BY window_start, window_end",
        f"SELECT min(ts), max(ts) + INTERVAL 4 MINUTES, count(DISTINCT k) FROM {session('1')} GROUP BY number",
    ),
    "window of windows": (
        "SELECT window_start, max(c) AS busiest, sum(c) AS c FROM TUMBLE((SELECT k, count(*) AS c"
        " FROM TUMBLE(s, SIZE 5 MINUTES) GROUP BY window_start, window_end, k), SIZE 1 HOUR)"
        " GROUP BY window_start, window_end",
        f"SELECT time_bucket(INTERVAL 1 HOUR, w, TIMESTAMP '1970-01-01') AS hour, max(c), sum(c) FROM"
        f" (SELECT window_start AS w, k, count(*) AS c FROM {TUMBLE} GROUP BY ALL) GROUP BY hour",
    ),
    "cube in windows": (
        "SELECT window_start, k, n % 3 AS part, GROUPING_ID(k, n % 3) AS g, count(*) AS c, COUNT(DISTINCT n) AS d"
        " FROM TUMBLE(s, SIZE 5 MINUTES) GROUP BY window_start, window_end, CUBE (k, n % 3)",
        "SELECT window_start, k, part, GROUPING_ID(k, part), count(*), count(DISTINCT n)"
        f" FROM (SELECT *, n % 3 AS part FROM {TUMBLE}) GROUP BY GROUPING SETS"
        " ((window_start, k, part), (window_start, k), (window_start, part), (window_start))",
    ),
    "distinct in windows": (
        "SELECT DISTINCT window_start, window_end, n FROM TUMBLE(s, SIZE 5 MINUTES)",
        f"SELECT DISTINCT window_start, window_start + INTERVAL 5 MINUTES, n FROM {TUMBLE}",
    ),
    "tags in windows": (
        "SELECT window_start, t.x AS tag, count(*) AS c FROM TUMBLE(s, SIZE 5 MINUTES) CROSS JOIN UNNEST(tags) AS t (x)"
        " GROUP BY window_start, window_end, t.x",
        f"SELECT window_start, tag, count(*) FROM (SELECT window_start, unnest(tags) AS tag FROM {TUMBLE}) GROUP BY ALL",
    ),
}
# These give all rows at once, those of LAST too.
PLAIN = {
    "distinct": ("SELECT DISTINCT k, n FROM s", "SELECT DISTINCT k, n FROM s"),
    "rows of hop": (
        "SELECT window_start, k, n FROM HOP(s, SIZE 20 MINUTES, ADVANCE BY 5 MINUTES)",
        f"SELECT window_start, k, n FROM {HOP}",
    ),
    "unnested twice": (
        "SELECT k, x, a, b FROM s LEFT JOIN UNNEST(tags) AS t (x) ON TRUE, UNNEST(items) AS i WHERE n > 0",
        "SELECT k, x, i.a, i.b FROM s LEFT JOIN LATERAL (SELECT unnest(tags) AS x) ON TRUE,"
        " LATERAL (SELECT unnest(items) AS i) WHERE n > 0",
    ),
    "entries of maps": (
        "SELECT n, m.name, m.v * 2 AS v FROM s CROSS JOIN UNNEST(marks) AS m (name, v)",
        "SELECT n, e.key, e.value * 2 FROM s, LATERAL (SELECT unnest(map_entries(marks)) AS e)",
    ),
}
CHANGELOGS = {
    "groups": (
        "SELECT k, count(*) AS c, sum(n) AS total, stddev(n) AS spread, count(DISTINCT n) AS d FROM s GROUP BY k",
        "SELECT k, count(*), sum(n), stddev(n), count(DISTINCT n) FROM s GROUP BY k",
    ),
    "groups having": (
        "SELECT n, count(*) AS c FROM s GROUP BY n HAVING count(*) BETWEEN 4 AND 9",
        "SELECT n, count(*) FROM s GROUP BY n HAVING count(*) BETWEEN 4 AND 9",
    ),
    "rollup": (
        "SELECT k, n, GROUPING_ID() AS g, count(*) AS c FROM s GROUP BY ROLLUP (k, n)",
        "SELECT k, n, GROUPING_ID(k, n), count(*) FROM s GROUP BY ROLLUP (k, n)",
    ),
    "cumulate": (
        "SELECT window_end, k, sum(n) AS total FROM CUMULATE(s, SIZE 1 HOUR, STEP 10 MINUTES)"
        " GROUP BY window_start, window_end, k",
        f"SELECT window_end, k, sum(n) FROM {CUMULATE} GROUP BY ALL",
    ),
}


# Of two sides of one stream, whose rows come up to 25 minutes late: none is too late for the delay of 30.
SIDES = (
    "(SELECT k, n, ts FROM s WHERE n >= 0) a {} JOIN (SELECT k, n, ts FROM s WHERE n < 0) b{} ON a.k = b.k"
)
DISTANCE = " AND b.ts >= a.ts - INTERVAL {} AND b.ts <= a.ts + INTERVAL {}"
JOINS = {
    f"{word}, {within}": (
        f"SELECT a.k, a.n, a.ts AS at, b.n AS m, b.ts AS other FROM {SIDES.format(word, f' {within}')}",
        f"SELECT a.k, a.n, a.ts, b.n, b.ts FROM {SIDES.format(word, '')}{DISTANCE.format(*bounds)}",
    )
    for word in ("INNER", "LEFT")
    for within, bounds in (
        ("WITHIN 5 MINUTES", ("5 MINUTES", "5 MINUTES")),
        ("WITHIN (BEFORE 30 SECONDS, AFTER 20 MINUTES)", ("30 SECONDS", "20 MINUTES")),
    )
}


def late_rows(chance: random.Random) -> list[list[dict[str, Any]]]:
    """Four batches that follow each other by 20 minutes, each with rows of those before, and the closing row."""
    batches = []
    for number in range(4):
        begin = datetime(2026, 1, 1, 22, 0) + timedelta(minutes=20 * number)
        times = [begin + timedelta(milliseconds=chance.randint(-25 * 60_000, 25 * 60_000)) for _ in range(40)]
        batches.append(
            [
                {
                    "k": chance.choice(["a", "b", "c", "d", None]),
                    "n": chance.randint(-5, 5),
                    "ts": at.strftime("%Y-%m-%d %H:%M:%S.%f"),
                    "tags": [],
                    "marks": {},
                    "items": [],
                }
                for at in times
            ]
        )
    return [*batches, rows(chance)[-1]]


def rows(chance: random.Random) -> list[list[dict[str, Any]]]:
    """Four batches in any order over three hours, then the row that closes all."""
    batches = []
    for _ in range(4):
        batch = []
        for _ in range(40):
            at = datetime(2026, 1, 1, 22, 0) + timedelta(milliseconds=chance.randint(0, 3 * 3_600_000))
            words = chance.sample(["x", "y", "z"], chance.randint(0, 3))
            items = [{"a": word, "b": chance.randint(0, 9)} for word in words[:2]]
            batch.append(
                {
                    "k": chance.choice(["a", "b", "c", None]),
                    "n": chance.choice([*range(-5, 6), None]),
                    "ts": at.strftime("%Y-%m-%d %H:%M:%S.%f"),
                    "tags": words if chance.random() > 0.1 else None,
                    "marks": {word: chance.randint(0, 9) for word in words},
                    "items": items,
                }
            )
        batches.append(batch)
    last = {
        "k": "last",
        "n": 0,
        "ts": LAST,
        "tags": ["last"],
        "marks": {"last": 0},
        "items": [{"a": "l", "b": 0}],
    }
    return [*batches, [last]]


def batch_answer(sql: str, records: list[dict[str, Any]]) -> list[list[Any]]:
    """DuckDB's rows."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE s (k VARCHAR, n BIGINT, ts TIMESTAMP, tags VARCHAR[], marks MAP(VARCHAR, BIGINT),"
        " items STRUCT(a VARCHAR, b BIGINT)[])"
    )
    values = [[r["k"], r["n"], r["ts"], r["tags"], r["marks"], r["items"]] for r in records]
    connection.executemany("INSERT INTO s VALUES (?, ?, ?, ?, ?, ?)", values)
    return [list(row) for row in connection.execute(sql).fetchall()]


def shown(value: Any) -> Any:
    """A value as JSON shows it, floats to nine digits."""
    if isinstance(value, datetime):
        text = value.strftime("%Y-%m-%d %H:%M:%S.%f")
        return text.rstrip("0").rstrip(".")
    if isinstance(value, Decimal):
        return int(value)
    if isinstance(value, float):
        return float(f"{value:.9g}")
    assert not isinstance(value, date)
    return value


def bag(found: list[list[Any]]) -> list[str]:
    """Rows in an order of their own."""
    return sorted(json.dumps([shown(value) for value in row]) for row in found)


@pytest.mark.parametrize("name", one_in(3, [*STREAMS, *PLAIN]))
def test_stream(name: str, spark: SparkSession, job: Callable[..., Any], tmp_path: Path) -> None:
    ours, theirs = (STREAMS | PLAIN)[name]
    batches = rows(random.Random(name))
    case = {
        "sql": f"CREATE STREAM c AS {ours}",
        "columns": COLUMNS,
        "batches": batches,
        "timestamp": "ts",
        "delay_ms": 86_400_000,
    }
    found, after, dropped = run_case(spark, case, job, tmp_path)
    assert dropped == 0
    written = [list(value.values()) for pairs in [*found, after] for _, value in pairs]
    records = [row for batch in batches[: 4 if name in STREAMS else 5] for row in batch]
    expected = batch_answer(theirs, records)
    assert len(expected) > 2
    assert bag(written) == bag(expected)


@pytest.mark.parametrize("name", one_in(3, JOINS))
def test_interval_join(name: str, spark: SparkSession, job: Callable[..., Any], tmp_path: Path) -> None:
    """Matches are found across batches and whichever side is late; an unmatched row is written once."""
    ours, theirs = JOINS[name]
    batches = late_rows(random.Random(name))
    case = {
        "sql": f"CREATE STREAM c AS {ours}",
        "columns": COLUMNS,
        "batches": batches,
        "timestamp": "ts",
        "delay_ms": 30 * 60_000,
    }
    found, after, dropped = run_case(spark, case, job, tmp_path)
    assert dropped == 0
    written = [list(value.values()) for pairs in [*found, after] for _, value in pairs]
    expected = batch_answer(theirs, [row for batch in batches[:4] for row in batch])
    assert sum(bool(pairs) for pairs in found) >= 3, "rows are written while others still come"
    assert len(expected) > 20
    assert bag(written) == bag(expected)


@pytest.mark.core
@pytest.mark.parametrize("name", one_in(3, CHANGELOGS))
def test_changelog(name: str, spark: SparkSession, job: Callable[..., Any], tmp_path: Path) -> None:
    ours, theirs = CHANGELOGS[name]
    batches = rows(random.Random(name))
    key = {"key.format": "json"}
    text = f"CREATE CHANGELOG c WITH ('key.format' = '{key['key.format']}') AS {ours}"
    case = {
        "sql": text,
        "columns": COLUMNS,
        "batches": batches,
        "timestamp": "ts",
        "delay_ms": 86_400_000 * 100,
    }
    found, after, dropped = run_case(spark, case, job, tmp_path)
    assert dropped == 0
    table = {k: value for pairs in [*found, after] for k, value in pairs}
    written = [list(value.values()) for value in table.values() if value is not None]
    expected = batch_answer(theirs, [row for batch in batches for row in batch])
    assert bag(written) == bag(expected)
