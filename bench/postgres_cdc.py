"""The reader of a table's changes against a bare loop that decodes the same log.

Both read one backlog of inserts and updates from one slot. The bare loop peeks, decodes each message, makes
texts of the values and Arrow columns of 10 000 rows. The reader does all that Spark's planner and task wait
for: it peeks, decodes, makes records (JSON values and keys), leaves them in its file and reads it back.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadMaxRows
from report import Spread, conditions, keep, table

from leatstream.connectors.postgres.cdc_records import Form
from leatstream.connectors.postgres.cdc_source import ChangeStream, SourcePlan
from leatstream.connectors.postgres.pgoutput import Change, decode
from leatstream.connectors.postgres.settings import PostgresConfig

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from postgres_server import PASSWORD, postgres_server

COLUMNS = (
    ("id", "BIGINT"),
    ("name", "VARCHAR"),
    ("city", "VARCHAR"),
    ("n", "DECIMAL(12, 2)"),
    ("at", "TIMESTAMP_LTZ"),
    ("ok", "BOOLEAN"),
)
ROW = "STRUCT<" + ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS) + ">"
ENVELOPE = (("op", "VARCHAR"), ("ts_ms", "BIGINT"), ("before", ROW), ("after", ROW))
SLOT = "leat_bench_g1_0"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="rows inserted, and updated once")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="write the raw numbers here")
    options = parser.parse_args()

    print(conditions())
    with postgres_server() as server, tempfile.TemporaryDirectory() as directory:
        config = PostgresConfig(**server.config(), password=PASSWORD)
        plan = SourcePlan(
            store="pg",
            config=config,
            entity="t",
            form=Form("shop", COLUMNS, ("id",), primitive=True),
            slot=SLOT,
            publication=SLOT,
            own=SLOT,
            own_publication=True,
            first_rows=False,
            most=10_000_000,
            directory=f"{directory}/changes",
        )
        with server.connect() as connection:
            connection.execute("SET ROLE shop")
            connection.execute(
                "CREATE TABLE public.t (id bigint PRIMARY KEY, name text, city text, n numeric(12, 2),"
                " at timestamptz, ok bool)"
            )
            start = ChangeStream(plan).initialOffset()
            connection.execute(
                "INSERT INTO public.t SELECT i, 'name of ' || i, 'city ' || i %% 100, i / 3.0, now(),"
                " i %% 2 = 0 FROM generate_series(1, %s) i",
                (options.rows,),
            )
            connection.execute("UPDATE public.t SET name = name || ' later'")
        contenders: dict[str, Callable[[], int]] = {
            "bare loop": lambda: bare(plan),
            "changelog": lambda: ours(plan, start),
            "stream": lambda: ours(replace(plan, form=Form("shop", ENVELOPE)), start),
        }
        found: dict[str, dict[str, list[float]]] = {name: {"cpu": [], "wall": []} for name in contenders}
        for number in range(options.rounds + 1):
            for name, run in contenders.items() if number % 2 else reversed(list(contenders.items())):
                cpu, wall = time.process_time(), time.perf_counter()
                rows = run()
                assert rows == 2 * options.rows, (name, rows)
                if number:  # the first round warms up
                    found[name]["cpu"].append(rows / (time.process_time() - cpu))
                    found[name]["wall"].append(rows / (time.perf_counter() - wall))
    loop = found["bare loop"]
    shown: list[list[Any]] = []
    for name, rates in found.items():
        wall, cpu = (Spread.of(rates[kind]).p50 for kind in ("wall", "cpu"))
        shown.append([name, wall, wall / Spread.of(loop["wall"]).p50, cpu, cpu / Spread.of(loop["cpu"]).p50])
    print(table(["reader", "rows/s", "ratio", "rows per CPU second", "ratio"], shown))
    print("Goal: ratio >= 0.7.")
    keep(options.json, found)


def bare(plan: SourcePlan) -> int:
    """Decode the slot's log; how many rows."""
    server = plan.server()
    count, rows = 0, []
    for _, data in server.peek(server.flushed(), 0):
        message = decode(data)
        if isinstance(message, Change) and message.new is not None:
            rows.append([v.decode() if isinstance(v, bytes) else None for v in message.new])
            if len(rows) == 10_000:
                count += len(rows)
                pa.record_batch([pa.array(c) for c in zip(*rows, strict=True)], [n for n, _ in COLUMNS])
                rows = []
    server.close()
    return count + len(rows)


def ours(plan: SourcePlan, start: dict[str, Any]) -> int:
    """What Spark would be given in one batch; how many rows."""
    stream = ChangeStream(plan)
    end = stream.latestOffset(start, ReadMaxRows(plan.most))
    rows = sum(batch.num_rows for part in stream.partitions(start, end) for batch in stream.read(part))
    stream.stop()
    return rows


if __name__ == "__main__":
    main()
