"""Two attempts of one query forced onto one checkpoint: what is left to guard once no token does.

A driver that was given up hears so from its API within a second. Here nobody tells it: an old attempt and a new one
begin within moments of each other, each in a Spark of its own that lasts for all tries, and both write until the end.
Several tries may go on beside each other: an attempt mostly waits.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RECORDS, PER_BATCH = 20, 5
BATCHES = RECORDS // PER_BATCH
HERE = Path(__file__).resolve().parent


@dataclass
class Races:
    """What the tries have shown: how often each pair of ends came, and what was wrong."""

    ends: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Racer:
    """A process with a Spark that runs attempts."""

    def __init__(self, directory: Path) -> None:
        from driver_variables import driver_variables

        paths = os.pathsep.join([*sys.path, str(HERE), str(HERE.parent / "integration" / "jobs")])
        self._log = (directory / "racer.log").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "fencing_race.py"), str(directory)],
            env=os.environ | driver_variables() | {"PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._ends: dict[str, Future[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._hears = threading.Thread(target=self._hear, daemon=True)
        self._hears.start()

    def begin(self, spec: dict[str, Any], after: float) -> Future[dict[str, Any]]:
        """Have it begin an attempt so many seconds from now; its last heartbeat."""
        assert self._process.stdin is not None
        key, end = uuid.uuid4().hex, Future[dict[str, Any]]()
        with self._lock:
            self._ends[key] = end
            self._process.stdin.write(json.dumps({"key": key, "spec": spec, "after": after}) + "\n")
            self._process.stdin.flush()
        return end

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("BEAT "):
                told = json.loads(line.removeprefix("BEAT "))
                with self._lock:
                    end = self._ends.pop(told.pop("key"))
                end.set_result(told)
        with self._lock:
            left, self._ends = self._ends, {}
        for end in left.values():
            text = Path(self._log.name).read_text()[-2000:]
            end.set_exception(AssertionError(f"a racer ended: {text}"))

    def close(self) -> None:
        self._process.kill()
        self._process.wait(20)
        self._hears.join(20)
        self._log.close()


def race(
    kafka: str, tries: int, seed: int, beside: int = 1, say: Callable[[str], None] = lambda _: None
) -> Races:
    """Try so often, ``beside`` at a time; every record must be on the sink once, and nothing else."""
    from leatstream.connectors.registry import open_connector

    races = Races()
    connector: Any = open_connector("kafka", "k", {"bootstrap_servers": kafka}, {})
    with tempfile.TemporaryDirectory(prefix="leat-race-", ignore_cleanup_errors=True) as name:
        places = [Path(name) / who for who in ("old", "new")]
        for place in places:
            place.mkdir()
        racers = [Racer(place) for place in places]
        try:
            source = _source(kafka, connector)
            with ThreadPoolExecutor(beside) as pool:
                place = Path(name) / "checkpoints"
                done = [
                    pool.submit(
                        _try, racers, kafka, connector, source, place / str(number), f"{seed}/{number}"
                    )
                    for number in range(tries)
                ]
                for number, one in enumerate(done):
                    try:
                        ends, wrong = one.result(600)
                    except BaseException:
                        pool.shutdown(wait=False, cancel_futures=True)
                        raise
                    races.ends[ends] += 1
                    races.wrong += wrong
                    say(f"{number + 1} of {tries}: {ends} {wrong or ''}")
            connector.drop_entity(source)
        finally:
            for racer in racers:
                racer.close()
    return races


def _try(
    racers: list[Racer], kafka: str, connector: Any, source: str, checkpoint: Path, seed: str
) -> tuple[str, list[str]]:
    """One race; how both ended, and what was wrong."""
    from fault_oracle import read_topic

    chance = random.Random(seed)
    sink = f"race_{uuid.uuid4().hex[:10]}"
    connector.create_entity(sink, {"topic.partitions": 1, "topic.replicas": 1}, {})
    spec = _spec(kafka, source, sink, checkpoint)
    late, second = chance.choice((0.0, chance.uniform(0, 0.3))), chance.randrange(2)
    begun = [
        racer.begin(spec | {"attempt": who + 1}, late if who == second else 0.0)
        for who, racer in enumerate(racers)
    ]
    ends = [_said(end.result(240)) for end in begun]
    # The remaining one may have been fenced as well: a third attempt processes what is left.
    last = _said(racers[0].begin(spec | {"attempt": 3}, 0.0).result(240))
    found = Counter(value["id"] for _, value in read_topic(kafka, sink))
    right = found == Counter(range(RECORDS)) and last == "stopped"
    connector.drop_entity(sink)
    connector.forget_batches(spec["query_id"], 10.0)
    return " / ".join(ends), [] if right else [f"try {seed}: {ends}, then {last}; {dict(found)}"]


def _said(beat: dict[str, Any]) -> str:
    error = beat.get("error") or {}
    return str(error.get("condition") or error.get("code") or beat["state"])


def _source(kafka: str, connector: Any) -> str:
    from confluent_kafka import Producer

    name = f"race_{uuid.uuid4().hex[:10]}"
    connector.create_entity(name, {"topic.partitions": 1, "topic.replicas": 1}, {})
    producer = Producer({"bootstrap.servers": kafka})
    for n in range(RECORDS):
        producer.produce(name, json.dumps({"id": n}))
    assert producer.flush(30) == 0
    return name


def _spec(kafka: str, source: str, sink: str, checkpoint: Path) -> dict[str, Any]:
    store = {"name": "k", "kind": "kafka", "config": {"bootstrap_servers": kafka}}
    column = [{"name": "id", "type": "BIGINT", "not_null": False}]
    scan = {"view": "leat_src_0", "relation": "d.s.i", "store": store, "entity": source, "columns": column}
    return {
        "query_id": sink,
        "query_name": "race",
        "generation": 1,
        "attempt": 1,
        "fencing_token": "t",
        "sql": "SELECT id, __leat_rowkey, __leat_rowtime FROM leat_src_0",
        "sources": [scan | {"value_format": "json", "starting_position": "earliest"}],
        "sink": {
            "relation": "d.s.o",
            "store": store,
            "entity": sink,
            "columns": column,
            "value_format": "json",
        },
        "mode": "micro_batch",
        "mode_reason": "race",
        "delivery": "exactly_once",
        "checkpoint": checkpoint.as_uri(),
        "trigger_interval_ms": 1,
        "max_offsets_per_trigger": PER_BATCH,
        "conf": {"spark.sql.shuffle.partitions": "1"},
    }


def _done(spec: dict[str, Any]) -> bool:
    commits = Path(spec["checkpoint"].removeprefix("file://")) / "commits"
    return commits.is_dir() and any(p.name == str(BATCHES - 1) for p in commits.iterdir())


def _racer(directory: Path) -> None:
    from attempts import Host, attempt

    from leatstream_jobs.runtime.session import start_session

    Host.heartbeat_seconds = 0.05
    spark = start_session(directory, 2)

    says = threading.Lock()

    def run(key: str, spec: dict[str, Any], after: float) -> None:
        time.sleep(after)  # the head start of the other one
        told = attempt(spark.newSession(), spec, lambda _: _done(spec), 240)
        said = {"key": key, "state": told["state"], "error": told.get("error")}
        with says:
            print("BEAT", json.dumps(said), flush=True)

    for line in sys.stdin:
        threading.Thread(target=run, kwargs=json.loads(line), daemon=True).start()


if __name__ == "__main__":
    _racer(Path(sys.argv[1]))
