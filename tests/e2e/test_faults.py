"""Kill -9 of a running driver and of the API loses no record; counted over 100,000 numbered records."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]
RECORDS = 100_000
COLUMNS = "n BIGINT, s VARCHAR"


def _conftest(name: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


_top = _conftest("leatstream_tests_top", Path(__file__).parents[1] / "conftest.py")
_e2e = _conftest("leatstream_tests_e2e", Path(__file__).parent / "conftest.py")


class Feed:
    """Produces numbered records at a steady pace until the count is reached."""

    def __init__(self, kafka: str, topic: str, count: int) -> None:
        self.kafka, self.topic, self.count, self.sent = kafka, topic, count, 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.kafka, "linger.ms": 20, "acks": "all"})
        while self.sent < self.count:
            for _ in range(1000):
                producer.produce(self.topic, b'{"n": %d, "s": "x"}' % self.sent)
                self.sent += 1
            producer.poll(0)
            time.sleep(0.1)
        assert producer.flush(60) == 0

    def wait_for(self, share: float) -> None:
        deadline = time.monotonic() + 120
        while self.sent < self.count * share:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def join(self) -> None:
        self._thread.join(180)
        assert self.sent == self.count


def distinct_numbers(kafka: str, topic: str, count: int, seconds: float = 180.0) -> tuple[int, int]:
    """(distinct, all) numbers on a topic, once every number has come or time is over."""
    import json
    import uuid

    from confluent_kafka import Consumer

    group = {"group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": kafka, **group})
    consumer.subscribe([topic])
    seen: set[int] = set()
    total = 0
    deadline = time.monotonic() + seconds
    try:
        while len(seen) < count and time.monotonic() < deadline:
            for message in consumer.consume(1000, 0.5):
                if not message.error():
                    total += 1
                    seen.add(json.loads(message.value())["n"])
    finally:
        consumer.close()
    return len(seen), total


@contextlib.contextmanager
def playground(server: Any) -> Iterator[Any]:
    with server.client() as http:
        play = _e2e.Playground(http, server.kafka_bootstrap, f"faults_{int(time.time() * 1000)}")
        body = {"kafka": {"bootstrap_servers": server.kafka_bootstrap}}
        assert http.put(f"/v1/stores/{play.name}", json=body).status_code == 201
        assert http.put(f"/v1/databases/{play.name}", json={}).status_code == 201
        yield play


@pytest.mark.parametrize("mode", ["realtime", "micro_batch"])
def test_kill_9_of_the_driver_loses_nothing(leatstream_server: Any, mode: str) -> None:
    with playground(leatstream_server) as play:
        topic, sink = play.stream("numbers", COLUMNS), f"{play.name}.out"
        query = play.run(
            "copy",
            f"CREATE STREAM copied WITH ('topic'='{sink}') AS SELECT n, s FROM numbers "
            f"QUERY WITH ('mode'='{mode}')",
        )
        assert query["plan"]["mode"] == mode
        feed = Feed(play.kafka, topic, RECORDS)
        for share in (0.2, 0.5):
            feed.wait_for(share)
            job = play.query(f"{play.name}_copy")["status"]["job"]
            os.kill(job["pid"], signal.SIGKILL)
            deadline = time.monotonic() + 60
            while play.query(f"{play.name}_copy")["status"]["job"]["attempt"] == job["attempt"]:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            play.wait(f"{play.name}_copy", "running")
        feed.join()
        distinct, total = distinct_numbers(play.kafka, sink, RECORDS)
        assert distinct == RECORDS
        assert total >= RECORDS
        assert play.http.delete(f"/v1/queries/{play.name}_copy").status_code in (202, 204)


def test_kill_9_of_the_api_leaves_the_job_running_and_it_is_adopted(
    kafka_broker: str, tmp_path: Path
) -> None:
    server = _top.start_server(tmp_path, kafka_bootstrap=kafka_broker)
    try:
        with playground(server) as play:
            topic, sink = play.stream("numbers", COLUMNS), f"{play.name}.out"
            play.run("copy", f"CREATE STREAM copied WITH ('topic'='{sink}') AS SELECT n, s FROM numbers")
            before = play.query(f"{play.name}_copy")["status"]["job"]
            feed = Feed(play.kafka, topic, RECORDS)
            feed.wait_for(0.3)
            os.kill(server.process.pid, signal.SIGKILL)
            server.process.wait(10)
            assert psutil.pid_exists(before["pid"]), "the job must outlive the API"
            name = play.name
        feed.wait_for(0.6)
        server = _top.start_server(tmp_path, kafka_bootstrap=kafka_broker)
        with server.client() as http:
            after = http.get(f"/v1/queries/{name}_copy").json()
            assert after["status"]["state"] == "running"
            assert after["status"]["job"]["pid"] == before["pid"], "adopted, not started again"
            assert after["status"]["job"]["attempt"] == before["attempt"]
            feed.join()
            distinct, total = distinct_numbers(kafka_broker, sink, RECORDS)
            assert distinct == RECORDS
            assert total == RECORDS
            assert http.delete(f"/v1/queries/{name}_copy").status_code in (202, 204)
    finally:
        assert _top.stop_process(server.process) == 0
