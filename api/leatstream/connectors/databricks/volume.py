"""A query's folder in a volume: the attempt that writes, the batches that its table has, and rows under way.

Below the store's folder, for each table and query::

    attempts/<number>             an attempt that has begun; only the newest one may write
    batches/<checkpoint>/<number> the last batch of a checkpoint that is in the table
    rows/<checkpoint>-<batch>.parquet

Files are made whole or not at all, and a listing shows what was made before it. Notes are never changed, so
that attempts cannot undo each other's.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from leatstream.connectors.databricks.workspace import Workspace
from leatstream.errors import StoreError

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

_TIMEOUT = 60.0  # seconds
TOP = "leatstream"


class QueryFolder:
    """The folder of one query and one table.

    Attributes:
        path: of the folder.
        rows: folder of the staged files.
    """

    def __init__(self, workspace: Workspace, path: str) -> None:
        self.path = path
        self.rows = f"{path}/rows"
        self._workspace = workspace
        self._opened: WorkspaceClient | None = None

    def attempts(self) -> list[int]:
        """Numbers of the attempts that have begun, without those that newer ones have replaced."""
        return self._numbers(f"{self.path}/attempts")

    def begin(self, attempt: int) -> None:
        """Note that an attempt begins."""
        self._note(f"{self.path}/attempts", attempt)
        with self._workspace.errors("making a folder in the volume", _TIMEOUT):
            self._client.files.create_directory(self.rows)

    def forget(self, attempts: list[int]) -> None:
        """Delete what was noted of attempts."""
        for number in attempts:
            self._delete(f"{self.path}/attempts/{number}")

    def last_batch(self, checkpoint: str) -> int | None:
        """Number of the last batch of a checkpoint that is noted."""
        return max(self._numbers(f"{self.path}/batches/{checkpoint}"), default=None)

    def note_batch(self, checkpoint: str, number: int) -> None:
        """Note that a batch is in the table."""
        folder = f"{self.path}/batches/{checkpoint}"
        self._note(folder, number)
        for old in self._numbers(folder):
            if old < number:
                self._delete(f"{folder}/{old}")

    def stage(self, name: str, file: Path) -> None:
        """Put a file of rows there."""
        with self._workspace.errors("writing to the volume", _TIMEOUT), file.open("rb") as content:
            self._client.files.upload(f"{self.rows}/{name}", content, overwrite=True)

    def staged(self) -> list[str]:
        """Names of the files of rows."""
        return self._names(self.rows)

    def unstage(self, name: str) -> None:
        """Delete a file of rows; nothing happens where there is none."""
        self._delete(f"{self.rows}/{name}")

    def _note(self, folder: str, number: int) -> None:
        with self._workspace.errors("writing to the volume", _TIMEOUT):
            self._client.files.create_directory(folder)
            self._client.files.upload(f"{folder}/{number}", io.BytesIO(b"leatstream\n"), overwrite=True)

    def _numbers(self, folder: str) -> list[int]:
        return sorted(int(name) for name in self._names(folder) if name.isdecimal())

    def _names(self, folder: str) -> list[str]:
        try:
            with self._workspace.errors("reading the volume", _TIMEOUT):
                return [str(one.name) for one in self._client.files.list_directory_contents(folder)]
        except StoreError as error:
            if error.code == "entity-not-found":
                return []
            raise

    def _delete(self, path: str) -> None:
        try:
            with self._workspace.errors("deleting from the volume", _TIMEOUT):
                self._client.files.delete(path)
        except StoreError as error:
            if error.code != "entity-not-found":
                raise

    @property
    def _client(self) -> WorkspaceClient:
        if self._opened is None:
            self._opened = self._workspace.client(_TIMEOUT)
        return self._opened


def remove(workspace: Workspace, path: str, timeout: float) -> None:
    """Delete a folder with all that is in it; nothing happens where there is none.

    Args:
        workspace: that has the volume.
        path: of the folder.
        timeout: seconds for each request.

    Raises:
        StoreError: what the workspace says.
    """
    try:
        with workspace.errors("deleting from the volume", timeout):
            files = workspace.client(timeout).files
            waiting, folders = [path], [path]
            while waiting:
                for one in files.list_directory_contents(waiting.pop()):
                    if one.is_directory:
                        waiting.append(str(one.path))
                        folders.append(str(one.path))
                    else:
                        files.delete(str(one.path))
            for folder in sorted(folders, key=len, reverse=True):
                files.delete_directory(folder)
    except StoreError as error:
        if error.code != "entity-not-found":
            raise
