"""Checkpoints on a real HDFS and by s3a, and executors on a real YARN: ``pytest tests/manual/hadoop.py``.

By hand, as the jars have 80 MB and YARN takes its time; the port's own tests ask the same Java client in CI. The
cluster is one JVM of local processes' parts (``tests/support/hadoop_cluster.py``): no Kerberos, no second name node.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pyspark
import pytest
from aws_server import REGION, aws_server, s3_of
from hadoop_cluster import HadoopCluster, hadoop_cluster, s3a_jars, write_site
from leat_server import LOCAL_STORES, LeatstreamServer, stop_process
from playground import Playground, playground

from leatstream.dev.ports import free_ports
from leatstream.services.environment.authorization import mint_token

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]
LONG = 300.0
COUNTS = "SELECT k, count(*) AS c FROM numbers GROUP BY k"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HadoopCluster]:
    with hadoop_cluster(tmp_path_factory.mktemp("hadoop")) as running:
        yield running


@pytest.fixture(params=["local", "yarn"])
def launcher(request: pytest.FixtureRequest, cluster: HadoopCluster) -> dict[str, str]:
    """Settings of a server that runs its jobs there."""
    if request.param == "local":
        return {}
    cluster.start_yarn()
    conf = {
        "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent}/jars/*",
        "spark.yarn.am.memory": "256m",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    return {
        "LEATSTREAM_LAUNCHER": "yarn",
        "LEATSTREAM_EXECUTORS": "1",
        "LEATSTREAM_EXECUTOR_MEMORY": "512m",
        "LEATSTREAM_SPARK_CONF": json.dumps(conf),
    }


Serve = Callable[..., LeatstreamServer]


@pytest.fixture
def serve(kafka_broker: str, tmp_path: Path, eventually: Any) -> Iterator[Serve]:
    """Starts a server with these settings, again if it was there before."""
    token, (port,) = mint_token()[0], free_ports(1)
    own = {
        **LOCAL_STORES,
        "LEATSTREAM_DATA_DIR": str(tmp_path / "data"),
        "LEATSTREAM_BOOTSTRAP_TOKEN": token,
        "LEATSTREAM_PORT": str(port),
        "LEATSTREAM_WARM_DRIVERS": "0",
    }
    started: list[subprocess.Popen[bytes]] = []

    def start(**settings: str) -> LeatstreamServer:
        argv = [sys.executable, "-m", "leatstream.cli.main", "serve"]
        with (tmp_path / "server.log").open("ab") as log:
            told = {"stdout": log, "stderr": log, "stdin": subprocess.DEVNULL, "start_new_session": True}
            started.append(subprocess.Popen(argv, env={**os.environ, **own, **settings}, **told))
        server = LeatstreamServer(f"http://127.0.0.1:{port}", token, kafka_broker, started[-1], tmp_path)
        eventually(server.warm, LONG, "the server's start")
        return server

    yield start
    for process in started:
        stop_process(process)
    print((tmp_path / "server.log").read_text()[-3000:])


def counted(play: Playground, sink: str, count: int) -> None:
    """Wait until all counts are told; a batch that an outage cut off tells its own once more."""
    found = [row["c"] for row in play.consume(sink, count, LONG, distinct="c")]
    assert (set(found), found[-1]) == (set(range(1, count + 1)), count)


def one_by_one(play: Playground, topic: str, sink: str, counts: range) -> None:
    """Produce so that each count is told."""
    for count in counts:
        play.produce(topic, [{"k": 0}])
        counted(play, sink, count)


def test_queries_live_on_hdfs(
    serve: Serve,
    cluster: HadoopCluster,
    launcher: dict[str, str],
    tmp_path: Path,
    eventually: Any,
) -> None:
    root = f"/{tmp_path.name}"
    settings = {"LEATSTREAM_CHECKPOINT_ROOT": cluster.url + root, "HADOOP_CONF_DIR": str(cluster.conf_dir)}
    settings |= launcher
    server = serve(**settings)
    with playground(server, "hdfs") as play:
        numbers = play.stream("numbers", "k BIGINT")
        first, sink = f"{play.name}_first", f"{play.name}.first"
        made = run(play, "first", f"CREATE CHANGELOG first WITH ('topic'='{sink}') AS {COUNTS}")
        assert made["status"]["state"] == "running", made["status"]
        one_by_one(play, numbers, sink, range(1, 4))
        folder = f"{root}/queries/{made['id']}"
        assert {"commits", "metadata", "offsets", "state"} <= set(cluster.names(f"{folder}/g1"))
        if launcher:
            assert cluster.applications() == 1

        # Its driver is killed, and the next goes on with the state.
        psutil.Process(play.query(first)["status"]["job"]["pid"]).kill()
        one_by_one(play, numbers, sink, range(4, 6))
        assert play.query(first)["status"]["job"]["attempt"] == 2

        # Away, it is waited for: the query says why it does not run, and goes on.
        cluster.stop_hdfs()
        play.produce(numbers, [{"k": 0}])
        why = eventually(lambda: outage(play, first), LONG, "word of the outage")
        assert "Connection refused" in why or "does not answer" in why, why
        cluster.start_hdfs()
        counted(play, sink, 6)
        play.wait(first, "running", seconds=LONG)

        # A savepoint, and a query that begins with it.
        play.sql(f"TERMINATE QUERY {first} WITH SAVEPOINT {play.name}_s")
        saved = eventually(lambda: savepoint(play), LONG, "the savepoint")
        assert saved["offsets"] == {f"{play.name}.public.numbers": {numbers: {"0": 6}}}, saved
        assert "metadata" in cluster.names(f"{root}/savepoints/{saved['id']}")
        begin_with_savepoint(play, numbers, 7)

        # The old checkpoint goes once the new one is at work for long enough; a server that starts looks at once.
        play.sql(f"RESTART QUERY {first} FROM EARLIEST")
        assert play.consume(sink, 7, LONG, distinct="c")[-1]["c"] == 7
        eventually(
            lambda: cluster.names(f"{folder}/g2/commits"), LONG, "the first batch of the new checkpoint"
        )
        cluster.backdate(f"{folder}/g2/metadata", 2 * 86_400)

    assert stop_process(server.process) == 0
    assert not [
        p for p in psutil.process_iter(["cmdline"]) if str(cluster.conf_dir) in str(p.info["cmdline"])
    ]
    server = serve(**settings)
    eventually(lambda: cluster.names(folder) == ["g2"], LONG, "the end of the old checkpoint")
    with server.client() as http:
        play = Playground(http, server.kafka_bootstrap, play.name)
        # What is deleted while nobody answers goes when somebody does.
        cluster.stop_hdfs()
        assert http.delete(f"/v1/savepoints/{play.name}_s").status_code == 503
        for name in (first, f"{play.name}_second"):
            assert http.delete(f"/v1/queries/{name}").status_code == 202
        waits = lambda: (play.query(first)["status"]["message"] or "").startswith("what it leaves")  # noqa: E731
        eventually(waits, LONG, "word that the query waits for its checkpoint to go")
        cluster.start_hdfs()
        eventually(
            lambda: cluster.names(f"{root}/queries") == cluster.names(f"{root}/savepoints") == [],
            LONG,
            "the end of all files",
        )
        eventually(lambda: http.get("/v1/queries").json()["items"] == [], LONG, "the end of all queries")
        assert http.get("/v1/savepoints").json()["items"] == []
    assert stop_process(server.process) == 0
    if launcher:
        eventually(lambda: cluster.applications() == 0, LONG, "the end of all applications")


def test_queries_live_on_s3a(serve: Serve, tmp_path: Path, eventually: Any) -> None:
    """On moto's S3; jars and settings come as an operator gives them."""
    with aws_server() as address:
        site = {
            "fs.s3a.endpoint": address,
            "fs.s3a.endpoint.region": REGION,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": "false",
        }
        write_site(tmp_path / "conf/core-site.xml", site)
        s3 = s3_of(address)
        s3.create_bucket(Bucket="leat", CreateBucketConfiguration={"LocationConstraint": REGION})

        def keys(prefix: str) -> list[str]:
            found = s3.list_objects_v2(Bucket="leat", Prefix=prefix).get("Contents", [])
            return [one["Key"] for one in found if not one["Key"].endswith("/")]

        settings = {
            "LEATSTREAM_CHECKPOINT_ROOT": "s3a://leat/checkpoints",
            "HADOOP_CONF_DIR": str(tmp_path / "conf"),
            "SPARK_DIST_CLASSPATH": os.pathsep.join(map(str, s3a_jars())),
            "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "example",
            "LEATSTREAM_DRIVER_ENVIRONMENT": "AWS_*",
        }
        server = serve(**settings)
        with playground(server, "s3a") as play:
            numbers = play.stream("numbers", "k BIGINT")
            first, sink = f"{play.name}_first", f"{play.name}.first"
            made = run(play, "first", f"CREATE CHANGELOG first WITH ('topic'='{sink}') AS {COUNTS}")
            assert made["status"]["state"] == "running", made["status"]
            one_by_one(play, numbers, sink, range(1, 4))
            psutil.Process(play.query(first)["status"]["job"]["pid"]).kill()
            one_by_one(play, numbers, sink, range(4, 6))
            play.sql(f"TERMINATE QUERY {first} WITH SAVEPOINT {play.name}_s")
            saved = eventually(lambda: savepoint(play), LONG, "the savepoint")
            begin_with_savepoint(play, numbers, 6)
            assert keys(f"checkpoints/savepoints/{saved['id']}/metadata")
            play.http.delete(f"/v1/queries/{first}")
            play.http.delete(f"/v1/queries/{play.name}_second")
            assert play.http.delete(f"/v1/savepoints/{play.name}_s").status_code == 204
            eventually(lambda: keys("checkpoints/") == [], LONG, "the end of all files")
        assert stop_process(server.process) == 0


