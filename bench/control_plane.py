"""What a request costs: validation, DDL, reading one, reading a list; beside an endpoint that does nothing.

One client, one kept-alive connection, every kind of request in turn, so that all of them meet the same load.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from report import Spread, conditions, keep, table, verdict
from stack import STORE, Stack, running_stack
from topics import COLUMNS, SELECT, Topics

GOALS_MS = {
    "validate, same statement": 200.0,
    "validate, always another statement": 200.0,
    "CREATE STREAM on a topic": 50.0,
    "CREATE DATABASE": 50.0,
    "GET one relation": 20.0,
    "GET list of relations": 20.0,
    "GET one query": 20.0,
}
BOUND = "GET /healthz (bound)"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=250, help="requests of each kind")
    parser.add_argument("--warm-up", type=int, default=50, help="requests of each kind that do not count")
    parser.add_argument("--json", help="write the raw numbers here")
    options = parser.parse_args()

    print(conditions())
    # A stopped query stands there to be read; no job shall run meanwhile.
    with running_stack({"LEATSTREAM_MAX_DRIVERS": "1"}) as stack:
        topics = Topics(stack.kafka)
        topics.create("pageviews", 2)
        topics.close()
        prepare(stack)
        requests = kinds(stack)
        times: dict[str, list[float]] = {name: [] for name in requests}
        for number in range(options.warm_up + options.rounds):
            for name, request in requests.items():
                taken = timed(request, number)
                if number >= options.warm_up:
                    times[name].append(taken)
    show(times)
    print(conditions())
    keep(options.json, times)


def prepare(stack: Stack) -> None:
    """A catalog with something in it: a hundred streams and a query."""
    stack.sql("CREATE DATABASE bench", "bench")
    stack.sql(
        f"CREATE STREAM pageviews ({COLUMNS}) WITH ('topic'='pageviews', 'value.format'='json')", "bench"
    )
    for i in range(100):
        stack.sql(
            f"CREATE STREAM view_{i} ({COLUMNS}) WITH ('topic'='pageviews', 'value.format'='json')", "bench"
        )
    body = {
        "sql": f"CREATE STREAM kept AS {SELECT.format(source='pageviews')}",
        "database": "bench",
        "schema": "public",
        "store": STORE,
        "desired_state": "stopped",
    }
    stack.call("PUT", "/v1/queries/kept", json=body)


def kinds(stack: Stack) -> dict[str, Callable[[int], Any]]:
    """Every kind of request, as a function of the round's number."""
    context = {"database": "bench", "schema": "public", "store": STORE}
    same = f"CREATE STREAM same_one AS {SELECT.format(source='pageviews')}"

    def validate(sql: str) -> Any:
        answer = stack.call("POST", "/v1/statements:validate", json={"sql": sql, **context})
        if not answer["valid"]:
            raise AssertionError(str(answer)[:500])

    def another(number: int) -> Any:
        columns = ", ".join(f"viewtime + {number} AS c{number}_{i}" for i in range(number % 5 + 1))
        validate(
            f"CREATE STREAM other_{number} AS SELECT {columns}, concat(userid, '{number}') AS who "
            f"FROM pageviews WHERE pageid <> 'Page_{number}'"
        )

    def create_stream(number: int) -> Any:
        stack.sql(
            f"CREATE STREAM made_{number} ({COLUMNS}) WITH ('topic'='pageviews', 'value.format'='json')",
            "bench",
        )

    return {
        BOUND: lambda _: stack.call("GET", "/healthz"),
        "validate, same statement": lambda _: validate(same),
        "validate, always another statement": another,
        "CREATE STREAM on a topic": create_stream,
        "CREATE DATABASE": lambda number: stack.sql(f"CREATE DATABASE made_{number}", "bench"),
        "GET one relation": lambda _: stack.call("GET", "/v1/relations/bench.public.view_7"),
        "GET list of relations": lambda _: stack.call("GET", "/v1/relations", params={"page_size": 100}),
        "GET one query": lambda _: stack.call("GET", "/v1/queries/kept"),
    }


def timed(request: Callable[[int], Any], number: int) -> float:
    """Milliseconds of one request."""
    began = time.perf_counter()
    request(number)
    return (time.perf_counter() - began) * 1000


def show(times: dict[str, list[float]]) -> None:
    """The table and the verdicts."""
    bound = Spread.of(times[BOUND]).p50
    rows = []
    for name, values in times.items():
        spread = Spread.of(values)
        rows.append([name, spread.n, spread.p50, spread.p99, spread.largest, f"{spread.p50 / bound:.1f}x"])
    print(table(["milliseconds", "n", "p50", "p99", "max", "p50 / bound"], rows))
    for name, goal in GOALS_MS.items():
        print(verdict(f"{name} p99", Spread.of(times[name]).p99, goal, "ms"))


if __name__ == "__main__":
    main()
