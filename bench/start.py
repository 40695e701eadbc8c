"""How long CREATE STREAM AS SELECT takes from the statement to the first record on the sink, drivers warm.

The source is fed all the time, so that waiting for a source record adds at most a few milliseconds. Each
round waits until a warm driver is there again. ``--peers N`` does the same with a hand-written PySpark job in
a session warmed in the same way: what is left is the product's own part (plan, catalog, topic, hand-over).
"""

from __future__ import annotations

import argparse
import threading
import time
from datetime import datetime

from handwritten import running_peer
from report import Spread, conditions, keep, table, verdict
from stack import STORE, BenchError, Stack, running_stack
from topics import COLUMNS, SELECT, SteadyProducer, Topics

GOAL_SECONDS = 0.7
PARTITIONS = 2


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--peers", type=int, default=3, help="rounds of the hand-written job")
    parser.add_argument("--mode", choices=("auto", "micro_batch"), default="auto")
    parser.add_argument("--rate", type=float, default=200.0, help="source records per second")
    parser.add_argument("--no-refill", action="store_true", help="no new driver warms up meanwhile")
    parser.add_argument("--json", help="write the raw numbers here")
    options = parser.parse_args()

    print(conditions())
    settings = {"LEATSTREAM_MAX_DRIVERS": "1"} if options.no_refill else {}
    with running_stack(settings) as stack:
        topics = Topics(stack.kafka)
        topics.create("pageviews", PARTITIONS)
        stack.sql("CREATE DATABASE bench", "bench")
        stack.sql(
            f"CREATE STREAM pageviews ({COLUMNS}) WITH ('topic'='pageviews', 'value.format'='json')", "bench"
        )
        with SteadyProducer(stack.kafka, "pageviews", options.rate):
            rounds = [one_round(stack, topics, i, options.mode) for i in range(options.rounds)]
            peers = [peer_round(stack, topics, i, options.mode) for i in range(options.peers)]
        topics.close()
    show(rounds, peers)
    print(conditions())
    keep(options.json, {"rounds": rounds, "peers": peers})


def one_round(stack: Stack, topics: Topics, number: int, mode: str) -> dict[str, float]:
    """One statement from a warm driver to the first record; seconds since the statement was sent."""
    stack.wait_warm()
    name, found = f"out_{number}", {}
    suffix = " QUERY WITH ('mode'='micro_batch')" if mode == "micro_batch" else ""
    sql = f"CREATE STREAM {name} AS {SELECT.format(source='pageviews')}{suffix}"

    def send() -> None:
        body = {"sql": sql, "database": "bench", "schema": "public", "store": STORE}
        found["answer"] = stack.call("POST", "/v1/statements", json=body)
        found["answered"] = time.time()

    began = time.time()
    sender = threading.Thread(target=send)
    sender.start()
    try:
        seen = _first_seen(topics, name)
    except TimeoutError as error:
        raise BenchError(f"{error}; {found.get('answer')}; {_say_why(stack)}") from None
    sender.join()
    query = found["answer"]["results"][0]["query"]
    status = stack.wait_running(query)["status"]
    written = _first_written(topics, name)
    stack.drop_query(query)
    result = {
        "answered": found["answered"] - began,
        "written": written - began,
        "visible": seen - began,
        "running": _epoch(status["since"]) - began,
    }
    print(f"  round {number}: " + ", ".join(f"{k} {v:.2f} s" for k, v in result.items()), flush=True)
    return result


def _say_why(stack: Stack) -> str:
    said = []
    for query in stack.call("GET", "/v1/queries")["items"]:
        logs = stack.call("GET", f"/v1/queries/{query['name']}/logs", params={"tail": 30})["lines"]
        said.append(f"{query['name']}: {query['status']}\n" + "\n".join(logs))
    return "\n".join(said) or "there is no query"


def peer_round(stack: Stack, topics: Topics, number: int, mode: str) -> dict[str, float]:
    """The same with a hand-written job in a warm session: from starting the query to the first record."""
    stack.wait_warm()
    sink = topics.create(f"peer_{number}", PARTITIONS)
    with running_peer(
        stack.kafka,
        "pageviews",
        sink,
        form="same",
        mode="micro_batch" if mode == "micro_batch" else "realtime",
        position="latest",
        environment=driver_settings(),
        warm_up=True,
    ) as peer:
        time.sleep(1.0)
        began = time.time()
        starter = threading.Thread(target=peer.go)
        starter.start()
        seen = _first_seen(topics, sink)
        starter.join()
        written = _first_written(topics, sink)
    topics.drop(sink)
    result = {"written": written - began, "visible": seen - began}
    print(f"  peer {number}: " + ", ".join(f"{k} {v:.2f} s" for k, v in result.items()), flush=True)
    return result


def driver_settings() -> dict[str, str]:
    """JVM size and flags that the product gives a driver."""
    from leatstream.launching import SMALL_JVM
    from leatstream.settings import Settings

    settings = Settings()
    return {
        "LEATSTREAM_DRIVER_MEMORY": settings.driver_memory,
        "LEATSTREAM_DRIVER_JVM_OPTIONS": settings.driver_jvm_options or SMALL_JVM,
    }


def _first_seen(topics: Topics, name: str, seconds: float = 60.0) -> float:
    # A client of its own: librdkafka asks for a topic that does not exist yet only for the first such topic.
    watcher = Topics(topics.bootstrap)
    deadline = time.monotonic() + seconds
    try:
        while watcher.count(name, PARTITIONS, timeout=0.2) == 0:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no record on {name} within {seconds:g} s")
            time.sleep(0.005)
        return time.time()
    finally:
        watcher.close()


def _first_written(topics: Topics, name: str) -> float:
    """When the job's producer sent its first record: the record's own time, same clock."""
    return min(message.timestamp()[1] for message in topics.records(name, PARTITIONS)) / 1000


def _epoch(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def show(rounds: list[dict[str, float]], peers: list[dict[str, float]]) -> None:
    """The table and the verdict."""
    rows = []
    words = {
        "answered": "statement answered",
        "written": "first record written",
        "visible": "first record visible on the sink",
        "running": "state running",
    }
    for key, title in words.items():
        spread = Spread.of([r[key] for r in rounds])
        rows.append([f"leatstream: {title}", spread.n, spread.p50, spread.p99, spread.largest])
    ratio = None
    if peers:
        spread = Spread.of([r["visible"] for r in peers])
        rows.append(["hand-written, warm session: visible", spread.n, spread.p50, spread.p99, spread.largest])
        ratio = Spread.of([r["visible"] for r in rounds]).p50 / spread.p50
    print(table(["seconds since the statement was sent", "n", "p50", "p99", "max"], rows))
    print(verdict("start p50", Spread.of([r["visible"] for r in rounds]).p50, GOAL_SECONDS, "s"))
    if ratio is not None:
        print(f"Ratio to the hand-written job in a warm session (p50): {ratio:.2f}")


if __name__ == "__main__":
    main()
