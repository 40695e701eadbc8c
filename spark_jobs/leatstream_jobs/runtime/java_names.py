"""What Python has found in the JVM once, it need not look for again.

For each column that is made PySpark asks the JVM for a class and for its function before it calls it, and the
JVM looks for a short name in every package that is imported, which means in every jar. A batch that is
processed in Python makes a thousand columns.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass, JavaMember  # type: ignore[import-untyped]
from py4j.protocol import Py4JError  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)
# As they are called; what is kept are static functions only, which stay.
_NAMES = (
    "functions",
    "org.apache.spark.sql.functions",
    "PythonUtils",
    "PythonRDD",
    "SimplePythonFunction",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.util.ArrowUtils",
)


class _Kept(JavaClass):  # type: ignore[misc]
    """A class that keeps its functions."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            self.__dict__[name] = found
        return found


def keep_names(spark: SparkSession) -> None:
    """Keep the names that columns are made with, for all sessions of this JVM."""
    jvm: Any = spark.sparkContext._jvm
    for name in _NAMES:
        try:
            found = getattr(jvm, name)
        except Py4JError as error:  # another version of Spark: slower, and right
            _LOG.debug("%s is looked for each time: %s", name, error)
            continue
        if isinstance(found, JavaClass):
            jvm.__dict__[name] = _Kept(found._fqn, found._gateway_client)
