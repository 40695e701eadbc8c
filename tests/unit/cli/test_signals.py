"""What ``leat serve`` does with signals."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import os, signal, threading
from leatstream.cli.serving import tell_stacks_when_asked

def standing_still():
    threading.Event().wait(30)

tell_stacks_when_asked()
threading.Thread(target=standing_still, daemon=True).start()
os.kill(os.getpid(), signal.SIGUSR1)
print("goes on")
"""


def test_a_server_tells_what_its_threads_do_and_goes_on() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, timeout=60
    )
    assert "in standing_still" in done.stderr
    assert done.stdout == "goes on\n"
