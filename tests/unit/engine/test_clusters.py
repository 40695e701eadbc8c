"""What a driver on a cluster is told. No cluster is asked: YARN's settings are tested here and nowhere else."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from leatstream.engine.clusters import Cluster
from leatstream.engine.processes import DriverCommand
from leatstream.errors import StackError
from leatstream_jobs.runtime import session
from leatstream_jobs.runtime.shipped_code import pack


def standalone(**more: Any) -> Cluster:
    return Cluster(kind="standalone", **{"master": "spark://127.0.0.1:7077", **more})


def test_a_standalone_cluster_gives_each_query_so_many_executors() -> None:
    conf = standalone(executors=3, executor_cores=4, executor_memory="2g").spark_conf()
    assert conf["spark.master"] == "spark://127.0.0.1:7077"
    assert conf["spark.submit.deployMode"] == "client"
    assert (conf["spark.executor.instances"], conf["spark.executor.cores"]) == ("3", "4")
    assert conf["spark.cores.max"] == "12"
    assert conf["spark.executor.memory"] == "2g"
    assert conf["spark.driver.host"] == "127.0.0.1", "the address on the way to the master"
    assert conf["spark.driver.bindAddress"] == "127.0.0.1", "no other network can reach it"
    named = standalone(driver_host="driver.example").spark_conf()
    assert (named["spark.driver.host"], named["spark.driver.bindAddress"]) == ("driver.example", "0.0.0.0")


def test_yarn_is_told_queue_kerberos_and_tag() -> None:
    cluster = Cluster(
        kind="yarn",
        hadoop_conf="/etc/hadoop",
        driver_host="edge",
        yarn_queue="streams",
        yarn_principal="leat@EXAMPLE",
        yarn_keytab="/etc/leat.keytab",
        conf={"spark.yarn.archive": "hdfs:///spark.zip"},
    )
    assert cluster.spark_conf() == {
        "spark.master": "yarn",
        "spark.submit.deployMode": "client",
        "spark.executor.instances": "2",
        "spark.executor.cores": "2",
        "spark.executor.memory": "1g",
        "spark.driver.host": "edge",
        "spark.driver.bindAddress": "0.0.0.0",
        "spark.dynamicAllocation.enabled": "false",
        "spark.yarn.tags": "leatstream",
        "spark.yarn.queue": "streams",
        "spark.kerberos.principal": "leat@EXAMPLE",
        "spark.kerberos.keytab": "/etc/leat.keytab",
        "spark.yarn.archive": "hdfs:///spark.zip",
    }
    assert not {
        k for k in Cluster(kind="yarn", hadoop_conf="/c").spark_conf() if "kerberos" in k or "queue" in k
    }


def test_all_that_is_wrong_is_told_at_once() -> None:
    secret = "hunter2"
    conf = {"spark.hadoop.fs.s3a.secret.key": secret, "spark.master": "local[1]", "memory": "1g"}
    conf["spark.executor.extraJavaOptions"] = f"-Xss1m -Djavax.net.ssl.trustStorePassword={secret}"
    with pytest.raises(StackError) as told:
        standalone(master="yarn", executors=0, yarn_keytab="/k", conf=conf).spark_conf()
    text = str(told.value)
    for part in ("LEATSTREAM_SPARK_MASTER", "LEATSTREAM_EXECUTORS", "LEATSTREAM_YARN_PRINCIPAL"):
        assert part in text
    for part in ("fs.s3a.secret.key", "spark.executor.extraJavaOptions in", "spark.master in", "memory in"):
        assert part in text
    assert secret not in text
    with pytest.raises(StackError, match="HADOOP_CONF_DIR"):
        Cluster(kind="yarn").spark_conf()


def test_a_file_that_holds_a_secret_is_none() -> None:
    """Spark's own traffic is kept closed by one, and its path may be read by anybody."""
    conf = {"spark.authenticate": "true", "spark.authenticate.secret.file": "/etc/spark/secret"}
    assert standalone(conf=conf).spark_conf().items() >= conf.items()
    for key, value in (
        ("spark.authenticate.secret", "hunter2"),
        ("spark.authenticate.secretfile", "hunter2"),
        ("spark.x.file", "a?password=hunter2"),
    ):
        with pytest.raises(StackError, match="looks like a secret"):
            standalone(conf={key: value}).spark_conf()


def test_what_a_driver_is_told_wins_in_its_session(tmp_path: Path) -> None:
    told = standalone().environment()
    found = session.settings(tmp_path, 4, told)
    assert found["spark.master"] == "spark://127.0.0.1:7077"
    assert found["spark.sql.ansi.enabled"] == "true"
    assert session.settings(tmp_path, 4, {})["spark.master"] == "local[4]"


def test_only_drivers_of_queries_go_to_the_cluster(tmp_path: Path) -> None:
    """The process that is started shows its own environment."""
    package = tmp_path / "path" / "leatstream_jobs"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("import json, os; print(json.dumps(dict(os.environ)))")
    command = DriverCommand(
        url_file=tmp_path / "url",
        work_dir=tmp_path / "work",
        log_dir=tmp_path / "logs",
        environment={"PYTHONPATH": str(package.parent), "LEATSTREAM_DRIVER_MEMORY": "1g"},
        slots=1,
        cluster={"LEATSTREAM_SPARK_CONF": "{}"},
    )
    for role in ("analyzer", "dedicated"):
        assert command.start(f"drv_{role}", role, "t").wait(30) == 0
    seen = {
        role: json.loads((tmp_path / "logs" / f"drv_{role}.log").read_text())
        for role in ("analyzer", "dedicated")
    }
    assert seen["dedicated"]["LEATSTREAM_SPARK_CONF"] == "{}"
    assert "LEATSTREAM_SPARK_CONF" not in seen["analyzer"]
    assert {s["LEATSTREAM_DRIVER_MEMORY"] for s in seen.values()} == {"1g"}


def test_the_shipped_archive_is_importable_by_itself(tmp_path: Path) -> None:
    archive = tmp_path / "code.zip"
    pack(archive)
    with zipfile.ZipFile(archive) as packed:
        assert not [name for name in packed.namelist() if "__pycache__" in name]
    program = (
        f"import sys; sys.path.insert(0, {str(archive)!r});"
        "import leatstream.connectors.kafka.transactions as a, leatstream_jobs.attempt.run_query as b;"
        "print(a.__file__); print(b.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert [line.startswith(str(archive)) for line in done.stdout.split()] == [True, True]
