"""Directories that are gone after a test, in memory where the machine has that."""

from __future__ import annotations

import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")


def memory_directory() -> tempfile.TemporaryDirectory[str]:
    """For a catalog: on a disk it waits for that at every commit, most of a contract test's time."""
    return tempfile.TemporaryDirectory(prefix="leat-", dir=_MEMORY if _MEMORY.is_dir() else None)
