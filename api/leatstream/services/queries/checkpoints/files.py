"""What a checkpoint says of its job, and copies of it: savepoints, and what a new query begins with.

Every path is below the root of checkpoints.
"""

from __future__ import annotations

import json
from typing import Any

from leatstream.ports import CheckpointFiles


def last_commit(files: CheckpointFiles, checkpoint: str) -> int | None:
    """The number of the last batch that was committed, or None."""
    numbers = [int(name) for name in files.names(f"{checkpoint}/commits") if name.isdecimal()]
    return max(numbers, default=None)


def offsets_of(files: CheckpointFiles, checkpoint: str, relations: list[str]) -> dict[str, Any]:
    """Where the last committed batch ended, by relation; empty where that is unknown.

    Args:
        files: of all checkpoints.
        checkpoint: its name.
        relations: in the order of the job's sources.
    """
    last = last_commit(files, checkpoint)
    if last is None:
        return {}
    try:
        lines = files.read(f"{checkpoint}/offsets/{last}").splitlines()[2:]
        return {name: json.loads(line) for name, line in zip(relations, lines, strict=False)}
    except (OSError, ValueError):
        return {}


def copy_offsets(files: CheckpointFiles, source: str, target: str) -> None:
    """Copy how far a stateless job has read; it may go on meanwhile, as these files never change.

    Args:
        files: of all checkpoints.
        source: name of the checkpoint.
        target: name of the copy.

    Raises:
        OSError: no batch was committed.
        CheckpointError: the file system is full, does not answer, or refuses.
    """
    last = last_commit(files, source)
    if last is None:
        raise FileNotFoundError(2, "no batch of it was committed", source)
    files.copy(
        source, target, [f"offsets/{last}", f"commits/{last}", "metadata", "leat_sources.json", "sources"]
    )
