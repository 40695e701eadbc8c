"""Where leatstream keeps what it can fetch again: jars, wrappers, templates."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import platformdirs

CACHE_VARIABLE = "LEATSTREAM_CACHE_DIR"
_LOOK = 0.1  # seconds


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
def exclusive(name: str, given_up: Event | None = None) -> Iterator[bool]:
    """Hold the cache's lock ``name``; waits for other processes and threads.

    The kernel drops the lock with its holder, so a killed process never blocks the next one.

    Args:
        name: of the lock.
        given_up: waits no longer once it is set.

    Yields:
        Whether it is held: False only where it was given up.
    """
    with (cache_dir() / f"{name}.lock").open("w") as handle:
        if given_up is None:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield True
            return
        held = False
        while not held and not given_up.is_set():
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = True
            if not held:
                given_up.wait(_LOOK)
        yield held
