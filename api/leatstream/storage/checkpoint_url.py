"""Checkpoints under a URL of any file system that Hadoop's client knows, such as ``hdfs://``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from leatstream.storage.hadoop_client import HadoopClient

_QUICK, _LONG = 30.0, 600.0  # seconds for a single call; the first one of a JVM loads classes
_MARK = "metadata"  # which every checkpoint has
_AT_ONCE = 8
_PATH = "org.apache.hadoop.fs.Path"
_MOST_BYTES = 16 << 20


class CheckpointUrl:
    """Files of checkpoints below a URL (``ports.CheckpointFiles``).

    No folder can be given its name in one step everywhere: to object stores a rename is a copy. So the file
    ``metadata`` is the last one that a copy gets, and what has none is no checkpoint.
    """

    def __init__(self, root: str, client: HadoopClient) -> None:
        self._root = root.rstrip("/")
        self._client = client

    def names(self, path: str) -> list[str]:
        """Names of what lies in a folder; none where there is no such folder."""

        def listed(jvm: Any, conf: Any) -> list[str]:
            files, place = self._at(jvm, conf, path)
            return sorted(str(one.getPath().getName()) for one in files.listStatus(place))

        try:
            return self._client.ask(listed, _QUICK)
        except FileNotFoundError:
            return []

    def read(self, path: str) -> str:
        """The text of a small file; FileNotFoundError."""

        def content(jvm: Any, conf: Any) -> bytes:
            files, place = self._at(jvm, conf, path)
            stream = files.open(place)
            try:
                return bytes(stream.readNBytes(_MOST_BYTES))
            finally:
                stream.close()

        return self._client.ask(content, _QUICK).decode()

    def modified(self, path: str) -> float | None:
        """When a file was written last, seconds since 1970; None where there is no such file."""

        def ask(jvm: Any, conf: Any) -> float:
            files, place = self._at(jvm, conf, path)
            return float(files.getFileStatus(place).getModificationTime()) / 1000

        try:
            return self._client.ask(ask, _QUICK)
        except FileNotFoundError:
            return None

    def holds(self, checkpoint: str) -> bool:
        """Whether a checkpoint is there, whole."""
        return self.modified(f"{checkpoint}/{_MARK}") is not None

    def copy(self, source: str, target: str, parts: Sequence[str] | None = None) -> None:
        """Copy a checkpoint, or parts of it; it counts as there once its last file is."""
        if self.holds(target):
            return
        if not self.holds(source):
            raise FileNotFoundError(2, f"it is gone, or has lost its file {_MARK}", source)
        self.remove(target)
        files = [
            name for part in (parts if parts is not None else [""]) for name in self._files(source, part)
        ]
        with ThreadPoolExecutor(_AT_ONCE, "checkpoint copies") as pool:
            copies = [pool.submit(self._copy_file, source, target, n) for n in files if n != _MARK]
            try:
                for copy in copies:
                    copy.result()
            except BaseException:  # what has not begun shall not begin
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        self._copy_file(source, target, _MARK)

    def remove(self, path: str) -> None:
        """Remove a folder with all that is in it; does nothing where there is none."""
        # Whether anybody answers is found out by a short question.
        if self._client.ask(lambda jvm, conf: _exists(*self._at(jvm, conf, path)), _QUICK):
            self._client.ask(lambda jvm, conf: _delete(*self._at(jvm, conf, path)), _LONG)

    def close(self) -> None:
        """End the JVM, if there is one."""
        self._client.close()

    def _at(self, jvm: Any, conf: Any, path: str) -> tuple[Any, Any]:
        """The file system, and a path of it."""
        place = getattr(jvm, _PATH)(f"{self._root}/{path}")
        return place.getFileSystem(conf), place

    def _files(self, checkpoint: str, part: str) -> list[str]:
        """Files of a checkpoint, below it: one, or all in a folder; none where there is no such part."""

        def found(jvm: Any, conf: Any) -> list[str]:
            files, top = self._at(jvm, conf, checkpoint)
            above = len(str(files.makeQualified(top).toString())) + 1
            place = getattr(jvm, _PATH)(top, part) if part else top
            return [str(path.toString())[above:] for path in _walk(files, place)]

        with contextlib.suppress(FileNotFoundError):
            return self._client.ask(found, _QUICK)
        return []

    def _copy_file(self, source: str, target: str, name: str) -> None:
        def copied(jvm: Any, conf: Any) -> None:
            files, origin = self._at(jvm, conf, f"{source}/{name}")
            _, place = self._at(jvm, conf, f"{target}/{name}")
            getattr(jvm, "org.apache.hadoop.fs.FileUtil").copy(files, origin, files, place, False, True, conf)

        self._client.ask(copied, _LONG)


def _walk(files: Any, place: Any) -> Iterator[Any]:
    found = files.listFiles(place, True)
    while found.hasNext():
        yield found.next().getPath()


def _exists(files: Any, place: Any) -> bool:
    return bool(files.exists(place))


def _delete(files: Any, place: Any) -> bool:
    return bool(files.delete(place, True))
