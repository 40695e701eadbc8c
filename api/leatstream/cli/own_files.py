"""Files that only their owner may read: statements, tokens."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def open_own(path: Path, flags: int) -> int:
    """Open one's own regular file with mode 0600; no link is followed."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        os.close(descriptor)
        raise PermissionError(None, "it is no file of this account")
    if stat.S_IMODE(found.st_mode) != 0o600:
        os.fchmod(descriptor, 0o600)
    return descriptor
