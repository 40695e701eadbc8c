"""Kill -9 of the API: its jobs run on, and the next API takes them over. ``faults/`` kills everything else."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest
from leat_server import start_server, stop_process
from numbered_records import Feed, distinct_numbers
from playground import playground

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]
RECORDS = 30_000
COLUMNS = "n BIGINT, s VARCHAR"


@pytest.mark.long  # faults/ kills the server too
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
