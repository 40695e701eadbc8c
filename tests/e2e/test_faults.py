"""Kill -9 of a running driver and of the API loses no record; counted over 100,000 numbered records."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from leat_server import start_server, stop_process
from numbered_records import Feed, distinct_numbers
from playground import playground

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]
RECORDS = 100_000
COLUMNS = "n BIGINT, s VARCHAR"


@pytest.mark.parametrize(
    ("mode", "delivery"), [("realtime", "at_least_once"), ("micro_batch", "exactly_once")]
)
def test_kill_9_of_the_driver_loses_nothing(leatstream_server: Any, mode: str, delivery: str) -> None:
    with playground(leatstream_server, "faults") as play:
        topic, sink = play.stream("numbers", COLUMNS), f"{play.name}.out"
        query = play.run(
            "copy",
            f"CREATE STREAM copied WITH ('topic'='{sink}', 'delivery.guarantee'='{delivery}') "
            f"AS SELECT n, s FROM numbers QUERY WITH ('mode'='{mode}')",
        )
        assert (query["plan"]["mode"], query["plan"]["delivery"]) == (mode, delivery)
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
        assert total == RECORDS if delivery == "exactly_once" else total >= RECORDS
        assert play.http.delete(f"/v1/queries/{play.name}_copy").status_code in (202, 204)


def test_kill_9_of_the_api_leaves_the_job_running_and_it_is_adopted(
    kafka_broker: str, tmp_path: Path
) -> None:
    server = start_server(tmp_path, kafka_bootstrap=kafka_broker)
    try:
        with playground(server, "faults") as play:
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
        server = start_server(tmp_path, kafka_bootstrap=kafka_broker)
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
        assert stop_process(server.process) == 0
