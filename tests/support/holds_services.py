"""A test that never ends, for ``test_interrupted_runs``: it holds what a run starts, and reports the processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
from run_reaper import MARK, marked

from leatstream.engine.driver_environment import passed

_STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "signal.signal(signal.SIGINT, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
)


def test_holds_services(request: Any) -> None:
    for name in os.environ["HELD_FIXTURES"].split(","):
        request.getfixturevalue(name)
    # As a driver is started: in a session of its own, with the part of the environment that drivers get.
    stubborn = subprocess.Popen(
        [sys.executable, "-c", _STUBBORN],
        env=passed(os.environ),
        start_new_session=True,
        stdout=subprocess.PIPE,
    )
    assert stubborn.stdout is not None
    stubborn.stdout.readline()
    # Daemons such as PostgreSQL are no children of this process.
    held = {process.pid: process for process in psutil.Process().children(recursive=True)}
    held |= {process.pid: process for process in marked(os.environ[MARK])}
    report = Path(os.environ["HELD_FILE"])
    beside = report.with_suffix(".new")
    beside.write_text(json.dumps([(p.pid, p.create_time(), p.name()) for p in held.values()]))
    beside.replace(report)
    time.sleep(600)
