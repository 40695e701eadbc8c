"""A driver is known by its mark, and nothing else is ever ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from leatstream.engine.processes import DRIVER_MARK, DriverCommand, LocalLauncher, end_driver, is_running
from leatstream.errors import EngineError

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
    deadline = time.monotonic() + 20
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
    deadline = time.monotonic() + 20
    while not (children := psutil.Process(parent.pid).children()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    parent.kill()
    parent.wait()
    end_driver("drv_c", parent.pid, 0)
    assert not [c for c in children if c.is_running() and c.status() != psutil.STATUS_ZOMBIE]


def test_a_driver_gets_no_secret_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import psutil

    monkeypatch.setenv("LEATSTREAM_BOOTSTRAP_TOKEN", "leat_secret")
    monkeypatch.setenv("LEATSTREAM_CATALOG_URL", "postgresql://u:secret@h/d")
    sleeper = tmp_path / "python"
    sleeper.write_text("#!/bin/sh\nexec sleep 60\n")
    sleeper.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(sleeper))
    command = DriverCommand(tmp_path / "url", tmp_path / "work", tmp_path / "logs", {"LEATSTREAM_X": "1"}, 2)
    process = command.start("drv_d", "dedicated", "the-token")
    try:
        deadline = time.monotonic() + 20
        # Right after its start a process has no environment to read yet.
        while DRIVER_MARK not in (environment := psutil.Process(process.pid).environ()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert not [k for k, v in environment.items() if "secret" in v and not k.startswith("PYTEST_")]
        assert environment["LEATSTREAM_X"] == "1"
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
