"""Where leatstream keeps what it can fetch again: jars, wrappers, templates."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

CACHE_VARIABLE = "LEATSTREAM_CACHE_DIR"


def cache_dir() -> Path:
    """The per-user cache directory, made when it does not exist.

    Returns:
        ``$LEATSTREAM_CACHE_DIR`` if set, else the platform's own (``~/.cache/leatstream`` on Linux).
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    path = Path(chosen).expanduser().resolve() if chosen else Path(platformdirs.user_cache_dir("leatstream"))
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def exclusive(name: str) -> Iterator[None]:
    """Hold the cache's lock ``name``; waits for other processes and threads.

    The kernel drops the lock with its holder, so a killed process never blocks the next one.
    """
    with (cache_dir() / f"{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
