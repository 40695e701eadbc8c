"""Two attempts of one query forced onto one checkpoint: what is left to guard once no token does.

A driver that was given up hears so from its API within a second. Here nobody tells it: an old attempt and a new one
begin within moments of each other, each in a Spark of its own that lasts for all tries, and both write until the end.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
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
    """A process with a Spark that runs one attempt after the other."""

    def __init__(self, directory: Path) -> None:
        from driver_variables import driver_variables

        paths = os.pathsep.join([*sys.path, str(HERE), str(HERE / "integration" / "jobs")])
        self._log = (directory / "racer.log").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "fencing_race.py"), str(directory)],
            env=os.environ | driver_variables() | {"PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def begin(self, spec: dict[str, Any], after: float) -> None:
        """Have it begin an attempt so many seconds from now."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"spec": spec, "after": after}) + "\n")
        self.process.stdin.flush()

    def end(self) -> dict[str, Any]:
        """The last heartbeat of the attempt."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("BEAT "):
                found: dict[str, Any] = json.loads(line.removeprefix("BEAT "))
                return found
        raise AssertionError(f"a racer ended: {Path(self._log.name).read_text()[-2000:]}")

    def close(self) -> None:
        self.process.kill()
        self.process.wait(20)
        self._log.close()


def race(kafka: str, tries: int, seed: int) -> Races:
    """Try so often; every record must be on the sink once, and nothing else."""
    from fault_load import read_topic

    from leatstream.connectors.registry import open_connector

    chance, races = random.Random(seed), Races()
    connector: Any = open_connector("kafka", "k", {"bootstrap_servers": kafka}, {})
    with tempfile.TemporaryDirectory(prefix="leat-race-", ignore_cleanup_errors=True) as name:
        places = [Path(name) / who for who in ("old", "new")]
        for place in places:
            place.mkdir()
        racers = [Racer(place) for place in places]
        try:
            source = _source(kafka, connector)
            for number in range(tries):
                sink = f"race_{uuid.uuid4().hex[:10]}"
                connector.create_entity(sink, {"topic.partitions": 1, "topic.replicas": 1}, {})
                spec = _spec(kafka, source, sink, Path(name) / "checkpoints" / str(number))
                late, second = chance.choice((0.0, chance.uniform(0, 0.3))), chance.randrange(2)
                for who, racer in enumerate(racers):
                    racer.begin(spec | {"attempt": who + 1}, late if who == second else 0.0)
                ends = [_said(racer.end()) for racer in racers]
                races.ends[" / ".join(ends)] += 1
                # Whoever was left over may have been beaten as well: a third attempt works off what there is.
                racers[0].begin(spec | {"attempt": 3}, 0.0)
                last = _said(racers[0].end())
                found = Counter(value["id"] for _, value in read_topic(kafka, sink))
                if found != Counter(range(RECORDS)) or last != "stopped":
                    races.wrong.append(f"try {number} of seed {seed}: {ends}, then {last}; {dict(found)}")
                connector.drop_entity(sink)
                connector.forget_batches(spec["query_id"], 10.0)
            connector.drop_entity(source)
        finally:
            for racer in racers:
                racer.close()
    return races


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

    from leatstream_jobs.session import start_session

    Host.heartbeat_seconds = 0.05
    spark = start_session(directory, 2)
    for line in sys.stdin:
        asked = json.loads(line)
        spec = asked["spec"]
        time.sleep(asked["after"])  # the head start of the other one
        told = attempt(spark.newSession(), spec, lambda _, spec=spec: _done(spec), 120)
        print("BEAT", json.dumps({"state": told["state"], "error": told.get("error")}), flush=True)


if __name__ == "__main__":
    _racer(Path(sys.argv[1]))
