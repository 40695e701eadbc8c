"""A driver is known by its mark, and nothing else is ever ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deadlines import patient

from leatstream.engine import processes as module
from leatstream.engine.processes import DRIVER_MARK, DriverCommand, LocalLauncher, end_driver, is_running
from leatstream.errors import EngineError
from leatstream.launching import heaps, open_launcher
from leatstream.settings import Settings

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
PARENT = [
    sys.executable,
    "-c",
    "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    "time.sleep(60)",
]


def start(argv: list[str], driver: str | None) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **({DRIVER_MARK: driver} if driver else {})}
    return subprocess.Popen(argv, env=environment, start_new_session=True)


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def test_a_driver_is_told_from_a_process_that_took_its_number(
    processes: list[subprocess.Popen[bytes]],
) -> None:
    mine, other = start(SLEEP, "drv_a"), start(SLEEP, None)
    processes += [mine, other]
    deadline = time.monotonic() + patient(20)
    while not is_running("drv_a", mine.pid):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert not is_running("drv_b", mine.pid)
    assert not is_running("drv_a", other.pid)
    end_driver("drv_a", other.pid, 0)
    mine.wait(10)
    assert other.poll() is None, "a foreign process must live"
    assert not is_running("drv_a", mine.pid)


def test_children_go_with_a_driver_that_is_dead_already(processes: list[subprocess.Popen[bytes]]) -> None:
    import psutil

    parent = start(PARENT, "drv_c")
    processes.append(parent)
    deadline = time.monotonic() + patient(20)
    while not (children := psutil.Process(parent.pid).children()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    parent.kill()
    parent.wait()
    end_driver("drv_c", parent.pid, 0)
    assert not [c for c in children if c.is_running() and c.status() != psutil.STATUS_ZOMBIE]


def test_a_driver_gets_no_secret_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the server's environment it gets what is on a list, and what the server's settings name."""
    import psutil

    for name in (
        *(
            "LEATSTREAM_BOOTSTRAP_TOKEN",
            "LEATSTREAM_CATALOG_URL",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
        ),
        *("PGPASSWORD", "KUBECONFIG", "GOOGLE_APPLICATION_CREDENTIALS", "SPARK_AUTH_SECRET", "GH_PAT"),
    ):
        monkeypatch.setenv(name, "secret")
    kept = {"TZ": "UTC", "LC_ALL": "C", "JAVA_TOOL_OPTIONS": "-Da=b", "SPARK_DIST_CLASSPATH": "/x.jar"}
    kept |= {"HADOOP_CONF_DIR": "/conf", "PYTHONPATH": "/own", "no_proxy": "h", "MINE_KEY": "passed by name"}
    kept |= {"OTHER_1": "by its beginning"}
    for name, value in kept.items():
        monkeypatch.setenv(name, value)
    sleeper = tmp_path / "python"
    sleeper.write_text("#!/bin/sh\nexec sleep 60\n")
    sleeper.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(sleeper))
    more = {"LEATSTREAM_X": "1"}
    places = tmp_path / "url", tmp_path / "work", tmp_path / "logs"
    command = DriverCommand(*places, more, 2, inherited=("MINE_KEY", "OTHER_*"))
    process = command.start("drv_d", "dedicated", "the-token")
    try:
        deadline = time.monotonic() + patient(20)
        # Right after its start a process has no environment to read yet.
        while DRIVER_MARK not in (environment := psutil.Process(process.pid).environ()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert not [k for k, v in environment.items() if "secret" in v]
        assert {**kept, **more}.items() <= environment.items()
        assert not [k for k in environment if k.startswith("PYTEST_")]
        # The shell has become sleep by then or not; neither was given the token.
        assert "the-token" not in " ".join(psutil.Process(process.pid).cmdline())
        assert (tmp_path / "work" / "drv_d.token").stat().st_mode & 0o077 == 0
    finally:
        process.kill()
        process.wait()


def test_what_cannot_be_started_says_why_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))
    launcher = LocalLauncher(DriverCommand(tmp_path / "url", tmp_path / "work", tmp_path / "logs", {}, 2))
    with pytest.raises(EngineError, match="No such file or directory"):
        launcher.start("drv_e", "dedicated", "the-token")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.fixture
def launcher(tmp_path: Path) -> LocalLauncher:
    """Of drivers that were never started."""
    for name in ("work", "logs"):
        (tmp_path / name).mkdir()
    return LocalLauncher(DriverCommand(tmp_path / "url", tmp_path / "work", tmp_path / "logs", {}, 2))


def test_of_logs_the_newest_are_kept_and_all_of_drivers_that_live(
    launcher: LocalLauncher, tmp_path: Path
) -> None:
    logs = {n: tmp_path / "logs" / f"drv_{n:02}.log" for n in range(60)}
    for number, log in logs.items():
        log.write_text("x")
        os.utime(log, (1000 - number, 1000 - number))  # the last in the alphabet is the oldest
    (tmp_path / "work" / "drv_59").mkdir()
    (tmp_path / "work" / "drv_58.token").touch()  # it has just been started
    launcher.clear("drv_00")
    assert {number for number, log in logs.items() if log.exists()} == {*range(40), 58, 59}


def test_a_log_that_grows_too_large_keeps_its_end(
    launcher: LocalLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOG_BYTES", 1000)
    monkeypatch.setattr(module, "_LOG_END", 100)
    log = tmp_path / "logs" / "drv_a.log"
    launcher.bound_log("drv_a")
    with log.open("ab", buffering=0) as driver:
        driver.write(b"small\n")
        launcher.bound_log("drv_a")
        assert log.read_text() == "small\n"
        for number in range(200):
            driver.write(b"line %d\n" % number)
        launcher.bound_log("drv_a")
        driver.write(b"after\n")
    first, *lines = launcher.log("drv_a").splitlines()
    assert "larger than 1000 bytes" in first
    assert lines[-3:] == ["line 198", "line 199", "after"]
    assert 5 < len(lines) < 15
    assert lines[0] == f"line {201 - len(lines)}", "no line is cut"
    assert log.stat().st_size < 300


def test_what_drivers_begin_with_depends_on_their_role(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in [key for key in os.environ if key.startswith("LEATSTREAM_")]:
        monkeypatch.delenv(key)
    started: dict[str, dict[str, str]] = {}

    def start(argv: list[str], env: dict[str, str], **_: Any) -> Any:
        started[argv[argv.index("--role") + 1]] = env
        raise OSError("not now")

    monkeypatch.setattr("subprocess.Popen", start)

    def environments(**given: Any) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
        launcher = open_launcher(Settings(data_dir=tmp_path, **given), "s", tmp_path / "url", {})
        for role in ("dedicated", "shared", "analyzer"):
            with pytest.raises(EngineError):
                launcher.start("drv_r", role, "token")
        return started["dedicated"], started["shared"], started["analyzer"]

    options, workers = "LEATSTREAM_DRIVER_JVM_OPTIONS", "LEATSTREAM_JSON_WORKERS"
    dedicated, *others = environments()
    assert "TieredStopAtLevel" not in dedicated[options]
    assert dedicated[workers] == "0"
    for one in others:
        assert "-XX:TieredStopAtLevel=1" in one[options]
        assert workers not in one
    assert {one[options] for one in environments(driver_jvm_options="-Xint")} == {"-Xint"}
    assert environments(json_workers=True)[0][workers] == "1"
    needs = [heaps(Settings(json_workers=on)) for on in (True, False)]
    assert needs[0] is not None
    assert needs[1] is not None
    assert needs[0]("dedicated") > needs[1]("dedicated")
    assert needs[0]("analyzer") == needs[1]("analyzer")
