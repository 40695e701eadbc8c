"""``leat env``: lines that a shell reads, from the ready file of a running ``leat dev``."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Leat = Callable[..., Any]
TOKEN = "leat_a_b'c\\d $HOME"
READY: dict[str, Any] = {
    "url": "http://127.0.0.1:8585",
    "token": TOKEN,
    "kafka_bootstrap": "127.0.0.1:9092",
    "kinesis_endpoint": "http://127.0.0.1:4566",
}
VARIABLES = {
    "LEATSTREAM_URL": READY["url"],
    "LEATSTREAM_TOKEN": TOKEN,
    "LEATSTREAM_KAFKA": READY["kafka_bootstrap"],
    "LEATSTREAM_KINESIS": READY["kinesis_endpoint"],
}


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory below that of a ``leat dev``; variables of another server are set."""
    data = tmp_path / ".leatstream"
    data.mkdir()
    ready = data / "ready.json"
    ready.touch(0o600)
    ready.write_text(json.dumps(READY | {"pid": os.getpid()}))
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    for name in ("LEATSTREAM_URL", "LEATSTREAM_TOKEN"):
        monkeypatch.setenv(name, "https://other.example.com")
    return ready


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_shell_reads_the_lines_as_they_are_meant(leat: Leat, shell: str) -> None:
    script = leat("env").out + "\n" + "\n".join(f'printf "%s\\0" "${name}"' for name in VARIABLES)
    done = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split("\0")[:-1] == list(VARIABLES.values())


@pytest.mark.usefixtures("running")
def test_each_shell_is_told_how_to_read_them(leat: Leat) -> None:
    assert leat("env").out.splitlines()[-1] == '# Run: eval "$(leat env)"'
    fish = leat("env", "--shell", "fish").out.splitlines()
    assert fish[1] == "set -gx LEATSTREAM_TOKEN 'leat_a_b\\'c\\\\d $HOME'"
    power = leat("env", "--shell", "powershell").out.splitlines()
    assert power[1] == "$Env:LEATSTREAM_TOKEN = 'leat_a_b''c\\d $HOME'"


@pytest.mark.usefixtures("running")
def test_programs_read_json(leat: Leat) -> None:
    assert json.loads(leat("env", "-o", "json").out) == VARIABLES
    assert leat("env", "-o", "csv").status == 2


def test_without_a_stack_nothing_is_printed(leat: Leat, running: Path) -> None:
    running.unlink()
    found = leat("env")
    assert (found.status != 0, found.out) == (True, "")
    assert "No `leat dev` runs in this directory or above" in found.err


def test_a_file_of_somebody_else_is_not_used(leat: Leat, running: Path) -> None:
    running.chmod(0o644)
    found = leat("env")
    assert (found.status != 0, found.out) == (True, "")
    assert "0600" in found.err
