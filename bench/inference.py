"""What asking the stores adds to a validation, and how long a store that is away can hold one up.

The same SELECT is validated as an interactive SELECT, whose plan asks its source's store; as CREATE STREAM
into the same store, whose plan also infers the sink's properties from it; and as CREATE STREAM into a second
store. A third store's brokers take connections and never answer. In turns, one client.
"""

from __future__ import annotations

import argparse
import socket
import time
from typing import Any

from report import Spread, conditions, keep, table, verdict
from stack import STORE, Stack, running_stack
from topics import COLUMNS, Topics

GOAL_MS = 50.0
GOAL_AWAY_S = 5.0
ALONE, ONE, TWO = "SELECT, no sink", "CREATE STREAM, same store", "CREATE STREAM, another store"
AWAY = "CREATE STREAM, a store that is away"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200, help="validations of each kind")
    parser.add_argument("--warm-up", type=int, default=30, help="validations of each kind that do not count")
    parser.add_argument("--json", help="write the raw numbers here")
    options = parser.parse_args()
    print(conditions())
    times: dict[str, list[float]] = {name: [] for name in (ALONE, ONE, TWO, AWAY)}
    # Takes connections into its backlog and never answers.
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        running_stack({"LEATSTREAM_MAX_DRIVERS": "1"}) as stack,
    ):
        prepare(stack, silent.getsockname()[1])
        texts = {
            ALONE: "SELECT userid FROM pageviews",
            ONE: "CREATE STREAM inferred AS SELECT userid FROM pageviews",
            TWO: "CREATE STREAM inferred WITH ('store'='second') AS SELECT userid FROM pageviews",
        }
        for number in range(options.warm_up + options.rounds):
            for name in list(texts) if number % 2 == 0 else list(texts)[::-1]:
                taken = validated(stack, texts[name], valid=True)
                if number >= options.warm_up:
                    times[name].append(taken)
        for _ in range(3):
            text = "CREATE STREAM inferred WITH ('store'='away') AS SELECT userid FROM pageviews"
            times[AWAY].append(validated(stack, text, valid=False))
    show(times)
    print(conditions())
    keep(options.json, times)


def prepare(stack: Stack, silent: int) -> None:
    """A topic with a stream, a second store over the same brokers, and one that never answers."""
    topics = Topics(stack.kafka)
    topics.create("pageviews", 2)
    topics.close()
    stack.sql("CREATE DATABASE bench", "bench")
    for name, address in (("second", stack.kafka), ("away", f"127.0.0.1:{silent}")):
        stack.call("PUT", f"/v1/stores/{name}", json={"kafka": {"bootstrap_servers": address}})
    stream = f"CREATE STREAM pageviews ({COLUMNS}) WITH ('topic'='pageviews', 'value.format'='json')"
    stack.sql(stream, "bench")


def validated(stack: Stack, sql: str, *, valid: bool) -> float:
    """Milliseconds of one validation."""
    body = {"sql": sql, "database": "bench", "schema": "public", "store": STORE}
    began = time.perf_counter()
    answer: Any = stack.call("POST", "/v1/statements:validate", json=body)
    taken = (time.perf_counter() - began) * 1000
    if answer["valid"] is not valid:
        raise AssertionError(str(answer)[:500])
    return taken


def show(times: dict[str, list[float]]) -> None:
    """The table and the verdicts."""
    alone = Spread.of(times[ALONE]).p50
    rows = []
    for name, values in times.items():
        spread = Spread.of(values)
        rows.append(
            [name, spread.n, spread.p50, spread.p99, spread.p50 - alone, f"{spread.p50 / alone:.2f}x"]
        )
    print(table(["milliseconds", "n", "p50", "p99", "added to SELECT", "ratio"], rows))
    for name in (ONE, TWO):
        print(verdict(f"{name}: added", Spread.of(times[name]).p50 - alone, GOAL_MS, "ms"))
    print(verdict("a store that is away", max(times[AWAY]) / 1000, GOAL_AWAY_S, "s"))


if __name__ == "__main__":
    main()
