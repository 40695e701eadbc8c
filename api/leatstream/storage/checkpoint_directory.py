"""Checkpoints in a directory: on this machine's disk, or on one that all servers and drivers share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path


class CheckpointDirectory:
    """Files of checkpoints below a directory (``ports.CheckpointFiles``)."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def names(self, path: str) -> list[str]:
        """Names of what lies in a folder; none where there is no such folder."""
        try:
            return sorted(os.listdir(self._root / path))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def read(self, path: str) -> str:
        """The text of a small file; FileNotFoundError."""
        return (self._root / path).read_text(encoding="utf-8")

    def modified(self, path: str) -> float | None:
        """When a file was written last, seconds since 1970; None where there is no such file."""
        try:
            return (self._root / path).stat().st_mtime
        except FileNotFoundError:
            return None

    def holds(self, checkpoint: str) -> bool:
        """Whether a checkpoint is there."""
        return (self._root / checkpoint).exists()

    def copy(self, source: str, target: str, parts: Sequence[str] | None = None) -> None:
        """Copy a checkpoint, or parts of it; it gets its name when all of it is on the disk."""
        origin, place = self._root / source, self._root / target
        if place.exists():
            return
        beside = place.with_name(f"{place.name}.part")
        shutil.rmtree(beside, ignore_errors=True)
        beside.parent.mkdir(parents=True, exist_ok=True)
        try:
            if parts is None:
                shutil.copytree(origin, beside)
            else:
                _copy_parts(origin, beside, parts)
            _put(beside, place)
        except OSError:
            shutil.rmtree(beside, ignore_errors=True)  # on a full disk half a copy would only be in the way
            raise

    def remove(self, path: str) -> None:
        """Remove a folder with all that is in it, as far as the disk lets us; OSError for what stays."""
        place = self._root / path
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
            shutil.copytree(found, place)
        elif found.exists():
            shutil.copy2(found, place)


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
