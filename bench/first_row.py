"""How long an interactive SELECT takes from the statement to its first row at the client, a driver warm.

The source is fed all the time. Each round waits until a warm driver is there again, sends the statement,
opens the rows as NDJSON, and leaves after the first row. A second series reads
what lies in the topic already.
"""

from __future__ import annotations

import argparse
import json
import time

from report import Spread, conditions, keep, table, verdict
from stack import STORE, BenchError, Stack, running_stack
from topics import COLUMNS, SteadyProducer, Topics

GOAL_SECONDS = 1.5
SERIES = {"the next record": "", "from the earliest": " WITH ('starting.position'='earliest')"}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--rate", type=float, default=200.0, help="source records per second")
    parser.add_argument("--json", help="write the raw numbers here")
    options = parser.parse_args()

    print(conditions())
    found: dict[str, list[dict[str, float]]] = {}
    with running_stack() as stack:
        topics = Topics(stack.kafka)
        topics.create("pageviews", 2)
        stack.sql("CREATE DATABASE bench", "bench")
        made = f"CREATE STREAM pageviews ({COLUMNS}) WITH ('topic'='pageviews', 'value.format'='json')"
        stack.sql(made, "bench")
        with SteadyProducer(stack.kafka, "pageviews", options.rate):
            for title, position in SERIES.items():
                print(title)
                found[title] = [one_round(stack, i, position) for i in range(options.rounds)]
        topics.close()
    show(found)
    print(conditions())
    keep(options.json, {"rounds": found})


def one_round(stack: Stack, number: int, position: str) -> dict[str, float]:
    """Seconds from sending the statement until it is answered and until the first row is here."""
    stack.wait_warm()
    sql = f"SELECT userid, pageid FROM pageviews{position} WHERE userid <> ''"
    body = {"sql": sql, "database": "bench", "schema": "public", "store": STORE}
    began = time.monotonic()
    answer = stack.call("POST", "/v1/statements", json=body)
    answered = time.monotonic() - began
    with stack.http.stream("GET", answer["results"][-1]["rows"]) as rows:
        for line in rows.iter_lines():
            if line and "row" in json.loads(line):
                first = time.monotonic() - began
                print(f"  round {number}: answered {answered:.2f} s, first row {first:.2f} s", flush=True)
                return {"answered": answered, "first_row": first}
    raise BenchError("the SELECT ended without a row")


def show(found: dict[str, list[dict[str, float]]]) -> None:
    """The table and the verdict."""
    rows = []
    for title, rounds in found.items():
        for key in ("answered", "first_row"):
            spread = Spread.of([r[key] for r in rounds])
            rows.append(
                [f"{title}: {key.replace('_', ' ')}", spread.n, spread.p50, spread.p99, spread.largest]
            )
    print(table(["seconds since the statement was sent", "n", "p50", "p99", "max"], rows))
    worst = max(Spread.of([r["first_row"] for r in rounds]).p50 for rounds in found.values())
    print(verdict("first row p50", worst, GOAL_SECONDS, "s"))


if __name__ == "__main__":
    main()
