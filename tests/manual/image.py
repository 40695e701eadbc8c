"""The image runs queries on a root that nobody can write to: ``pytest tests/manual/image.py``.

For a machine with a container engine, which CI has not. It wants the image of ``deploy/Dockerfile`` as ``leatstream``
(or ``LEATSTREAM_TEST_IMAGE``) and ``docker`` (or ``LEATSTREAM_TEST_RUN``, such as ``podman run --cgroups=disabled``).
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import httpx2
import pytest
from leat_server import LOCAL_STORES, START_SECONDS, LeatstreamServer, stop_process
from playground import playground

from leatstream.dev.jars import locked
from leatstream.dev.ports import free_ports
from leatstream.engine.pod_manifests import PodPlan, pod_manifest
from leatstream.services.environment.authorization import mint_token

RUN = shlex.split(os.environ.get("LEATSTREAM_TEST_RUN", "docker run"))
IMAGE = os.environ.get("LEATSTREAM_TEST_IMAGE", "leatstream")
# As in the chart and the compose file; the data directory is the image's own volume.
CONFINED = ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
TEMPORARY = ["--tmpfs", "/tmp:noexec"]  # as Docker mounts it: no program may be put there
pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]


@pytest.fixture
def contained(kafka_broker: str, tmp_path: Path) -> Iterator[LeatstreamServer]:
    """The image's server on the network of this machine."""
    if shutil.which(RUN[0]) is None:
        pytest.skip(f"no {RUN[0]} on PATH")
    (port,) = free_ports(1)
    token = mint_token()[0]
    settings = {
        **LOCAL_STORES,
        "LEATSTREAM_BOOTSTRAP_TOKEN": token,
        "LEATSTREAM_HOST": "127.0.0.1",
        "LEATSTREAM_PORT": str(port),
        "LEATSTREAM_WARM_UP_KAFKA": kafka_broker,
    }
    named = [part for name, value in settings.items() for part in ("--env", f"{name}={value}")]
    argv = [*RUN, "--rm", "--network", "host", *CONFINED, *TEMPORARY, *named, IMAGE]
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


class Api(BaseHTTPRequestHandler):
    """What a driver polls: there is no work for it, and it may go once it is warm."""

    told: ClassVar[list[Any]] = []

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.told.append(said)
        answer = json.dumps({"work": {"kind": "exit"} if said["state"] == "idle" else None}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_a_drivers_pod_has_all_places_that_it_writes_in(kafka_broker: str, tmp_path: Path) -> None:
    if shutil.which(RUN[0]) is None:
        pytest.skip(f"no {RUN[0]} on PATH")
    jars = ":".join(f"/opt/leatstream/cache/jars/{jar.relative_path}" for jar in locked("spark"))
    plan = PodPlan(
        image=IMAGE,
        service_account="drivers",
        environment={"LEATSTREAM_SPARK_JARS": jars},
        slots=2,
        warm_up_kafka=kafka_broker,
    )
    (container,) = pod_manifest(plan, "drv_1", "dedicated", "srv_1", "uid")["spec"]["containers"]
    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as api:
        Thread(target=api.serve_forever, daemon=True).start()
        given = tmp_path / "given"  # what the pod's first container copies
        given.mkdir()
        given.chmod(0o777)
        (given / "token").write_text("t")
        (given / "url").write_text(f"http://127.0.0.1:{api.server_address[1]}")
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        places = ["--volume", f"{given}:{mounts.pop('leat-own')}"]
        places += [part for place in mounts.values() for part in ("--tmpfs", f"{place}:mode=1777,exec")]
        named = [part for one in container["env"] for part in ("--env", f"{one['name']}={one['value']}")]
        program, *arguments = container["command"]
        argv = [*RUN, "--rm", "--network", "host", *CONFINED, *places, *named, "--entrypoint", program, IMAGE]
        done = subprocess.run(
            [*argv, *arguments], capture_output=True, text=True, timeout=START_SECONDS * 2, check=False
        )
        api.shutdown()
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert Api.told[-1]["state"] == "idle", Api.told
    assert "warming up did not finish" not in said, said
    assert "Read-only file system" not in said, said
    assert not (given / "token").exists(), "no code of users finds it"
