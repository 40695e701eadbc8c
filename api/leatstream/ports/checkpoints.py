"""Files of checkpoints, on a disk or under a URL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class CheckpointFiles(Protocol):
    """Files of checkpoints. Every path is below their root, and its parts are parted by ``/``.

    Under a URL any of these may wait for a file system that is far away, for some seconds where it does not
    answer; copies and removals take as long as they take.

    Raises:
        CheckpointError: from each of them: the file system of a URL does not answer, or refuses.
        OSError: from each of them: a disk's faults.
    """

    def names(self, path: str) -> list[str]:
        """Names of what lies in a folder, in order; none where there is no such folder."""

    def read(self, path: str) -> str:
        """The text of a small file; FileNotFoundError."""

    def modified(self, path: str) -> float | None:
        """When a file was written last, seconds since 1970; None where there is no such file."""

    def holds(self, checkpoint: str) -> bool:
        """Whether a checkpoint is there; half a copy is none."""

    def copy(self, source: str, target: str, parts: Sequence[str] | None = None) -> None:
        """Copy a checkpoint that no job writes to, or parts of one that never change.

        The target is there whole or not at all (``holds``); one that is there is left alone, so that whoever
        was interrupted may ask again.

        Args:
            source: the checkpoint.
            target: where its copy shall be.
            parts: files and folders to copy; those that it does not have are left out. None = all.

        Raises:
            FileNotFoundError: there is no such checkpoint.
        """

    def remove(self, path: str) -> None:
        """Remove a folder with all that is in it; does nothing where there is none."""

    def close(self) -> None:
        """End what was started for them; whoever asks again starts it anew."""
