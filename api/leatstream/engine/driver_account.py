"""The account that drivers of this machine run as, where it is not the server's own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leatstream.errors import StackError, sentence

_SETTING = "LEATSTREAM_DRIVER_USER"
# What a driver must be able to do: be started at all, and use its interpreter, packages, jars and Java.
_PROBE = (
    "import os, sys\n"
    "import leatstream_jobs\n"
    "bad = [one for one in sys.argv[1:] if not os.access(one, os.R_OK)]\n"
    "sys.exit(', '.join(bad[:3]) + ' cannot be read' if bad else 0)\n"
)
_PROBE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class DriverAccount:
    """An account of this machine.

    Attributes:
        name: of the account.
        uid, gid: its numbers.
        groups: all groups that it is in.
    """

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]

    @property
    def is_own(self) -> bool:
        """Whether the server itself runs as this account, so that nothing has to change."""
        return self.uid == os.geteuid()

    def starting(self) -> dict[str, Any]:
        """Options of ``subprocess`` that start a process as this account."""
        if self.is_own:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": list(self.groups), "umask": 0o077}

    def variables(self, home: Path) -> dict[str, str]:
        """What its environment has in place of the server's: a home, as the server's own is closed to it."""
        return {} if self.is_own else {"HOME": str(home), "USER": self.name, "LOGNAME": self.name}

    def give(self, path: Path) -> None:
        """Make a file or directory that the server has made belong to it; a link is not followed."""
        if not self.is_own:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def give_all(self, root: Path) -> None:
        """Make a directory, with all that is in it, belong to it, unless it does already."""
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.is_own or root.stat().st_uid == self.uid:
            return
        for folder, names, files in os.walk(root):
            for name in (*names, *files):
                self.give(Path(folder, name))
        self.give(root)  # the last: a start that was cut off begins again

    @contextlib.contextmanager
    def files(self) -> Iterator[None]:
        """Use files with its rights in this thread: a link that its code has laid leads nowhere else.

        What is made meanwhile belongs to it.
        """
        if self.is_own:
            yield
            return
        before = os.geteuid(), os.getegid()
        _use_files_as(self.uid, self.gid)
        try:
            yield
        finally:
            _use_files_as(*before)

    def check(self, readable: Mapping[str, str]) -> None:
        """See that drivers can be started as this account, and can read what they need.

        Args:
            readable: variables of drivers; those that hold paths are looked at.

        Raises:
            StackError: ``part-failed``: the server may not do so, or the account cannot read something.
        """
        if self.is_own:
            return
        paths = [path for value in readable.values() for path in _paths(value)]
        argv = [sys.executable, "-c", _PROBE, *paths]
        given: Any = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "cwd": "/"}
        try:
            done = subprocess.run(
                argv, **given, env=self._environment(), timeout=_PROBE_SECONDS, **self.starting()
            )
        except PermissionError as error:
            if os.geteuid() != 0:
                detail = f"{_SETTING} is {self.name}, and this server may not start processes as it"
                hint = (
                    "Run the server as root, with the capabilities SETUID, SETGID and CHOWN, or without it."
                )
                raise StackError("part-failed", sentence(detail), hint=hint) from error
            raise self._closed(f"{error.filename or sys.executable} cannot be run") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise self._closed(str(error)) from error
        if done.returncode:
            raise self._closed(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "it ends")

    def _closed(self, why: str) -> StackError:
        return StackError(
            "part-failed",
            sentence(f"Drivers cannot run as {self.name} ({_SETTING}): {why}"),
            hint=f"Keep Python, Java and LEATSTREAM_CACHE_DIR where the account {self.name} can read them.",
        )

    def _environment(self) -> dict[str, str]:
        names = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "LANG")
        return {name: os.environ[name] for name in names if name in os.environ}


def find_account(name: str) -> DriverAccount | None:
    """The account of a name; None for no name.

    Raises:
        StackError: ``part-failed``, there is no such account, or it is root.
    """
    if not name:
        return None
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        hint = f"Create it, such as with useradd --system {name}, or name another one."
        detail = f"There is no account {name} on this machine, which {_SETTING} names"
        raise StackError("part-failed", sentence(detail), hint=hint) from None
    if found.pw_uid == 0:
        hint = "Name an account without rights, such as one made by useradd --system."
        raise StackError("part-failed", f"{_SETTING} must not be root.", hint=hint)
    groups = tuple(os.getgrouplist(name, found.pw_gid))
    return DriverAccount(name, found.pw_uid, found.pw_gid, groups)


def _paths(value: str) -> list[str]:
    """The absolute paths in a variable, such as a list of jars."""
    return [part for one in value.split(",") for part in one.split(":") if part.startswith("/")]


def _use_files_as(uid: int, gid: int) -> None:
    """Linux keeps these numbers for each thread, and drops root's rights on files with them.

    ``os`` has no name for the calls, and its ``seteuid`` would change all threads.
    """
    libc = ctypes.CDLL(None)
    libc.setfsgid(gid)
    libc.setfsuid(uid)
    # They report no failure; a second call says which number is in use.
    if libc.setfsuid(-1) != uid or libc.setfsgid(-1) != gid:
        raise PermissionError(1, "The server may not use files as the account of drivers")
