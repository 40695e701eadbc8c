"""The image runs queries on a root that nobody can write to: ``pytest tests/manual/image.py``.

For a machine with a container engine, which CI has not. It wants the image of ``deploy/Dockerfile`` as ``leatstream``
(or ``LEATSTREAM_TEST_IMAGE``) and ``docker`` (or ``LEATSTREAM_TEST_RUN``, such as ``podman run --cgroups=disabled``).
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from leat_server import START_SECONDS, LeatstreamServer, stop_process
from playground import playground

from leatstream.dev.ports import free_ports
from leatstream.services.authorization import mint_token

RUN = shlex.split(os.environ.get("LEATSTREAM_TEST_RUN", "docker run"))
IMAGE = os.environ.get("LEATSTREAM_TEST_IMAGE", "leatstream")
# As in the chart and the compose file; the data directory is the image's own volume. No program may be put in /tmp.
CONFINED = [
    "--read-only",
    "--tmpfs",
    "/tmp:noexec",
    "--cap-drop",
    "ALL",
    "--security-opt",
    "no-new-privileges",
]
pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]


@pytest.fixture
def contained(kafka_broker: str, tmp_path: Path) -> Iterator[LeatstreamServer]:
    """The image's server on the network of this machine."""
    if shutil.which(RUN[0]) is None:
        pytest.skip(f"no {RUN[0]} on PATH")
    (port,) = free_ports(1)
    token = mint_token()[0]
    settings = {
        "LEATSTREAM_BOOTSTRAP_TOKEN": token,
        "LEATSTREAM_HOST": "127.0.0.1",
        "LEATSTREAM_PORT": str(port),
        "LEATSTREAM_WARM_UP_KAFKA": kafka_broker,
    }
    named = [part for name, value in settings.items() for part in ("--env", f"{name}={value}")]
    argv = [*RUN, "--rm", "--network", "host", *CONFINED, *named, IMAGE]
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    yield LeatstreamServer(f"http://127.0.0.1:{port}", token, kafka_broker, process, tmp_path)
    stop_process(process, 90)


def test_a_query_runs_in_it_and_it_ends_in_order(contained: LeatstreamServer) -> None:
    log = contained.data_dir / "server.log"
    deadline = time.monotonic() + START_SECONDS
    while not contained.warm():
        assert contained.process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)
    assert httpx2.get(f"{contained.url}/healthz", timeout=5).status_code == 200
    with playground(contained, "image") as play:
        orders = play.stream("orders", "customer VARCHAR, amount BIGINT")
        play.run(
            "copy", f"CREATE STREAM copied WITH ('topic'='{play.name}.copy') AS SELECT amount FROM orders"
        )
        # Its state needs a native library, which the JVM has to unpack somewhere and load from there.
        totals = f"CREATE CHANGELOG totals WITH ('topic'='{play.name}.totals') AS"
        grouped = "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"
        play.run("totals", f"{totals} {grouped}")
        for count, amount in enumerate((1, 2, 4), 1):
            play.produce(orders, [{"customer": "a", "amount": amount}])
            found = play.consume(f"{play.name}.totals", count, distinct="total")
        assert {one["total"] for one in found} == {1, 3, 7}
        assert sorted(one["amount"] for one in play.consume(f"{play.name}.copy", 3)) == [1, 2, 4]
        for name in ("copy", "totals"):
            assert play.query(f"{play.name}_{name}")["status"]["state"] == "running"
        assert stop_process(contained.process, 90) == 0, log.read_text()
    said = log.read_text()
    assert "Traceback" not in said, said
    assert "Read-only file system" not in said, said
