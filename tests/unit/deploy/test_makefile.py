"""What the Makefile hands on to everything that it starts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_bytecode_is_kept_whatever_the_image_of_python_says() -> None:
    """Else each of the hundreds of processes of a run compiles every module again."""
    shown = subprocess.run(
        ["make", "--no-print-directory", "--eval", "shown: ; @env", "shown"],
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    names = {line.partition("=")[0] for line in shown.stdout.splitlines()}
    assert "PATH" in names
    assert "PYTHONDONTWRITEBYTECODE" not in names
