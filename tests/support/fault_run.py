"""Strikes the parts of a stack at seeded moments while records pass, and checks what is left.

The order, the kinds and the pauses of the faults come of the seed alone; what a moment meets depends on the machine.
"""

from __future__ import annotations

import contextlib
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from deadlines import patient
from fault_aws import AwsPart
from fault_load import SteadyFeed, declare
from fault_oracle import Oracle
from fault_parts import START_SECONDS, KafkaPart, Part, PostgresPart, ServerPart, until
from fault_tables import Tables, fault_tables
from fault_watcher import Outcome, Watcher
from playground import playground
from postgres_server import PostgresServer, postgres_server

KINDS = ("driver", "jvm", "api", "broker", "postgres", "aws", "iceberg", "clickhouse", "snowflake")
WEIGHTS = (0.24, 0.08, 0.14, 0.08, 0.1, 0.08, 0.1, 0.09, 0.09)
# A query that is killed so often without having run in between would be given up, and rightly.
MOST_IN_A_ROW = 3
SETTLE_SECONDS = 600.0  # those that share a driver start one after another once it has died twice


@dataclass(frozen=True)
class Fault:
    """One that is to come.

    Attributes:
        pause: seconds since the one before.
        pick: chooses among the drivers, or among the faults of a part.
        down_for: seconds that a part stays away.
    """

    pause: float
    kind: str
    pick: float
    down_for: float


def plan(seed: int, count: int, longest_pause: float) -> list[Fault]:
    """The faults of a seed."""
    chance = random.Random(seed)
    return [
        Fault(
            pause=chance.choice((0.0, chance.uniform(0, longest_pause))),
            kind=chance.choices(KINDS, WEIGHTS)[0],
            pick=chance.random(),
            down_for=chance.choice((0.0, chance.uniform(0, 3.0))),
        )
        for _ in range(count)
    ]


def run_faults(
    directory: Path,
    *,
    seed: int,
    count: int,
    longest_pause: float = 4.0,
    per_second: int = 400,
    copied: bool = False,
    keyed: bool = False,
    say: Callable[[str], None] = print,
) -> Outcome:
    """One run: start all, break it ``count`` times, let it come to rest, compare; flags as of ``declare``."""
    outcome, began = Outcome(seed), time.monotonic()
    with _stack(directory) as (kafka, postgres_part, aws, api, postgres, tables):
        with playground(api.server, "faults") as play:
            places = declare(play, postgres, aws.address, tables.stores(), copied=copied, keyed=keyed)
            feed = SteadyFeed(kafka.address, places, per_second)
            watcher = Watcher(api, f"{play.name}_", outcome)
            watcher.start()
            parts: dict[str, Part] = {p.name: p for p in (kafka, postgres_part, aws, api, *tables.parts)}
            say(f"seed {seed}: running after {time.monotonic() - began:.0f} s")
            for number, fault in enumerate(plan(seed, count, longest_pause)):
                done = _strike(fault, parts, watcher, outcome)
                say(f"{time.monotonic() - began:6.1f} s  fault {number + 1}: {fault.kind} {done}")
                if outcome.wrong:
                    break
            settle(watcher, parts, outcome, say)
            try:
                outcome.records = feed.stop()
            except AssertionError as error:
                outcome.wrong.append(str(error))
            oracle = Oracle(
                outcome.records,
                kafka.address,
                places,
                play,
                postgres,
                aws.quiet_address,
                tables,
                copied,
                keyed,
            )
            outcome.wrong += _wait_for(oracle) if not outcome.wrong else []
            watcher.stop()
        status = api.close()
        if status != 0:
            outcome.wrong.append(f"the server ended with status {status}")
    outcome.seconds = time.monotonic() - began
    say(outcome.report())
    return outcome


