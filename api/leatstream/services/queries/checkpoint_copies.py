"""Copies of checkpoints on a file system: savepoints, and what a new query begins with."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from leatstream.errors import RequestError


def checkpoint_root(root: str) -> Path:
    """The directory of checkpoints; RequestError unsupported where it is no directory."""
    if "://" in root:
        raise RequestError(
            "unsupported",
            f"checkpoints lie under {root}; they can be copied only where they lie in a directory",
            hint="set LEATSTREAM_CHECKPOINT_ROOT to a directory that every driver shares",
        )
    return Path(root)


def last_commit(checkpoint: Path) -> int | None:
    """The number of the last batch that was committed, or None."""
    folder = checkpoint / "commits"
    numbers = [int(n) for n in os.listdir(folder) if n.isdecimal()] if folder.is_dir() else []
    return max(numbers, default=None)


def offsets_of(checkpoint: Path, relations: list[str]) -> dict[str, Any]:
    """Where the last committed batch ended, by relation; empty where that cannot be told."""
    last = last_commit(checkpoint)
    if last is None:
        return {}
    try:
        lines = (checkpoint / "offsets" / str(last)).read_text(encoding="utf-8").splitlines()[2:]
        return {name: json.loads(line) for name, line in zip(relations, lines, strict=False)}
    except (OSError, ValueError):
        return {}


def copy_whole(source: Path, target: Path) -> None:
    """Copy a checkpoint that no job writes to; it is there whole or not at all. OSError."""
    if target.exists():
        return
    beside = target.with_name(f"{target.name}.part")
    shutil.rmtree(beside, ignore_errors=True)
    beside.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copytree(source, beside)
        _put(beside, target)
    except OSError:
        shutil.rmtree(beside, ignore_errors=True)  # on a full disk half a copy would only be in the way
        raise


def copy_offsets(source: Path, target: Path) -> None:
    """Copy how far a stateless job has read; it may go on meanwhile, as these files never change."""
    if target.exists():
        return
    last = last_commit(source)
    if last is None:
        raise FileNotFoundError(source / "commits")
    beside = target.with_name(f"{target.name}.part")
    shutil.rmtree(beside, ignore_errors=True)
    for folder in ("offsets", "commits"):
        (beside / folder).mkdir(parents=True)
        shutil.copy2(source / folder / str(last), beside / folder / str(last))
    for name in ("metadata", "leat_sources.json"):
        if (source / name).exists():
            shutil.copy2(source / name, beside / name)
    if (source / "sources").is_dir():
        shutil.copytree(source / "sources", beside / "sources")
    _put(beside, target)


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
