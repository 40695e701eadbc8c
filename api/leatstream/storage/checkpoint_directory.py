"""Checkpoints in a directory: on this machine's disk, or on one that all servers and drivers share."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from leatstream.errors import CheckpointError, sentence

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG)
_PART = ".part"  # of the name of a copy until all of it is on the disk


class _CopyFault(Exception):
    """Carries an OSError past ``shutil.copytree``, which keeps only the texts of those it meets."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class CheckpointDirectory:
    """Files of checkpoints below a directory (``ports.CheckpointFiles``).

    Args:
        root: the directory.
        rights: with which files are used, where they belong to another account.
    """

    def __init__(self, root: Path, rights: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._root, self._rights = root, rights

    def names(self, path: str) -> list[str]:
        """Names of what lies in a folder; none where there is no such folder."""
        try:
            with self._rights():
                return sorted(os.listdir(self._root / path))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def read(self, path: str) -> str:
        """The text of a small file; FileNotFoundError."""
        with self._rights():
            return (self._root / path).read_text(encoding="utf-8")

    def modified(self, path: str) -> float | None:
        """When a file was written last, seconds since 1970; None where there is no such file."""
        try:
            with self._rights():
                return (self._root / path).stat().st_mtime
        except FileNotFoundError:
            return None

    def holds(self, checkpoint: str) -> bool:
        """Whether a checkpoint is there."""
        with self._rights():
            return (self._root / checkpoint).exists()

    def copy(self, source: str, target: str, parts: Sequence[str] | None = None) -> None:
        """Copy a checkpoint, or parts of it; it gets its name when all of it is on the disk.

        Raises:
            FileNotFoundError: there is none, or it went meanwhile.
            CheckpointError: the disk is full, does not answer, or refuses.
        """
        with self._rights():
            self._copy(self._root / source, self._root / target, parts)

    @staticmethod
    def _copy(origin: Path, place: Path, parts: Sequence[str] | None) -> None:
        if place.exists():
            return
        beside = place.with_name(place.name + _PART)
        shutil.rmtree(beside, ignore_errors=True)
        try:
            beside.parent.mkdir(parents=True, exist_ok=True)
            if parts is None:
                _copy_folder(origin, beside)
            else:
                _copy_parts(origin, beside, parts)
            _put(beside, place)
        except OSError as error:
            shutil.rmtree(beside, ignore_errors=True)  # on a full disk half a copy would only be in the way
            raise _told(error) from error

    def remove(self, path: str) -> None:
        """Remove a folder with all that is in it, as far as the disk lets us; OSError for what stays.

        What a copy that was cut off has left beside it is deleted too: nobody else knows of that.
        """
        with self._rights():
            self._remove(self._root / path)

    @staticmethod
    def _remove(place: Path) -> None:
        shutil.rmtree(place.with_name(place.name + _PART), ignore_errors=True)
        try:
            shutil.rmtree(place)
        except OSError:
            shutil.rmtree(place, ignore_errors=True)
            if place.exists():
                raise

    def close(self) -> None:
        """Nothing is held open."""


def _copy_parts(source: Path, target: Path, parts: Sequence[str]) -> None:
    target.mkdir()
    for part in parts:
        found, place = source / part, target / part
        place.parent.mkdir(parents=True, exist_ok=True)
        if found.is_dir():
            _copy_folder(found, place)
        elif found.exists():
            shutil.copy2(found, place)


def _copy_folder(source: Path, target: Path) -> None:
    try:
        shutil.copytree(source, target, copy_function=_copy_file)
    except _CopyFault as fault:
        raise fault.cause from None


def _copy_file(source: str, target: str) -> None:
    try:
        shutil.copy2(source, target)
    except OSError as error:
        raise _CopyFault(error) from error


def _told(error: OSError) -> OSError | CheckpointError:
    """What the failure of a copy means."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return error
    why = f"{error.strerror or type(error).__name__}: {error.filename or 'the checkpoints'}"
    if error.errno in _FULL:
        return CheckpointError(
            "disk-full", sentence(f"There is no room left for a copy of a checkpoint: {why}")
        )
    code = "checkpoints-refused" if error.errno in _FORBIDDEN else "checkpoints-unreachable"
    return CheckpointError(code, sentence(f"A checkpoint cannot be copied: {why}"))


def _put(beside: Path, target: Path) -> None:
    """Give a copy its name once all of it is on the disk: a machine that stops may keep only names."""
    for folder, _, files in os.walk(beside, topdown=False):
        for name in files:
            _sync(Path(folder, name))
        _sync(Path(folder))
    beside.rename(target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
