"""Which entities a checkpoint's offsets are of: kept beside them, so that a later attempt can compare."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILE = "leat_sources.json"


class SourceIdentities:
    """The file of one checkpoint: a source's view to what distinguishes its entity from a later one.

    Offsets mean nothing in a topic that was deleted and created again while no job looked: Spark would
    continue at the old number and skip the records before it.
    """

    def __init__(self, spark: SparkSession, checkpoint: str) -> None:
        self._spark = spark
        self._place = f"{checkpoint}/{_FILE}"

    def read(self) -> dict[str, str]:
        """Those of the attempts before; none at the first one."""
        path, system = self._file()
        if not system.exists(path):
            return {}
        stream = system.open(path)
        try:
            text: str = self._jvm().org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        try:
            found = json.loads(text)
        except ValueError:  # cut off by a crash: it is written again
            return {}
        return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}

    def write(self, identities: dict[str, str]) -> None:
        """Keep them."""
        path, system = self._file()
        stream = system.create(path, True)
        stream.write(bytearray(json.dumps(identities).encode()))
        stream.close()

    def _file(self) -> tuple[Any, Any]:
        path = self._jvm().org.apache.hadoop.fs.Path(self._place)
        return path, path.getFileSystem(self._spark._jsparkSession.sessionState().newHadoopConf())

    def _jvm(self) -> Any:
        return self._spark._jvm
