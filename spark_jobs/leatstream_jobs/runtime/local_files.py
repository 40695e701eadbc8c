"""Files on a local disk without a program for each.

Hadoop's Java has no call for a file's mode: without its native library, which PySpark does not have, it
starts the program ``chmod`` for each file and each directory that it makes, of which a micro-batch with state
has six: a fifth of the time of a small one, and of its processor time (bench/small_batch.py). Java has had
that call for long, so a small class of ours answers in place of Hadoop's. Spark's own compiler of generated
code (Janino) makes it in the JVM: no build and no jar.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)
CLASS = "leatstream.LocalFiles"
# A mode with a sticky bit has no name in Java, and is left to the program.
_SOURCE = """
package leatstream;

public class LocalFiles extends org.apache.hadoop.fs.RawLocalFileSystem {
    public void setPermission(
        org.apache.hadoop.fs.Path path, org.apache.hadoop.fs.permission.FsPermission mode
    ) throws java.io.IOException {
        if (mode.getStickyBit()) {
            super.setPermission(path, mode);
            return;
        }
        java.nio.file.Files.setPosixFilePermissions(
            pathToFile(path).toPath(),
            java.nio.file.attribute.PosixFilePermissions.fromString(mode.toString())
        );
    }
}
"""


def spare_programs(spark: SparkSession) -> None:
    """Let this JVM's local file system set modes itself. One that cannot be changed works on as it is."""
    context: Any = spark.sparkContext
    jvm, configuration = context._jvm, context._jsc.hadoopConfiguration()
    try:
        compiler = getattr(jvm, "org.codehaus.janino.SimpleCompiler")()
        compiler.cook(_SOURCE)
        files = (
            compiler.getClassLoader()
            .loadClass(CLASS)
            .getDeclaredConstructor(_none(context))
            .newInstance(_none(context, "java.lang.Object"))
        )
        files.initialize(getattr(jvm, "java.net.URI")("file:///"), configuration)
        # The one that everybody in the JVM gets; what it does beyond checksums is done by its inner one.
        local = getattr(jvm, "org.apache.hadoop.fs.FileSystem").getLocal(configuration)
        inner = (
            getattr(jvm, "java.lang.Class")
            .forName("org.apache.hadoop.fs.FilterFileSystem")
            .getDeclaredField("fs")
        )
        inner.setAccessible(True)
        inner.set(local, files)
    except (Py4JError, TypeError) as error:  # the latter where a class is none that the JVM has
        _LOG.warning("files are made with the program chmod: %s", error)


def _none(context: Any, kind: str = "java.lang.Class") -> Any:
    """An empty array, for arguments that vary in number."""
    return context._gateway.new_array(getattr(context._jvm, kind), 0)
