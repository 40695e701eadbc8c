"""A test run that is interrupted leaves nothing alive, whatever ended it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from leatstream.dev.child import ProcessMark

ROOT = Path(__file__).resolve().parents[3]
HOLDS = ROOT / "tests" / "support" / "holds_services.py"


@pytest.mark.parametrize(
    ("number", "fixtures", "more"),
    [
        (signal.SIGINT, "postgres", ()),
        pytest.param(signal.SIGTERM, "postgres", (), marks=pytest.mark.long),
        (signal.SIGKILL, "postgres,kafka_broker", ()),
        pytest.param(
            signal.SIGKILL,
            "postgres,kafka_broker,schema_registry,leatstream_server",
            (),
            marks=pytest.mark.long,
        ),
        (signal.SIGKILL, "postgres", ("--numprocesses", "1")),
    ],
    ids=["Ctrl-C", "SIGTERM", "kill -9", "kill -9 of everything", "kill -9 of the controller"],
)
def test_a_run_that_is_ended_leaves_nothing(
    tmp_path: Path,
    eventually: Callable[..., Any],
    number: signal.Signals,
    fixtures: str,
    more: tuple[str, ...],
) -> None:
    report, log = tmp_path / "held.json", tmp_path / "run.log"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'base'}"]
    with log.open("wb") as output:
        runner = subprocess.Popen(
            [*command, *more, str(HOLDS)],
            cwd=ROOT,
            env=kept | {"HELD_FILE": str(report), "HELD_FIXTURES": fixtures},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        eventually(lambda: report.exists() or runner.poll() is not None, 280, "the services' start")
        assert runner.poll() is None, log.read_text()
        held = [(ProcessMark(pid, born), name) for pid, born, name in json.loads(report.read_text())]
        # Else the test proves nothing.
        assert {name for _, name in held} >= {"python", "postgres"}
        runner.send_signal(number)
        eventually(
            lambda: not [name for mark, name in held if mark.find() is not None], 60, "the services' end"
        )
        assert runner.wait(60) != 0
    finally:
        if runner.poll() is None:
            runner.kill()
        runner.wait()


def test_nothing_but_the_run_s_own_is_ended() -> None:
    """A process of another run, which has another mark, lives on."""
    from run_reaper import MARK, end_all, marked

    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    mine, other = (subprocess.Popen(sleep, env=os.environ | {MARK: mark}) for mark in ("mine", "other"))
    try:
        end_all("mine")
        assert mine.wait(0) == -signal.SIGTERM
        assert [process.pid for process in marked("other")] == [other.pid]
        assert psutil.pid_exists(other.pid)
    finally:
        for process in (mine, other):
            process.kill()
            process.wait()
