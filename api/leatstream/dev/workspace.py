"""The directory a stack works in: who owns it, and what is written there for others."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO, Any

from leatstream.dev.child import ProcessMark, read_mark
from leatstream.dev.ready_file import READY_FILE
from leatstream.errors import StackError

_OWNER_FILE = "owner.json"
_LOCK_FILE = "owner.lock"
_EPHEMERAL = "leatstream-dev-"


class Workspace:
    """A data directory held by this process.

    The kernel's lock ends with its holder, so a killed stack never blocks the next one; the owner file
    beside it only says who holds it.

    Attributes:
        path: the directory.
    """

    def __init__(self, directory: Path | None) -> None:
        """Describe it.

        Args:
            directory: where to work; None = a directory of its own that ``release`` removes.
        """
        self._ephemeral = directory is None
        self._given = directory
        self._lock: IO[str] | None = None
        self.path = Path() if directory is None else directory.expanduser().resolve()

    def acquire(self) -> None:
        """Make and own the directory.

        Raises:
            StackError: ``already-running`` with the owner's process id and URL.
        """
        if self._ephemeral:
            sweep()
            self.path = Path(tempfile.mkdtemp(prefix=_EPHEMERAL))
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = _try_lock(self.path)
        if lock is None:
            raise _running(self.path)
        self._lock = lock
        (self.path / READY_FILE).unlink(missing_ok=True)  # of a killed one
        self.publish(url=None)

    def publish(self, **facts: Any) -> None:
        """Tell a second start who is here: process id, start time and ``facts`` such as the URL."""
        write_private(self.path / _OWNER_FILE, {**ProcessMark.mine().to_dict(), **facts})

    def release(self) -> None:
        """Give the directory free; an ephemeral one is removed. May be called twice."""
        lock, self._lock = self._lock, None
        if lock is None:
            return
        (self.path / READY_FILE).unlink(missing_ok=True)
        (self.path / _OWNER_FILE).unlink(missing_ok=True)
        if self._ephemeral:
            shutil.rmtree(self.path, ignore_errors=True)
        lock.close()


def write_private(path: Path, content: dict[str, Any]) -> None:
    """Write JSON in one step, readable by its owner only (mode 0600)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # made with mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
            json.dump(content, handle)
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def sweep() -> None:
    """Remove ephemeral directories whose owner was killed."""
    for left in Path(tempfile.gettempdir()).glob(f"{_EPHEMERAL}*"):
        mark = read_mark(left / _OWNER_FILE)
        if mark is None or mark.find() is not None:
            continue  # one that is just being made has no owner file yet
        lock = _try_lock(left)
        if lock is not None:
            shutil.rmtree(left, ignore_errors=True)
            lock.close()


def _try_lock(directory: Path) -> IO[str] | None:
    handle = (directory / _LOCK_FILE).open("w")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.close()
        return None
    return handle


def _running(directory: Path) -> StackError:
    owner: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        owner = json.loads((directory / _OWNER_FILE).read_text(encoding="utf-8"))
    where = f" at {owner['url']}" if owner.get("url") else ", still starting"
    who = f"process {owner['pid']}" if owner.get("pid") else "another process"
    return StackError(
        "already-running",
        f"`leat dev` already runs over {directory}: {who}{where}.",
        hint="Use that one, stop it with Ctrl-C in its terminal (or kill "
        f"{owner.get('pid', 'its process id')}), or choose another --data-dir.",
        pid=owner.get("pid"),
        url=owner.get("url"),
    )
