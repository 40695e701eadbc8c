"""Runs a command that must not outlive its parent: ``python -I -S tether.py COMMAND...``.

The parent holds the other end of this process's standard input. When the parent ends, by whatever way,
the pipe closes and the command is ended: SIGTERM, then SIGKILL. Nothing but the standard library: the
file is started on its own. The first line on standard output is the command's process id.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys

GRACE = 10.0  # seconds between SIGTERM and SIGKILL
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """On Linux also ask the kernel: covers a tether that is itself killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main(argv: list[str]) -> int:
    """Start the command, wait for it or for the parent, return its exit status (negative: the signal)."""
    command = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=2,
        start_new_session=True,
        preexec_fn=die_with_parent,
    )
    signal.signal(signal.SIGTERM, lambda *_: command.terminate())
    os.write(1, f"{command.pid}\n".encode())
    os.close(1)
    while command.poll() is None:
        ready, _, _ = select.select([0], [], [], 0.2)
        if ready and not os.read(0, 1):
            return end(command)
    return command.returncode


def end(command: subprocess.Popen[bytes]) -> int:
    """End the command and return its exit status."""
    command.terminate()
    try:
        return command.wait(GRACE)
    except subprocess.TimeoutExpired:
        command.kill()
        return command.wait()


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.exit(status if status >= 0 else 128 - status)
