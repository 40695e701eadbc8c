"""Where a job keeps its keyed snapshots: immutable Parquet files and one manifest per micro-batch.

Batch N reads the manifest before N, never a newer one. So a batch that is repeated after a crash finds what
it found the first time, writes the same files and gives the same rows. All paths go through Hadoop's file
systems, as those of the checkpoint do, of which this is a directory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from leatstream.errors import JobError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MANIFEST = re.compile(r"m-(\d{12})\.json\Z")
_KEPT = 3  # manifests; a repeated batch needs the one before its own only


@dataclass(frozen=True, slots=True)
class File:
    """One directory of Parquet."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the snapshots consist of after a batch.

    Attributes:
        files: view to its files, the oldest rows first.
        changes: view to the file of what this batch changed, if it changed anything.
        newest: view to its newest event time so far, microseconds from the epoch.
    """

    batch: int
    files: Mapping[str, tuple[File, ...]] = field(default_factory=dict)
    changes: Mapping[str, str] = field(default_factory=dict)
    newest: Mapping[str, int] = field(default_factory=dict)


class SnapshotStore:
    """Reads and writes them.

    Args:
        spark: whose file systems are used.
        root: URI of a directory of this query generation alone.
    """

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = root.rstrip("/")
        jvm: Any = spark._jvm
        # Found once: each package of the name is looked for as a class in every jar.
        self._path_class = getattr(jvm, "org.apache.hadoop.fs.Path")
        self._io = getattr(jvm, "org.apache.commons.io.IOUtils")
        self._fs = self._path("").getFileSystem(spark._jsc.hadoopConfiguration())
        self._last: Manifest | None = None

    def before(self, batch: int) -> Manifest:
        """The newest manifest of a batch before this one; an empty one for the first."""
        if self._last is None or self._last.batch != batch - 1:
            numbers = [number for number in self._numbers() if number < batch]
            self._last = self._read(max(numbers)) if numbers else Manifest(-1)
        return self._last

    def find(self, batch: int) -> Manifest | None:
        """The batch's own manifest, if an attempt before this one has written it."""
        return self._read(batch) if batch in self._numbers() else None

    def rows(self, files: tuple[File, ...] | list[File], schema: Any) -> DataFrame | None:
        """The rows of files; None of no files."""
        if not files:
            return None
        return self._spark.read.schema(schema).parquet(*(f"{self._root}/{file.name}" for file in files))

    def write(self, name: str, rows: DataFrame) -> File:
        """Write rows as one file; what a crashed attempt left under the name is replaced."""
        rows.write.mode("overwrite").parquet(f"{self._root}/{name}")
        return File(name, int(self._fs.getContentSummary(self._path(name)).getLength()))

    def commit(self, manifest: Manifest) -> None:
        """Make the batch's files count, at once or not at all."""
        name = f"m-{manifest.batch:012d}.json"
        temporary, final = self._path(f"{name}.tmp"), self._path(name)
        stream = self._fs.create(temporary, True)
        try:
            stream.write(bytearray(json.dumps(asdict(manifest)).encode()))
            stream.hsync()
        finally:
            stream.close()
        if not self._fs.rename(temporary, final):
            raise JobError("job-failed", f"The snapshot of batch {manifest.batch} could not be written.")
        self._last = manifest

    def clean(self, manifest: Manifest) -> None:
        """Remove what no manifest that may still be read names; called when ``manifest`` is committed."""
        numbers = sorted(self._numbers())
        old = [number for number in numbers if number <= manifest.batch][:-_KEPT]
        if not old:
            return
        kept = [self._read(number) for number in numbers if number not in old]
        needed = {f.name for m in kept for files in m.files.values() for f in files}
        needed |= {name for m in kept for name in m.changes.values()}
        for number in old:
            gone = self._read(number)
            for name in {f.name for files in gone.files.values() for f in files} | set(gone.changes.values()):
                if name not in needed:
                    self._fs.delete(self._path(name), True)
            self._fs.delete(self._path(f"m-{number:012d}.json"), False)

    def _numbers(self) -> list[int]:
        root = self._path("")
        if not self._fs.exists(root):
            return []
        names = [str(status.getPath().getName()) for status in self._fs.listStatus(root)]
        return [int(found[1]) for found in map(_MANIFEST.match, names) if found]

    def _read(self, batch: int) -> Manifest:
        stream = self._fs.open(self._path(f"m-{batch:012d}.json"))
        try:
            text = self._io.toString(stream, "UTF-8")
        finally:
            stream.close()
        body = json.loads(text)
        files = {view: tuple(File(**one) for one in many) for view, many in body["files"].items()}
        return Manifest(body["batch"], files, body["changes"], body["newest"])

    def _path(self, name: str) -> Any:
        return self._path_class(f"{self._root}/{name}" if name else self._root)
