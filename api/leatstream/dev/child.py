"""A child process that ends with its parent, and the record that finds a left-over one at the next start."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import psutil

from leatstream.dev import tether

STOP_GRACE = 15.0  # seconds from SIGTERM to SIGKILL


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """A process beyond doubt: ids are used again, the pair of id and start time is not.

    Attributes:
        pid: process id.
        create_time: seconds since the epoch, as psutil gives it.
    """

    pid: int
    create_time: float

    @classmethod
    def of(cls, pid: int) -> Self:
        """Mark a running process."""
        return cls(pid, psutil.Process(pid).create_time())

    @classmethod
    def mine(cls) -> Self:
        """Mark this process."""
        return cls.of(os.getpid())

    def find(self) -> psutil.Process | None:
        """The process, if it still runs."""
        try:
            process = psutil.Process(self.pid)
            # Derived from the time of boot, which moves a little when the clock is corrected.
            same = abs(process.create_time() - self.create_time) < 2.0
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None

    def to_dict(self) -> dict[str, float]:
        """As JSON object."""
        return asdict(self)


class Child:
    """A started command whose life is tied to this process.

    Attributes:
        mark: the command's own process, not the tether's.
    """

    def __init__(
        self,
        argv: Sequence[str],
        log_file: Path,
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        """Start it; standard output and error are appended to ``log_file``.

        Raises:
            OSError: the command cannot be started.
        """
        with log_file.open("ab") as log:
            self._tether = subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(tether.__file__)), *argv],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=env,
                cwd=cwd,
                # Ctrl-C at the terminal must not reach it: this process decides about the order of the end.
                start_new_session=True,
            )
        with self._tether.stdout or open(os.devnull, "rb") as first_line:
            line = first_line.readline()
        if not line:
            raise OSError(f"{argv[0]} could not be started; see {log_file}")
        pid = int(line)
        try:
            self.mark = ProcessMark.of(pid)
        except psutil.NoSuchProcess:  # ended at once; exit_status says the rest
            self.mark = ProcessMark(pid, 0.0)

    @property
    def exit_status(self) -> int | None:
        """None while running; 128 + n when signal n ended it, as shells say it."""
        return self._tether.poll()

    def stop(self, grace: float = STOP_GRACE) -> None:
        """End the command, by SIGKILL after ``grace`` seconds, and wait for it. May be called twice."""
        end_process(self.mark, grace)
        if self._tether.stdin is not None:
            with contextlib.suppress(OSError):
                self._tether.stdin.close()
        try:
            self._tether.wait(5)
        except subprocess.TimeoutExpired:
            self._tether.kill()
            self._tether.wait()


def end_process(mark: ProcessMark, grace: float = STOP_GRACE) -> bool:
    """End a process if it still runs: SIGTERM, then SIGKILL; returns whether there was one."""
    process = mark.find()
    if process is None:
        return False
    with contextlib.suppress(psutil.NoSuchProcess):
        process.terminate()
        try:
            process.wait(grace)
        except psutil.TimeoutExpired:
            process.kill()
            process.wait(grace)
    return True


def read_mark(path: Path) -> ProcessMark | None:
    """Read a recorded mark (members ``pid`` and ``create_time``), or None when there is none to be read."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return ProcessMark(int(data["pid"]), float(data["create_time"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