def run(play: Playground, name: str, sql: str) -> Any:
    """Create a query, and wait for as long as a cluster takes to give it executors."""
    body = {"sql": sql, **play.context}
    assert play.http.put(f"/v1/queries/{play.name}_{name}", json=body).status_code == 201
    return play.wait(f"{play.name}_{name}", "running", "failed", seconds=LONG)


def begin_with_savepoint(play: Playground, numbers: str, count: int) -> None:
    """A second query begins with the savepoint, and counts on from there."""
    sink = f"{play.name}.second"
    begun = run(
        play,
        "second",
        f"CREATE CHANGELOG second WITH ('topic'='{sink}') AS {COUNTS} "
        f"QUERY WITH ('from.savepoint'='{play.name}_s')",
    )
    assert begun["status"]["state"] == "running", begun["status"]
    play.produce(numbers, [{"k": 0}])
    assert play.consume(sink, 1, LONG)[0]["c"] == count


def outage(play: Playground, query: str) -> str | None:
    status = play.query(query)["status"]
    if status["state"] == "pending" and status["error"] is not None:
        assert status["error"]["retryable"], status["error"]
        return str(status["message"])
    assert status["state"] != "failed", status
    return None


def savepoint(play: Playground) -> Any:
    found = play.http.get(f"/v1/savepoints/{play.name}_s").json()
    assert found["state"] in ("pending", "ready"), found
    return found if found["state"] == "ready" else None