def _strike(fault: Fault, parts: dict[str, Part], watcher: Watcher, outcome: Outcome) -> str:
    # The pause is the moment that the seed chose; nothing is waited for by it.
    time.sleep(fault.pause)
    if fault.kind in ("driver", "jvm"):
        name, process = until(lambda: _victim(fault, watcher), START_SECONDS, "a driver to be killed")
        watcher.begun(fault.kind, name)
        with contextlib.suppress(psutil.Error):
            process.send_signal(signal.SIGKILL)
        done = f"of {name}"
    else:
        part = parts[fault.kind]
        until(lambda: part.alive() or part.trouble, START_SECONDS, f"{fault.kind} to be killed")
        watcher.begun(fault.kind, None)
        done = part.strike(fault.down_for, fault.pick)
    outcome.done[fault.kind] += 1
    outcome.wrong += _given_up(parts)
    return done


def _given_up(parts: dict[str, Part]) -> list[str]:
    return [f"{p.name} was not started again: {p.trouble!r}" for p in parts.values() if p.trouble]


def _victim(fault: Fault, watcher: Watcher) -> tuple[str, psutil.Process] | None:
    """A query and the process of its driver (or its JVM), as the seed picks among those that there are."""
    found: list[tuple[str, psutil.Process]] = []
    for name, status in sorted(watcher.queries.items()):
        if not status["job"]["pid"] or any(
            watcher.in_a_row[n] >= MOST_IN_A_ROW for n in watcher.beside(name)
        ):
            continue
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(status["job"]["pid"])
            if "leatstream_jobs" not in process.cmdline() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            if fault.kind == "jvm":
                below = process.children(recursive=True)
                java = next((child for child in below if child.name() == "java"), None)
                if java is None:  # it has not started it yet
                    continue
                process = java
            found.append((name, process))
    return found[int(fault.pick * len(found))] if found else None


def settle(watcher: Watcher, parts: dict[str, Part], outcome: Outcome, say: Callable[[str], None]) -> None:
    """Wait until every query runs again; what does not come back is told."""
    say("no more faults; waiting until every query runs")

    def over() -> bool:
        outcome.wrong += _given_up(parts) if not outcome.wrong else []
        return bool(outcome.wrong) or watcher.settled()

    try:
        until(over, SETTLE_SECONDS, "every query runs again")
    except AssertionError as error:
        states = {n: (s["state"], s["message"]) for n, s in watcher.queries.items()}
        outcome.wrong.append(f"{error}: {states}")
    for part in parts.values():
        part.down_for = 0.0


def _wait_for(oracle: Oracle, seconds: float = 300.0) -> list[str]:
    """What is still wrong when the time is over."""
    deadline = time.monotonic() + patient(seconds)
    while True:
        wrong = oracle.faults()
        # What came twice does not go away.
        if not wrong or time.monotonic() > deadline or any("more than once" in said for said in wrong):
            return wrong
        time.sleep(0.5)


@contextlib.contextmanager
def _stack(
    directory: Path,
) -> Iterator[tuple[KafkaPart, PostgresPart, AwsPart, ServerPart, PostgresServer, Tables]]:
    kafka, aws = KafkaPart(directory), AwsPart(directory)
    with postgres_server(max_connections="200") as postgres, contextlib.ExitStack() as opened:
        with postgres.connect("postgres") as connection:
            connection.execute("CREATE DATABASE catalog")
        database = PostgresPart(postgres)
        opened.callback(kafka.close)
        kafka.open()
        opened.callback(database.release)
        database.open()
        opened.callback(aws.close)
        aws.open()
        tables = opened.enter_context(fault_tables(aws))
        api = ServerPart(
            directory,
            f"postgresql://leat@127.0.0.1:{postgres.port}/catalog",
            kafka.address,
            LEATSTREAM_WARM_DRIVERS="1",
            # One for each query: all that share a driver may come to be suspected, and set apart.
            LEATSTREAM_MAX_DRIVERS="15",
            LEATSTREAM_DRIVER_SLOTS="4",
            LEATSTREAM_WARM_UP_KAFKA=kafka.address,
            LEATSTREAM_WATERMARK_DELAY_MS="3600000",
            LEATSTREAM_DRIVER_ORPHAN_SECONDS="60",
        )
        opened.callback(api.close)
        api.open()
        until(api.ready, START_SECONDS, "the server is ready")
        yield kafka, database, aws, api, postgres, tables
