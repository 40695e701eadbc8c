"""Files of checkpoints, on a disk or under a URL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class CheckpointFiles(Protocol):
    """Files of checkpoints. Every path is relative to their root, with ``/`` between its parts.

    Each method may block on a remote file system, for some seconds where it does not answer. Copies and
    removals have no time limit.

    Raises:
        CheckpointError: from each of them: the file system of a URL does not answer, or refuses.
        OSError: from each of them: a disk's faults.
    """

    def names(self, path: str) -> list[str]:
        """Sorted names in a folder; none where the folder does not exist."""

    def read(self, path: str) -> str:
        """The text of a small file; FileNotFoundError if it does not exist."""

    def modified(self, path: str) -> float | None:
        """When a file was last written, in seconds since 1970; None if it does not exist."""

    def holds(self, checkpoint: str) -> bool:
        """Whether a whole checkpoint exists; an unfinished copy does not count."""

    def copy(self, source: str, target: str, parts: Sequence[str] | None = None) -> None:
        """Copy a checkpoint that no job writes to, or parts of one that never change.

        Idempotent: the target exists as a whole or not at all (``holds``), and an existing one is kept. A
        caller that was interrupted calls again.

        Args:
            source: the checkpoint.
            target: the path of its copy.
            parts: files and folders to copy; missing ones are skipped. None = all.

        Raises:
            FileNotFoundError: there is no such checkpoint.
        """

    def remove(self, path: str) -> None:
        """Remove a folder and its contents; idempotent."""

    def close(self) -> None:
        """End the processes behind it; a later call starts them again."""
